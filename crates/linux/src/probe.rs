//! The abilities of this machine: for every rung of every ladder, whether it works, why not, and what would enable it.

use std::path::Path;

use crate::becoming_root;
use crate::bpf::{self, Rung as Bpf};
use crate::capability::{Capability, Sets};
use crate::cgroup::{Cgroup, Version};
use crate::journal::Journal;
use crate::place::{self, Place, Rung, Step};
use crate::{container, damon, delayacct, faults, file, mounts, pages, perf, pools, procfs, psi, taskstats, thp};

/// One rung of one ladder. Within a ladder, the best rung comes first.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Finding {
    /// The purpose, such as `process exits`.
    pub ladder: String,
    /// The source.
    pub rung: String,
    /// Whether it works.
    pub there: bool,
    /// The reason found on this system, as a clause.
    pub why: String,
    /// The command that would enable it; `None` if it works, or if no command would.
    pub enable: Option<String>,
}

/// All ladders. Takes some tens of milliseconds: loads and unloads the BPF programs, and creates, limits and removes a cgroup, because
/// permission bits alone do not show whether a limit can be set.
pub fn all() -> Vec<Finding> {
    let place = Place::find();
    let steps = Journal::open().map_or_else(|_| place::ladder(), |journal| place.tried(&journal));
    let bpf = bpf::available();
    [
        steps.into_iter().map(placement).collect(),
        process_exits(&bpf),
        page_cache(&bpf),
        mapped_memory(),
        phases(),
        attribution(),
        fault_latency(),
        provisioning(),
        advice(),
        io_wait(),
        pressure(),
        proportional_set(),
        kept_peaks(&place),
        cache_state(&place),
        swap(&place),
        vec![idle_memory()],
        slurm(place.current()),
    ]
    .concat()
}

impl Finding {
    fn there(ladder: &str, rung: &str, why: impl Into<String>) -> Finding {
        Finding { ladder: ladder.into(), rung: rung.into(), there: true, why: why.into(), enable: None }
    }

    fn absent(ladder: &str, rung: &str, why: impl Into<String>, enable: Option<&str>) -> Finding {
        Finding { there: false, enable: enable.map(String::from), ..Finding::there(ladder, rung, why) }
    }
}

fn placement(step: Step) -> Finding {
    const LADDER: &str = "placement";
    match step.obstacle {
        Some(why) => Finding::absent(LADDER, step.rung.name(), why, step.enable.as_deref()),
        None => Finding::there(
            LADDER,
            step.rung.name(),
            match step.rung {
                Rung::V2Root | Rung::V1Root => {
                    "the root of the memory controller can be written: a limit was set there"
                }
                Rung::V2Systemd => "systemd answers on D-Bus: a limit was set in its scope",
                Rung::V2Delegated => "bursar's own cgroup is delegated to it: a limit was set beneath it",
                Rung::ReadOnly => "bursar's own cgroup has a memory controller; no limits",
                Rung::None => "always; no limits",
            },
        ),
    }
}

fn process_exits(bpf: &Result<Bpf, bpf::Error>) -> Vec<Finding> {
    const LADDER: &str = "process exits";
    vec![
        match bpf {
            Ok(_) => Finding::there(LADDER, "scheduler tracepoints", "the BPF programs load"),
            Err(error) => no_bpf(LADDER, "scheduler tracepoints", error),
        },
        match taskstats::Listener::open() {
            Ok(_) => Finding::there(LADDER, "taskstats", "the kernel sends exit records over netlink"),
            Err(error) => Finding::absent(LADDER, "taskstats", error.to_string(), as_root(Capability::NetAdmin)),
        },
        Finding::there(
            LADDER,
            "wait4",
            "always; for the command as a whole, without processes that it did not wait for",
        ),
    ]
}

fn page_cache(bpf: &Result<Bpf, bpf::Error>) -> Vec<Finding> {
    const LADDER: &str = "page cache references";
    let filemap = match bpf {
        Ok(Bpf::Filemap) => Finding::there(LADDER, "filemap tracepoints", "the BPF programs load"),
        Ok(_) if !kernel_has_tracepoint("mm_filemap_get_pages") => Finding::absent(
            LADDER,
            "filemap tracepoints",
            format!("Linux {} does not have mm_filemap_get_pages, which came with 6.12", procfs::kernel_release()),
            None,
        ),
        Ok(_) => Finding::absent(LADDER, "filemap tracepoints", "the kernel refused one of its BPF programs", None),
        Err(error) => no_bpf(LADDER, "filemap tracepoints", error),
    };
    let calls = match bpf {
        Ok(Bpf::Filemap | Bpf::Syscalls) => Finding::there(LADDER, "system call tracepoints", "the BPF programs load"),
        Ok(Bpf::Processes) => Finding::absent(
            LADDER,
            "system call tracepoints",
            "the kernel refused the BPF program on system calls",
            None,
        ),
        Err(error) => no_bpf(LADDER, "system call tracepoints", error),
    };
    let snapshots = "shows the cached pages of a file, for files that this user may write";
    let inside = match cfg!(target_arch = "x86_64") {
        true => Finding::there(
            LADDER,
            "inside the processes",
            "the library is loaded into programs that are linked with glibc; used by bursar run where tracepoints are not",
        ),
        false => Finding::absent(LADDER, "inside the processes", "the library patches code of x86-64 only", None),
    };
    vec![filemap, calls, inside, Finding::there(LADDER, "cachestat or mincore snapshots", snapshots)]
}

fn mapped_memory() -> Vec<Finding> {
    const LADDER: &str = "mapped memory";
    const TABLES: &str = "Accessed bits in page tables";
    const GUESTS: &str = "of guests of KVM: DAMON";
    const SMAPS: &str = "clear_refs and smaps";
    let tables = match pages::available() {
        Ok(()) => Finding::there(LADDER, TABLES, "the BPF program loads and finds the page tables"),
        Err(error) => {
            let enable = match &error {
                pages::Error::NotBuilt(_) => rebuild(),
                pages::Error::Refused(_) | pages::Error::NotFound(_) => as_root(Capability::PerfMon).map(String::from),
                _ => None,
            };
            Finding::absent(LADDER, TABLES, error.to_string(), enable.as_deref())
        }
    };
    let smaps = match Path::new("/proc/self/clear_refs").exists() {
        true => Finding::there(
            LADDER,
            SMAPS,
            "readable for this user's processes (root: for all), per mapping instead of per page",
        ),
        false => Finding::absent(LADDER, SMAPS, "this kernel was built without CONFIG_PROC_PAGE_MONITOR", None),
    };
    let guests = match damon::available() {
        Ok(()) => {
            Finding::there(LADDER, GUESTS, "it scans chosen pages of processes, in addition to the page tables above")
        }
        Err(error) => Finding::absent(LADDER, GUESTS, error.to_string(), None),
    };
    vec![tables, guests, smaps]
}

fn phases() -> Vec<Finding> {
    const LADDER: &str = "phases of mapped memory";
    const COUNTERS: &str = "hardware counters";
    let counters = match perf::available() {
        Ok(events) => {
            let names: Vec<_> = events.into_iter().map(perf::Event::name).collect();
            Finding::there(LADDER, COUNTERS, format!("the processor counts {}", names.join(", ")))
        }
        Err(perf::Unavailable::Refused(error)) => {
            let enable = less_paranoid(&error, perf::Mode::User);
            Finding::absent(LADDER, COUNTERS, perf::Unavailable::Refused(error).to_string(), enable.as_deref())
        }
        Err(error) => Finding::absent(LADDER, COUNTERS, error.to_string(), None),
    };
    let bits = match pages::available() {
        Ok(()) => Finding::there(LADDER, "64 Accessed bits", "as mapped memory; with resident memory and minor faults"),
        Err(error) => Finding::absent(LADDER, "64 Accessed bits", error.to_string(), None),
    };
    vec![counters, bits, Finding::there(LADDER, "resident memory and minor faults", "always")]
}

fn attribution() -> Vec<Finding> {
    const LADDER: &str = "attribution";
    const CALLS: &str = "by owner: patched entries of libraries";
    let calls = match cfg!(target_arch = "x86_64") {
        true => Finding::there(LADDER, CALLS, "in programs with a dynamic loader; no rights are needed"),
        false => Finding::absent(LADDER, CALLS, "bursar knows the instructions of x86-64 alone", None),
    };
    let faults = |rung, mode, why: &str| match perf::page_faults(mode) {
        Ok(()) => Finding::there(LADDER, rung, why),
        Err(error) => {
            let enable = less_paranoid(&error, mode);
            Finding::absent(LADDER, rung, format!("perf_event_open refuses them: {error}"), enable.as_deref())
        }
    };
    let user = "pages that system calls touch first are unattributed";
    vec![
        calls,
        faults(
            "by touch: page-fault events",
            perf::Mode::Kernel,
            "a process may count its own faults, including those in the kernel",
        ),
        faults("by touch: page-fault events of user space", perf::Mode::User, user),
    ]
}

fn fault_latency() -> Vec<Finding> {
    const LADDER: &str = "page faults";
    const TIMED: &str = "each one timed";
    const COUNTED: &str = "counted over time";
    let timed = match faults::available() {
        Ok(()) => {
            Finding::there(LADDER, TIMED, "the BPF programs load, and perf raises an event at the end of each fault")
        }
        Err(faults::Error::Bpf(error)) => no_bpf(LADDER, TIMED, &error),
        Err(error) => Finding::absent(LADDER, TIMED, error.to_string(), as_root(Capability::PerfMon)),
    };
    let counted = match perf::page_faults(perf::Mode::User) {
        Ok(()) => Finding::there(LADDER, COUNTED, "perf may count the faults of a process and of its children"),
        Err(error) => {
            let enable = less_paranoid(&error, perf::Mode::User);
            Finding::absent(LADDER, COUNTED, format!("perf_event_open refuses them: {error}"), enable.as_deref())
        }
    };
    vec![
        timed,
        counted,
        Finding::there(LADDER, "wait4", "always; their number, for the command and the processes that it waited for"),
    ]
}

const POOL_PAGES: &str = "/proc/sys/vm/nr_hugepages";

fn provisioning() -> Vec<Finding> {
    const LADDER: &str = "provisioning";
    const POOL: &str = "pool";
    const HUGE: &str = "the kernel's huge pages";
    const SMALL: &str = "populated 4 KiB pages";
    let names = pools::names();
    let (there, silent): (Vec<_>, Vec<_>) = names.iter().partition(|name| pools::answers(&pools::socket(name)).is_ok());
    let list = |names: &[&String]| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let pool = match (there.is_empty(), silent.is_empty()) {
        (false, true) => Finding::there(LADDER, POOL, format!("brokers answer for: {}", list(&there))),
        (false, false) => {
            let (there, silent) = (list(&there), list(&silent));
            Finding::there(LADDER, POOL, format!("brokers answer for: {there}; none answers this user for: {silent}"))
        }
        (true, false) => Finding::absent(
            LADDER,
            POOL,
            format!("no broker answers this user for: {}", list(&silent)),
            of_pool(&format!("bursar pool serve {}", silent[0])).as_deref(),
        ),
        (true, true) => Finding::absent(
            LADDER,
            POOL,
            format!("there is none in {}", pools::folder().display()),
            of_pool("bursar pool create SIZE").as_deref(),
        ),
    };
    if procfs::kernel_version() < (5, 14) {
        let why = format!("Linux {} has no MADV_POPULATE_WRITE, which came with 5.14", procfs::kernel_release());
        return vec![pool, Finding::absent(LADDER, HUGE, why.clone(), None), Finding::absent(LADDER, SMALL, why, None)];
    }
    let huge = match thp::mode().as_deref() {
        Some(mode @ ("always" | "madvise")) => Finding::there(
            LADDER,
            HUGE,
            format!("MADV_POPULATE_WRITE is there, and transparent huge pages are on ({mode})"),
        ),
        Some(_) => Finding::absent(LADDER, HUGE, "transparent huge pages are off", setting(THP, SET_MADVISE)),
        None => Finding::absent(LADDER, HUGE, "this kernel was built without transparent huge pages", None),
    };
    vec![pool, huge, Finding::there(LADDER, SMALL, "MADV_POPULATE_WRITE is there")]
}

/// A command that reserves and mounts huge pages, where both can be done.
fn of_pool(command: &str) -> Option<String> {
    becoming_root::command(Capability::SysAdmin, command).filter(|_| becoming_root::can_set(Path::new(POOL_PAGES)))
}

const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SET_MADVISE: &str = "sudo sh -c 'echo madvise >/sys/kernel/mm/transparent_hugepage/enabled'";

fn advice() -> Vec<Finding> {
    const LADDER: &str = "advice";
    const TOUCH: &str = "huge pages at first touch";
    const ALONE: &str = "and nowhere else (PR_THP_DISABLE_EXCEPT_ADVISED)";
    const OTHERS: &str = "advice to processes that run (process_madvise)";
    const PROFILES: &str = "profiles";
    let release = procfs::kernel_release();
    let mode = thp::mode();
    let touch = match mode.as_deref() {
        Some(mode @ ("always" | "madvise")) => {
            Finding::there(LADDER, TOUCH, format!("transparent huge pages are on ({mode})"))
        }
        Some(_) => Finding::absent(LADDER, TOUCH, "transparent huge pages are off", setting(THP, SET_MADVISE)),
        None => Finding::absent(LADDER, TOUCH, "this kernel was built without transparent huge pages", None),
    };
    let alone = match (mode.as_deref(), thp::can_except_advised()) {
        (Some("always" | "madvise"), true) => {
            Finding::there(LADDER, ALONE, "a program can be limited to advised huge pages")
        }
        (Some("madvise"), false) => {
            let why = "the kernel lacks it, which came with 6.18; the machine's mode madvise does the same";
            Finding::there(LADDER, ALONE, why)
        }
        (Some("always"), false) => {
            let why = format!("Linux {release} lacks it, which came with 6.18, and the machine's mode is always");
            Finding::absent(LADDER, ALONE, why, setting(THP, SET_MADVISE))
        }
        _ => Finding::absent(LADDER, ALONE, "transparent huge pages are off", None),
    };
    let knows = |advice, rung, name, since| match thp::knows(advice) {
        true => Finding::there(LADDER, rung, format!("{name} is there")),
        false => Finding::absent(LADDER, rung, format!("Linux {release} has no {name}, which came with {since}"), None),
    };
    let ahead = knows(libc::MADV_POPULATE_WRITE, "populating ahead", "MADV_POPULATE_WRITE", "5.14");
    let collapse = knows(libc::MADV_COLLAPSE, "promoting what is there", "MADV_COLLAPSE", "6.1");
    let others = match (procfs::kernel_version() >= (6, 1), Sets::own().effective.has(Capability::SysNice)) {
        (false, _) => Finding::absent(
            LADDER,
            OTHERS,
            format!("Linux {release} has no advice that makes pages huge; 6.1 has"),
            None,
        ),
        (true, true) => Finding::there(LADDER, OTHERS, "bursar has CAP_SYS_NICE"),
        (true, false) => {
            Finding::absent(LADDER, OTHERS, "bursar does not have CAP_SYS_NICE", as_root(Capability::SysNice))
        }
    };
    let profiles = match pages::available() {
        Ok(()) => Finding::there(LADDER, PROFILES, "as mapped memory, by Accessed bits"),
        Err(error) => Finding::absent(LADDER, PROFILES, error.to_string(), None),
    };
    vec![touch, alone, ahead, collapse, others, profiles]
}

/// Two ways to the rights that BPF programs need, with the consequences of the second.
const LEND: &str = "sudo bursar …, or sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v bursar)\"; the latter lends every user who may \
                    execute that file the kernel's trace of the user's own processes: their file references, no other user's";

/// The command that builds bursar with its BPF programs, where packages can be installed and the programs would then load.
fn rebuild() -> Option<String> {
    let can_install = file::in_path("apt").is_some() && !becoming_root::is_read_only(Path::new("/var/lib/dpkg"));
    let install = becoming_root::command(Capability::PerfMon, "apt install clang libbpf-dev")?;
    (can_install && file::in_path("cargo").is_some()).then(|| format!("{install} && cargo build --release"))
}

/// Why BPF programs cannot be used, with the remedy.
fn no_bpf(ladder: &str, rung: &str, error: &bpf::Error) -> Finding {
    match error {
        bpf::Error::NotBuilt(_) => Finding::absent(ladder, rung, error.to_string(), rebuild().as_deref()),
        bpf::Error::NoBtf => Finding::absent(ladder, rung, error.to_string(), None),
        _ if !bpf::may_load() => {
            let why = "bursar has neither CAP_BPF with CAP_PERFMON nor CAP_SYS_ADMIN";
            let enable = becoming_root::helps(Capability::PerfMon).then_some(LEND);
            Finding::absent(ladder, rung, why, enable)
        }
        _ if !becoming_root::is_in_initial_namespace() => {
            let why = format!("{error}; the root of a user namespace, as here, has no such rights");
            Finding::absent(ladder, rung, why, None)
        }
        _ => Finding::absent(ladder, rung, error.to_string(), None),
    }
}

fn io_wait() -> Vec<Finding> {
    const LADDER: &str = "I/O wait";
    const RUNG: &str = "delay accounting";
    let accounting = match delayacct::is_on() {
        Some(true) => Finding::there(LADDER, RUNG, "kernel.task_delayacct is 1"),
        Some(false) if file::is_writable(Path::new("/proc/sys/kernel/task_delayacct")) => {
            Finding::there(LADDER, RUNG, "kernel.task_delayacct is 0; bursar sets it to 1 for the run and restores it")
        }
        Some(false) => {
            let why = "kernel.task_delayacct is 0 and may not be set by this user";
            Finding::absent(
                LADDER,
                RUNG,
                why,
                setting("/proc/sys/kernel/task_delayacct", "sudo sysctl kernel.task_delayacct=1"),
            )
        }
        None if procfs::kernel_version() < (5, 14) => {
            Finding::there(LADDER, RUNG, "before Linux 5.14 it is on unless the kernel was started with `nodelayacct`")
        }
        None => Finding::absent(LADDER, RUNG, "this kernel was built without CONFIG_TASK_DELAY_ACCT", None),
    };
    vec![accounting, Finding::there(LADDER, "sampled D state", "always; also counts waits that are not for block I/O")]
}

fn pressure() -> Vec<Finding> {
    const LADDER: &str = "pressure";
    let system = psi::system().is_some();
    let missing = "the kernel has no /proc/pressure: it was built without CONFIG_PSI, or started without psi=1";
    let cgroup2 = mounts::own().into_iter().find(|mount| mount.kind == "cgroup2");
    let per_cgroup = match cgroup2 {
        _ if !system => Finding::absent(LADDER, "per cgroup", missing, None),
        Some(mount) => {
            Finding::there(LADDER, "per cgroup", format!("cgroup v2 is mounted at {}", mount.point.display()))
        }
        None => Finding::absent(LADDER, "per cgroup", "cgroup v2 is not mounted", None),
    };
    let machine = match system {
        true => Finding::there(LADDER, "whole machine", "/proc/pressure can be read"),
        false => Finding::absent(LADDER, "whole machine", missing, None),
    };
    vec![per_cgroup, machine]
}

fn proportional_set() -> Vec<Finding> {
    const LADDER: &str = "proportional set";
    let found = procfs::smaps_rollup(std::process::id() as i32);
    vec![match found {
        Ok(_) => Finding::there(LADDER, "smaps_rollup", "can be read of this user's processes, and by root of all"),
        Err(error) => Finding::absent(LADDER, "smaps_rollup", error.to_string(), None),
    }]
}

fn kept_peaks(place: &Place) -> Vec<Finding> {
    const LADDER: &str = "kept peaks";
    let cgroup = match version(place) {
        None => Finding::absent(LADDER, "cgroup", "there is no cgroup to keep them, see placement", None),
        Some(Version::V1) => Finding::there(LADDER, "cgroup", "the kernel keeps memory.max_usage_in_bytes"),
        Some(Version::V2) if procfs::kernel_version() >= (5, 19) => {
            Finding::there(LADDER, "cgroup", "the kernel keeps memory.peak")
        }
        Some(Version::V2) => {
            let why = format!("Linux {} does not have memory.peak, which came with 5.19", procfs::kernel_release());
            Finding::absent(LADDER, "cgroup", why, None)
        }
    };
    vec![cgroup, Finding::there(LADDER, "VmHWM and wait4", "always; per process")]
}

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

fn cache_state(place: &Place) -> Vec<Finding> {
    const LADDER: &str = "cache state";
    let how = match version(place) {
        Some(Version::V1) => "memory.force_empty",
        _ if procfs::kernel_version() >= (5, 19) => "memory.reclaim",
        _ => "memory.high",
    };
    let job = match place.can_limit() {
        true => Finding::there(
            LADDER,
            "the job's own pages",
            format!("reclaimed through {how} before its cgroup is removed"),
        ),
        false => {
            Finding::absent(LADDER, "the job's own pages", "jobs get no cgroup of their own here, see placement", None)
        }
    };
    let drop_caches = match file::is_writable(Path::new(DROP_CACHES)) {
        true => Finding::there(LADDER, "drop_caches", "/proc/sys/vm/drop_caches can be written"),
        false => Finding::absent(
            LADDER,
            "drop_caches",
            "/proc/sys/vm/drop_caches may not be written by this user",
            setting(DROP_CACHES, "sudo bursar …").or(container::to_write(Path::new(DROP_CACHES))),
        ),
    };
    vec![
        job,
        drop_caches,
        Finding::there(LADDER, "file by file", "always; posix_fadvise, for files that can be opened"),
    ]
}

fn swap(place: &Place) -> Vec<Finding> {
    const LADDER: &str = "swap";
    const LIMIT: &str = "swap limit";
    let space = match procfs::meminfo().map_or(0, |info| info.swap_total) {
        0 => Finding::absent(LADDER, "swap space", "no swap is enabled; a limit below the floor kills the job", None),
        bytes => Finding::there(LADDER, "swap space", format!("{}", model::Bytes(bytes))),
    };
    let limit = match (place.current(), version(place)) {
        (_, None) => Finding::absent(LADDER, LIMIT, "there is no cgroup to set one on, see placement", None),
        (None, Some(_)) => {
            Finding::there(LADDER, LIMIT, "comes with cgroup v2, unless the kernel was started with swapaccount=0")
        }
        (Some(own), Some(version)) => {
            let name = match version {
                Version::V1 => "memory.memsw.limit_in_bytes",
                Version::V2 => "memory.swap.max",
            };
            match own.dir().join(name).exists() {
                true => Finding::there(LADDER, LIMIT, format!("{name} is there")),
                false => Finding::absent(
                    LADDER,
                    LIMIT,
                    format!(
                        "there is no {name}: the kernel was built without accounting of swap, or started without swapaccount=1"
                    ),
                    None,
                ),
            }
        }
    };
    vec![space, limit]
}

fn idle_memory() -> Finding {
    const LADDER: &str = "idle memory";
    const RUNG: &str = "stays where it is";
    match damon::pages_out() {
        None => Finding::there(LADDER, RUNG, "DAMON does not page it out, as far as this user may see"),
        Some(file) => {
            let why = format!(
                "DAMON pages it out ({}): samples lack the memory that it reclaimed from a job, some of which is read again",
                file.display()
            );
            Finding::absent(LADDER, RUNG, why, None)
        }
    }
}

/// Whether Slurm's commands find a configuration; those of the package alone have none.
fn belongs_to_a_cluster() -> bool {
    const KEPT: [&str; 3] = ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"];
    std::env::var_os("SLURM_CONF").is_some_and(|file| !file.is_empty())
        || KEPT.iter().any(|path| Path::new(path).exists())
}

fn slurm(own: Option<&Cgroup>) -> Vec<Finding> {
    const LADDER: &str = "Slurm";
    let job = std::env::var("SLURM_JOB_ID").ok();
    let allocation = match &job {
        Some(job) => Finding::there(LADDER, "inside an allocation", format!("SLURM_JOB_ID is {job}")),
        None => Finding::absent(
            LADDER,
            "inside an allocation",
            "SLURM_JOB_ID is not set",
            file::in_path("salloc").filter(|_| belongs_to_a_cluster()).map(|_| "salloc --mem=SIZE bursar …"),
        ),
    };
    let srun = match file::in_path("srun") {
        Some(path) => Finding::there(LADDER, "srun", path.display().to_string()),
        None => Finding::absent(LADDER, "srun", "no srun in PATH", None),
    };
    let limit = own.and_then(Cgroup::effective_limit);
    let constrained = match (job, limit) {
        (Some(_), Some(limit)) => {
            let why = format!("the allocation's cgroup has a limit of {}", model::Bytes(limit));
            Finding::there(LADDER, "memory constrained", why)
        }
        (Some(_), None) => Finding::absent(
            LADDER,
            "memory constrained",
            "the allocation's cgroup has no memory limit",
            Some("ConstrainRAMSpace=yes in cgroup.conf, by the site's administrator"),
        ),
        (None, _) => Finding::absent(LADDER, "memory constrained", "not inside an allocation", None),
    };
    vec![allocation, srun, constrained]
}

/// BPF can use a tracepoint if the kernel's BTF names it.
fn kernel_has_tracepoint(name: &str) -> bool {
    let wanted = format!("\0btf_trace_{name}\0");
    let types = std::fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    types.windows(wanted.len()).any(|window| window == wanted.as_bytes())
}

/// The advice to become root, where root would have this capability.
fn as_root(capability: Capability) -> Option<&'static str> {
    becoming_root::helps(capability).then_some("sudo bursar …")
}

/// The command that changes a kernel setting, where it can be changed; without sudo for users who may write it.
fn setting<'a>(path: &str, command: &'a str) -> Option<&'a str> {
    let path = Path::new(path);
    let command = if file::is_writable(path) { command.trim_start_matches("sudo ") } else { command };
    becoming_root::can_set(path).then_some(command)
}

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The command that allows users without root to count events, if this setting is the obstacle: the kernel then answers EACCES
/// (`perf_allow_kernel`), while a seccomp filter answers EPERM or ENOSYS.
fn less_paranoid(error: &std::io::Error, mode: perf::Mode) -> Option<String> {
    let level = allowing(mode);
    let set = std::fs::read_to_string(PARANOID).ok()?.trim().parse::<i32>().ok()?;
    let is_forbidden = error.raw_os_error() == Some(libc::EACCES) && set > level;
    setting(PARANOID, "sudo sysctl kernel.perf_event_paranoid=")
        .filter(|_| is_forbidden)
        .map(|enable| format!("{enable}{level}"))
}

/// The highest level that lets a user without root count the user's own processes.
fn allowing(mode: perf::Mode) -> i32 {
    match mode {
        perf::Mode::User => 2,
        perf::Mode::Kernel => 1,
    }
}

/// Version of the cgroups that a job's memory is charged to.
fn version(place: &Place) -> Option<Version> {
    match (place.current(), place.rung()) {
        (Some(own), _) => Some(own.version()),
        (None, Rung::V1Root) => Some(Version::V1),
        (None, Rung::V2Root | Rung::V2Systemd | Rung::V2Delegated) => Some(Version::V2),
        (None, Rung::ReadOnly | Rung::None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_by_seccomp_is_not_blamed_on_paranoid() {
        for refusal in [libc::EPERM, libc::ENOSYS, libc::ENOENT] {
            let refusal = std::io::Error::from_raw_os_error(refusal);
            assert_eq!(less_paranoid(&refusal, perf::Mode::Kernel), None, "{refusal}");
        }
    }

    #[test]
    fn a_lower_level_is_advised_only_where_the_current_one_forbids() {
        let set: i32 = file::read(Path::new(PARANOID)).unwrap().trim().parse().unwrap();
        let refusal = std::io::Error::from_raw_os_error(libc::EACCES);
        for (mode, level) in [(perf::Mode::User, 2), (perf::Mode::Kernel, 1)] {
            let advice = less_paranoid(&refusal, mode);
            assert!(advice.is_none() || set > level, "{set}: {advice:?}");
            assert!(advice.is_none_or(|advice| advice.ends_with(&format!("={level}"))));
        }
    }

    #[test]
    fn every_rung_has_a_reason_and_working_ones_no_command() {
        let findings = all();
        for finding in &findings {
            assert!(!finding.why.is_empty(), "{finding:?}");
            assert!(!finding.there || finding.enable.is_none(), "{finding:?}");
        }
        let mut ladders: Vec<_> = findings.iter().map(|finding| finding.ladder.as_str()).collect();
        ladders.dedup();
        let expected = [
            "placement",
            "process exits",
            "page cache references",
            "mapped memory",
            "phases of mapped memory",
            "attribution",
            "page faults",
            "provisioning",
            "advice",
            "I/O wait",
            "pressure",
            "proportional set",
            "kept peaks",
            "cache state",
            "swap",
            "idle memory",
            "Slurm",
        ];
        assert_eq!(ladders, expected);
    }
}
