//! What runs are made on: the place for their cgroups, the journal, the switches that are on while they run.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use job::Forwarding;
use linux::bpf::Rung;
use linux::cgroup::Cgroup;
use linux::journal::{self, Guard, Journal};
use linux::place::Place;
use linux::{bpf, damon, delayacct, procfs, rights};
use model::{Header, RecordKind};
use qemu::put_back;
use record::Record;
use sample::IoWait;
use track::{Loading, Tracker};

use crate::redact::redacted;
use crate::say::tell;

/// Set up once, before the first run; everything it changed is put back when it is dropped.
pub struct Bench {
    /// Who gets our signals, and whether we were asked to stop.
    pub signals: Forwarding,
    /// Where jobs' cgroups are made.
    pub place: Place,
    /// The cgroup that we are in, if nothing else is but those that started us, as in a container or a Slurm step: its
    /// charge is then the job's and our own.
    pub own_cgroup: Option<Cgroup>,
    /// Why the cgroup that we are in is not taken for the job's, if that needs a word.
    pub not_own_cgroup: Option<String>,
    /// What is to be undone.
    pub journal: Journal,
    /// Where the I/O wait share comes from.
    pub io_wait: IoWait,
    /// What the reader should know of how bursar was started.
    notes: Vec<String>,
    /// Those of them that concern the machine, whatever runs on it; `bursar doctor` has them too.
    machine_notes: Vec<String>,
    /// The best that its runs are tracked by; `None`: processes that end are known from taskstats, and no file's references.
    tracking: Option<Rung>,
    /// Whether references to files are noted inside the command instead.
    pub references_inside: bool,
    /// Whether limits are emulated by what is noted there.
    pub emulates_limits: bool,
    /// The first run's tracker.
    loading: RefCell<Option<Loading>>,
    is_root: bool,
    _delay_accounting: Option<Guard>,
}

/// Who gives the page cache's references.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum References {
    /// The tracepoints, or nobody.
    Traced,
    /// Where the tracepoints may not be had, the library inside the command.
    TracedOrInside,
}

/// Set to `references-inside`, references come from inside the command where the tracepoints could be had too, and set to
/// `emulated-limits`, limits are emulated where a cgroup could have them: to compare both.
const FORCE_RUNG: &str = "BURSAR_FORCE_RUNG";

/// Whether a rung is asked for that others are better than.
fn is_forced(rung: &str) -> bool {
    std::env::var_os(FORCE_RUNG).is_some_and(|forced| forced == rung)
}

/// Shows a write of the repair before it is made.
pub fn announce_repair(intention: &str) {
    tell!("bursar: undoing what a killed run left: {intention}");
}

impl Bench {
    /// Undoes what killed runs have left, finds a place and switches delay accounting on where that is allowed.
    ///
    /// `tracking`: no more than is needed, since the better it is the longer it takes before a run begins.
    pub fn set_up(tracking: Option<Rung>, references: References) -> anyhow::Result<Bench> {
        let may_trace = bpf::may_load() && !bpf::is_refused() && !is_forced("references-inside");
        let references_inside = references == References::TracedOrInside && !may_trace;
        let tracking = if references_inside { tracking.map(|_| Rung::Processes) } else { tracking };
        // The longest part of the preparations; the others go on beside it.
        let loading = RefCell::new(tracking.and_then(|best| Loading::start(best).ok()));
        for repaired in journal::repair(put_back, &mut announce_repair) {
            tell!("bursar: left by a killed run: {repaired}");
        }
        let journal = Journal::open()?;
        let mut notes: Vec<String> = journal.warning().map(Into::into).into_iter().collect();
        let is_root = rustix::process::geteuid().is_root();
        if rights::are_borrowed() {
            notes.push(
                "bursar has rights of its program file (setcap): it observes only processes that you could trace without them, and \
                 files that you cannot look up have no path."
                    .into(),
            );
        }
        let pages_out = damon::pages_out().map(|file| {
            format!(
                "The kernel pages out here what is idle ({}): samples lack what it took of the job, and some is read again.",
                file.display()
            )
        });
        let mut machine_notes: Vec<String> = pages_out.into_iter().collect();
        let guard = delayacct::enable(&journal).unwrap_or_else(|error| {
            machine_notes.extend(is_root.then(|| error.to_string()));
            None
        });
        let io_wait = match delayacct::is_on() {
            Some(true) => IoWait::DelayAccounting,
            _ => IoWait::SampledState,
        };
        let (signals, place) = (Forwarding::start()?, Place::find());
        let (own_cgroup, not_own_cgroup) = own_cgroup(&place);
        Ok(Bench {
            signals,
            place,
            own_cgroup,
            not_own_cgroup,
            journal,
            io_wait,
            notes,
            machine_notes,
            tracking,
            references_inside,
            emulates_limits: false,
            loading,
            is_root,
            _delay_accounting: guard,
        })
    }

    /// What the reader should know, whatever the runs show.
    pub fn notes(&self) -> Vec<String> {
        // What the processes tell of themselves takes the place of both.
        let is_blind = !self.is_root && !bpf::may_load() && !self.references_inside;
        let without_rights = is_blind.then(|| {
            "Not run as root: short-lived processes may be missing, and of files only what is mapped is seen, not what is \
             read and written by calls; `bursar doctor` names what would enable them."
                .to_string()
        });
        self.notes.iter().cloned().chain(without_rights).collect()
    }

    /// Whether the kernel holds its runs to limits.
    pub fn can_limit(&self) -> bool {
        self.place.can_limit() && !is_forced("emulated-limits")
    }

    /// No cgroup is made for its runs: their limits are emulated, by the references noted inside the command.
    pub fn emulate_limits(&mut self) {
        (self.emulates_limits, self.references_inside) = (true, true);
        self.tracking = self.tracking.map(|_| Rung::Processes);
        self.loading.replace(None);
    }

    /// Starts following processes and their references; `None`, with a note, where that is refused.
    pub fn track(&self, pids: &[i32], origin_ns: u64, notes: &mut Vec<String>) -> Option<Tracker> {
        let refused = |error: track::Error| notes.extend((self.is_root || bpf::may_load()).then(|| error.to_string()));
        let best = self.tracking?;
        let loading = self.loading.take().map_or_else(|| Loading::start(best), Ok);
        loading.and_then(|loading| loading.follow(&rights::observable(pids), origin_ns)).map_err(refused).ok()
    }

    /// What concerns the machine, once its runs are over: nothing but where one of them lost memory without a limit. `bursar doctor`
    /// reports it otherwise.
    pub fn machine_notes(&self, record: &Record) -> &[String] {
        let page_bytes = record.header.page_bytes;
        let has_lost_memory = record.accounts.values().any(|account| account.lost_without_limit(page_bytes));
        if has_lost_memory { &self.machine_notes } else { &[] }
    }

    /// Whether its runs' references to files are wanted.
    pub fn sees_references(&self) -> bool {
        self.tracking.is_some_and(|best| best != Rung::Processes)
    }

    /// The first entry of a record.
    pub fn header(&self, kind: RecordKind, command: &[std::ffi::OsString], swap: &str) -> Header {
        let placement = match self.emulates_limits {
            true => "limits emulated by dropping the page cache beyond them".into(),
            false => self.place.describe(),
        };
        Header { placement, swap: swap.into(), ..header(kind, command) }
    }
}

/// The first entry of a record of a target that is neither placed nor limited.
pub fn header(kind: RecordKind, command: &[std::ffi::OsString]) -> Header {
    Header {
        kind,
        bursar_version: env!("CARGO_PKG_VERSION").into(),
        host: procfs::hostname(),
        boot_id: procfs::boot_id().unwrap_or_default(),
        kernel: procfs::kernel_release(),
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: procfs::meminfo().map_or(0, |m| m.total),
        page_bytes: procfs::page_bytes(),
        command: command.iter().map(|word| redacted(&word.to_string_lossy())).collect(),
        directory: std::env::current_dir().map(|d| d.to_string_lossy().into_owned()).unwrap_or_default(),
        started_unix_ns: unix_ns(),
        placement: "as found".into(),
        swap: "as found".into(),
        options: Default::default(),
    }
}

/// Above this, anonymous memory that no process to be seen has is somebody else's, bytes.
const UNSEEN_BYTES: u64 = 8 << 20;

/// The cgroup that only we and those that started us are in; else why it is not taken for ours, where it seemed to be.
fn own_cgroup(place: &Place) -> (Option<Cgroup>, Option<String>) {
    let Some(group) = place.current() else { return (None, None) };
    let mut ours = vec![std::process::id() as i32];
    while let Some(parent) = procfs::stat(ours[ours.len() - 1]).ok().map(|stat| stat.ppid).filter(|pid| *pid > 0) {
        ours.push(parent);
    }
    let Ok(members) = group.processes() else { return (None, None) };
    if !members.iter().all(|pid| ours.contains(pid)) {
        return (None, None);
    }
    // Processes of other PID namespaces are not listed as what they are, or not at all: then their memory shows.
    let anon = |pid: &i32| procfs::status(*pid).ok().and_then(|status| status.rss_anon);
    let seen: u64 = members.iter().filter_map(anon).sum();
    let charged = group.memory().ok().and_then(|state| state.anon).unwrap_or(0);
    let is_others = charged > seen + seen / 4 + UNSEEN_BYTES;
    if is_others || group.has_hidden_processes() {
        let why = "The cgroup is shared with processes that bursar cannot see: its charge is not used.";
        return (None, Some(why.into()));
    }
    linux::cache::read_own_program();
    (Some(group.clone()), None)
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}
