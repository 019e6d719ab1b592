//! One look at a job after another.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use linux::buffers::OwnBuffers;
use linux::cgroup::{Cgroup, MemoryState};
use linux::holders::FileId;
use linux::open_in_memory::{OpenFile, open_in_memory};
use linux::written_in_memory::WrittenInMemory;
use linux::{procfs, psi, thp};
use model::{Buffers, HUGETLB_CHARGED, KeptPeaks, Named, ProcessRecord, Series, Unit, names};
use rustix::time::{ClockId, clock_gettime};

use crate::lines::{Lines, Row, RowBuilder};
use crate::own::Own;
use crate::pace::Pace;
use crate::processes::{Processes, Sums};

/// Which processes are the job.
#[derive(Clone, Debug)]
pub enum Scope {
    /// All in a cgroup.
    Cgroup(Cgroup),
    /// A process and its descendants.
    Tree {
        /// The root of the tree.
        root: i32,
        /// The cgroup that they, and perhaps others, are in: its charge is the best there is.
        within: Option<Cgroup>,
    },
    /// One process.
    Process(i32),
}

impl Scope {
    fn cgroup(&self) -> Option<&Cgroup> {
        match self {
            Scope::Cgroup(group) => Some(group),
            Scope::Tree { within, .. } => within.as_ref(),
            Scope::Process(_) => None,
        }
    }
}

/// Where the share of time spent waiting for I/O comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoWait {
    /// Delay accounting is on.
    DelayAccounting,
    /// Else: tasks in uninterruptible sleep at the moment of the sample.
    SampledState,
}

/// How to look.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The person's `--interval`; `None` adapts.
    pub interval: Option<Duration>,
    /// Where the I/O wait share comes from.
    pub io_wait: IoWait,
    /// Memory of ours that the job's processes may have mapped: as much as they have of it is not counted as theirs.
    pub shared_by_us_bytes: u64,
}

/// Looks at a job again and again.
pub struct Sampler {
    scope: Scope,
    io_wait: IoWait,
    pace: Pace,
    lines: Lines,
    processes: Processes,
    started: Instant,
    began_seconds: f64,
    kept: KeptPeaks,
    /// What the kernel had kept before; a peak that has not grown since is not the run's.
    kept_before: Option<MemoryState>,
    /// The most shared memory, and pages of the hugetlb pools, that one process had mapped.
    shared_mapped: Option<u64>,
    hugetlb_mapped: Option<u64>,
    /// Without a cgroup: the files in memory that the job has open, and their peak.
    written_in_memory: WrittenInMemory,
    told_in_memory: Option<Receiver<(FileId, OpenFile)>>,
    files_in_memory: Option<Named>,
    with_files_in_memory: u64,
    /// What its processes held together at most, and with shared memory that their page tables need not show.
    held_at_most: u64,
    with_unmapped: u64,
    /// Likewise its pipes and sockets; what the kernel tells of these at the last sample, and the most of the others.
    own_buffers: OwnBuffers,
    socket_bytes: Option<u64>,
    buffers: Buffers,
    /// What whoever is in the job's cgroup beside it held of it when the run began.
    own: Option<Own>,
}

/// All that sampling gave.
pub struct Sampled {
    /// The time lines.
    pub series: Vec<Series>,
    /// The processes seen alive at some sample.
    pub processes: Vec<ProcessRecord>,
    /// Peaks that the kernel kept.
    pub kept: KeptPeaks,
    /// Figure → rung.
    pub sources: BTreeMap<String, String>,
    /// Peak of the shared memory that the job had mapped: of one process, or in proportion.
    pub shared_mapped: Option<u64>,
    /// Peak of the pages of the hugetlb pools that one process had mapped.
    pub hugetlb_mapped: Option<u64>,
    /// Without a cgroup: peak of the files in memory that the job had open and had not mapped, by the name of the largest.
    pub files_in_memory: Option<Named>,
    /// Without a cgroup: the most that heap and files in memory took at the same time, at least.
    pub with_files_in_memory_bytes: Option<u64>,
    /// Without a cgroup: so much more than what its page tables showed may the job have held in shared memory.
    pub unmapped_shared_bytes: Option<u64>,
    /// Likewise the most that its pipes, and sockets of which the kernel tells nothing, can have held.
    pub buffers: Buffers,
    /// What was taken off the charge of a cgroup that bursar shares with the job, at most.
    pub own_bytes: Option<u64>,
}

impl Sampler {
    /// Begins at `started`, which is 0 on the time lines.
    pub fn new(scope: Scope, options: Options, started: Instant) -> Sampler {
        Sampler {
            processes: Processes::new(matches!(scope, Scope::Process(_)), options.shared_by_us_bytes),
            scope,
            io_wait: options.io_wait,
            pace: Pace::new(options.interval),
            lines: Lines::default(),
            started,
            began_seconds: began_seconds(started),
            kept: KeptPeaks::default(),
            kept_before: None,
            shared_mapped: None,
            hugetlb_mapped: None,
            written_in_memory: WrittenInMemory::begin(),
            told_in_memory: None,
            files_in_memory: None,
            with_files_in_memory: 0,
            held_at_most: 0,
            with_unmapped: 0,
            own_buffers: OwnBuffers::default(),
            socket_bytes: None,
            buffers: Buffers::default(),
            own: None,
        }
    }

    /// Files in memory that the job's processes tell of themselves come from there.
    pub fn hear_of_files_in_memory(&mut self, told: Receiver<(FileId, OpenFile)>) {
        self.told_in_memory = Some(told);
    }

    /// The command has been let go: its time begins now. Rows taken before are at 0.
    pub fn begin(&mut self, started: Instant) {
        self.began_seconds = began_seconds(started);
        self.started = started;
    }

    /// How long to wait for the next sample.
    pub fn interval(&self) -> Duration {
        self.pace.interval(self.started.elapsed())
    }

    /// Looks once. Cost: a few system calls for the cgroup and the machine, three to four per process.
    pub fn sample(&mut self) -> Row {
        let begin = clock_gettime(ClockId::ThreadCPUTime);
        let elapsed = self.started.elapsed();
        let threads = self.io_wait == IoWait::SampledState;
        let pids = pids_of(&self.scope);
        let scope = &self.scope;
        let sums = self.processes.look(&pids, self.began_seconds, &mut self.pace, elapsed, threads, &|| pids_of(scope));
        self.shared_mapped = self.shared_mapped.max(sums.largest_shared).max(sums.pss_shared);
        self.hugetlb_mapped = self.hugetlb_mapped.max(sums.largest_hugetlb);
        let read = self.scope.cgroup().and_then(|group| Some((group.clone(), group.memory().ok()?)));
        let group = read.map(|(group, state)| (group, self.without_own(state)));
        if !matches!(self.scope, Scope::Cgroup(_)) {
            self.look_at_descriptors(&pids, &sums);
        }
        // The first row is the begin, however long the preparation took: times never go back at `begin`.
        let is_first = self.lines.is_empty();
        let at = if is_first { Duration::ZERO } else { elapsed };
        let mut row = self.lines.row(at.as_nanos() as u64);
        match &group {
            Some((group, state)) => {
                put_group(&mut row, group, state);
                // What is charged and in no line may be such; else it costs for nothing.
                if is_first || state.unmapped() > Some(0) {
                    row.bytes(names::SYSTEM_PARTED_HUGE_PAGES, "transparent_hugepage (system)", thp::parted_bytes());
                }
            }
            None => {
                put_tree(&mut row, &sums);
                row.bytes(names::SOCKETS, "sock_diag", self.socket_bytes);
            }
        }
        // v1 has no line for page tables; the processes' own sum is the same memory.
        match group.as_ref().and_then(|(group, state)| Some((group_rung(group), state.page_tables?))) {
            Some((rung, bytes)) => row.bytes(names::PAGE_TABLES, rung, Some(bytes)),
            None => row.bytes(names::PAGE_TABLES, "/proc/PID/status", sums.page_tables),
        }
        put_sums(&mut row, &sums, self.io_wait);
        put_system(&mut row, group.as_ref().and_then(|(group, _)| group.pressure()));
        for (key, rss) in self.processes.own_lines() {
            row.put_of(Some(key), names::RSS, Unit::Bytes, "/proc/PID/stat", Some(rss as f64));
        }
        let row = row.finish();
        if let Some((_, state)) = group {
            self.keep(&state);
        }
        let end = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = Duration::new(end.tv_sec as u64, end.tv_nsec as u32)
            .saturating_sub(Duration::new(begin.tv_sec as u64, begin.tv_nsec as u32));
        self.pace.spent(cpu, elapsed, sums.cpu_seconds);
        row
    }

    /// The value a series had at the last sample.
    pub fn last(&self, name: &'static str) -> Option<f64> {
        self.lines.last(name)
    }

    /// When the last sample was taken.
    pub fn last_at(&self) -> Duration {
        Duration::from_nanos(self.lines.last_at())
    }

    /// What the kernel kept, as of the last sample.
    pub fn kept(&self) -> KeptPeaks {
        self.kept
    }

    /// Ends. Sample once more before, while the cgroup is still there.
    pub fn finish(self) -> Sampled {
        let mut sources = BTreeMap::new();
        let mut source = |figure: &str, rung: &str| sources.insert(figure.to_string(), rung.to_string());
        match self.scope.cgroup().filter(|_| self.kept_before.is_some()) {
            Some(group) => {
                let shared = if matches!(self.scope, Scope::Cgroup(_)) { "" } else { ", with all else that is in it" };
                let rung = group_rung(group);
                source("charge", &format!("{rung} memory.stat{shared}"));
                if self.kept.charge_bytes.is_some() {
                    source("peak_charge", &format!("{rung}, kept by the kernel"));
                }
            }
            None => {
                source("charge", "none: no cgroup of the job's own");
                let by_process = "RssAnon, RssFile, RssShmem, VmPTE of /proc/PID/status";
                source(
                    "heap, file, shared, kernel",
                    &format!("{by_process}; what processes share: smaps_rollup (PSS)"),
                );
                source("floor", "RssAnon, RssShmem, VmSwap, VmPTE, VmLck of /proc/PID/status; sockets: sock_diag");
            }
        }
        if let Some(why) = &self.processes.unread {
            source("PSS", &format!("none while there was one that may not be read: {why}"));
        }
        let io_wait = match self.io_wait {
            IoWait::DelayAccounting => "delay accounting",
            IoWait::SampledState => "sampled D state",
        };
        source("io_wait_share", io_wait);
        Sampled {
            series: self.lines.into_series(),
            processes: self.processes.into_records(),
            kept: self.kept,
            sources,
            shared_mapped: self.shared_mapped,
            hugetlb_mapped: self.hugetlb_mapped,
            with_files_in_memory_bytes: self.files_in_memory.as_ref().map(|_| self.with_files_in_memory),
            files_in_memory: self.files_in_memory,
            unmapped_shared_bytes: Some(self.with_unmapped - self.held_at_most).filter(|bytes| *bytes > 0),
            buffers: self.buffers,
            own_bytes: self.own.map(|own| own.most),
        }
    }

    /// What the processes have open that is in memory and in no RSS.
    fn look_at_descriptors(&mut self, pids: &[i32], sums: &Sums) {
        let open = open_in_memory(pids.iter().copied());
        let (socket_bytes, buffers) = self.own_buffers.look(&open);
        // Once there were sockets, none hold nothing.
        self.socket_bytes = socket_bytes.or(self.socket_bytes.map(|_| 0));
        self.buffers = self.buffers.most(buffers);
        for (id, file) in self.told_in_memory.iter().flat_map(Receiver::try_iter) {
            self.written_in_memory.tell(id, file);
        }
        let found = self.written_in_memory.look(open, pids, sums.most.shared);
        let bytes = |files: &Option<Named>| files.as_ref().and_then(|files| files.bytes);
        if bytes(&found.known) > bytes(&self.files_in_memory) {
            self.files_in_memory = found.known;
        }
        // Shared memory of processes may be these very files.
        let unreclaimable = sums.least.heap + sums.least.swap + sums.least.shared.max(found.known_bytes);
        self.with_files_in_memory = self.with_files_in_memory.max(unreclaimable);
        let held = sums.most.heap + sums.most.shared + sums.rss_file.unwrap_or(0);
        self.held_at_most = self.held_at_most.max(held);
        self.with_unmapped = self.with_unmapped.max(held + found.perhaps_bytes);
    }

    /// Of a cgroup that the job shares with bursar, and with what started it: what the job has of it.
    fn without_own(&mut self, state: MemoryState) -> MemoryState {
        if !matches!(self.scope, Scope::Tree { within: Some(_), .. }) {
            return state;
        }
        self.own.get_or_insert_with(|| Own::begin(&state)).taken_off(state)
    }

    /// The kernel's own peaks only grow, and vanish with the cgroup: keep the largest seen. In a cgroup that was there
    /// before, only what has grown since is ours; a person who attaches to a cgroup wants its peak from before as well.
    fn keep(&mut self, state: &MemoryState) {
        let is_shared = matches!(self.scope, Scope::Tree { .. });
        let before = self.kept_before.get_or_insert_with(|| if is_shared { *state } else { MemoryState::default() });
        let grown = |now: Option<u64>, before: Option<u64>| now.filter(|now| before.is_none_or(|before| *now > before));
        let kept = &mut self.kept;
        kept.charge_bytes = kept.charge_bytes.max(grown(state.peak, before.peak));
        kept.swap_bytes = kept.swap_bytes.max(grown(state.swap_peak, before.swap_peak));
        kept.hugetlb_bytes = kept.hugetlb_bytes.max(grown(state.hugetlb_peak, before.hugetlb_peak));
        let since = |now: Option<u64>, before: Option<u64>| now.map(|now| now.saturating_sub(before.unwrap_or(0)));
        kept.oom_kills = kept.oom_kills.max(since(state.oom_kills, before.oom_kills));
        kept.limit_hits = kept.limit_hits.max(since(state.limit_hits, before.limit_hits));
    }
}

fn pids_of(scope: &Scope) -> Vec<i32> {
    match scope {
        Scope::Cgroup(group) => group.processes().unwrap_or_default(),
        Scope::Tree { root, .. } => {
            // Where orphans come to us, we are the root, but not of the job.
            let all = std::iter::once(*root).chain(procfs::descendants(*root));
            all.filter(|pid| *pid != std::process::id() as i32).collect()
        }
        Scope::Process(pid) => vec![*pid],
    }
}

/// When the run began, on the clock that processes' start times are on.
fn began_seconds(started: Instant) -> f64 {
    procfs::monotonic_ns() as f64 / 1e9 - started.elapsed().as_secs_f64()
}

fn group_rung(group: &Cgroup) -> &'static str {
    match group.version() {
        linux::cgroup::Version::V1 => "cgroup v1",
        linux::cgroup::Version::V2 => "cgroup v2",
    }
}

fn put_group(row: &mut RowBuilder<'_>, group: &Cgroup, state: &MemoryState) {
    let rung = group_rung(group);
    for (name, value) in [
        (names::CHARGE, state.usage),
        (names::HEAP, state.anon),
        (names::FILE, state.file),
        (names::SHARED, state.shmem),
        (names::KERNEL, state.kernel),
        (names::FILE_DIRTY, state.file_dirty),
        (names::FILE_WRITEBACK, state.file_writeback),
        (names::FILE_MAPPED, state.file_mapped),
        (names::ACTIVE_ANON, state.active_anon),
        (names::INACTIVE_ANON, state.inactive_anon),
        (names::ACTIVE_FILE, state.active_file),
        (names::INACTIVE_FILE, state.inactive_file),
        (names::UNEVICTABLE, state.unevictable),
        (names::SLAB, state.slab),
        (names::SLAB_RECLAIMABLE, state.slab_reclaimable),
        (names::KERNEL_STACKS, state.kernel_stack),
        (names::SOCKETS, state.sock),
        (names::SWAP, state.swap),
        (names::SWAP_CACHE, state.swap_cached),
        (names::HUGE_PAGES, state.anon_thp),
    ] {
        row.bytes(name, rung, value);
    }
    row.bytes(names::HUGETLB, if state.charges_hugetlb { HUGETLB_CHARGED } else { rung }, state.hugetlb);
    for (name, value) in [
        (names::REFAULTS_FILE, state.refault_file),
        (names::REFAULTS_ANON, state.refault_anon),
        (names::SCANNED, state.pgscan),
        (names::RECLAIMED, state.pgsteal),
        (names::MINOR_FAULTS, state.pgfault.zip(state.pgmajfault).map(|(all, major)| all.saturating_sub(major))),
        (names::MAJOR_FAULTS, state.pgmajfault),
    ] {
        row.put(name, Unit::Events, rung, value.map(|v| v as f64));
    }
}

fn put_tree(row: &mut RowBuilder<'_>, sums: &Sums) {
    for (name, value) in [
        (names::HEAP, sums.pss_anon),
        (names::SHARED, sums.pss_shared),
        (names::FILE_MAPPED, sums.pss_file),
        (names::SWAP, sums.swap),
        (names::HUGETLB, sums.hugetlb),
    ] {
        row.bytes(name, "process tree", value);
    }
    for (name, value) in [
        (names::TREE_HEAP_LEAST, sums.least.heap),
        (names::TREE_FILE_LEAST, sums.least.file),
        (names::TREE_SHARED_LEAST, sums.least.shared),
        (names::TREE_SWAP_LEAST, sums.least.swap),
        (names::TREE_HEAP_MOST, sums.most.heap),
        (names::TREE_SHARED_MOST, sums.most.shared),
    ] {
        row.bytes(name, "/proc/PID/status", Some(value));
    }
    row.put(names::MINOR_FAULTS, Unit::Events, "process tree", Some(sums.minor_faults as f64));
    row.put(names::MAJOR_FAULTS, Unit::Events, "process tree", Some(sums.major_faults as f64));
}

fn put_sums(row: &mut RowBuilder<'_>, sums: &Sums, io_wait: IoWait) {
    const STATUS: &str = "/proc/PID/status";
    row.bytes(names::TREE_RSS, "/proc/PID/stat", Some(sums.rss));
    row.bytes(names::TREE_RSS_ANON, STATUS, sums.rss_anon);
    row.bytes(names::TREE_RSS_FILE, STATUS, sums.rss_file);
    row.bytes(names::TREE_RSS_SHARED, STATUS, sums.rss_shared);
    row.bytes(names::TREE_PSS, "smaps_rollup", sums.pss);
    row.bytes(names::TREE_HELD, "smaps_rollup", sums.held);
    row.bytes(names::TREE_HELD_LEAST, STATUS, Some(sums.held_least));
    row.bytes(names::TREE_GAINED, "/proc/PID/stat", Some(sums.gained));
    row.bytes(names::TREE_LOST, "/proc/PID/stat", Some(sums.lost));
    row.bytes(names::TREE_HUGETLB, STATUS, sums.hugetlb);
    row.bytes(names::LOCKED, STATUS, sums.locked);
    row.bytes(names::PINNED, STATUS, sums.pinned);
    row.put(names::CPU, Unit::Seconds, "/proc/PID/stat", Some(sums.cpu_seconds));
    row.put(names::PROCESSES, Unit::Count, "/proc", Some(sums.processes as f64));
    row.put(names::TASKS, Unit::Count, "/proc", Some(sums.tasks as f64));
    row.put(names::TASKS_WAITING, Unit::Count, "/proc/PID/task", sums.waiting.map(|v| v as f64));
    let delay = (io_wait == IoWait::DelayAccounting).then_some(sums.io_delay_seconds);
    row.put(names::IO_DELAY, Unit::Seconds, "/proc/PID/task", delay);
}

fn put_system(row: &mut RowBuilder<'_>, own: Option<psi::Psi>) {
    if let Ok(memory) = procfs::meminfo() {
        row.bytes(names::SYSTEM_USED, "/proc/meminfo", Some(memory.total.saturating_sub(memory.free)));
        row.bytes(names::SYSTEM_SLAB_RECLAIMABLE, "/proc/meminfo", memory.slab_reclaimable);
        row.bytes(names::SYSTEM_NAMES, "/proc/sys/fs", procfs::names_bytes());
    }
    let (rung, pressure) = match own {
        Some(own) => ("cgroup pressure", Some(own)),
        None => ("/proc/pressure (system)", psi::system()),
    };
    if let Some(pressure) = pressure {
        for (name, value) in [
            (names::PSI_MEMORY_SOME, pressure.memory_some_seconds),
            (names::PSI_MEMORY_FULL, pressure.memory_full_seconds),
            (names::PSI_IO_SOME, pressure.io_some_seconds),
            (names::PSI_IO_FULL, pressure.io_full_seconds),
        ] {
            row.put(name, Unit::Seconds, rung, value);
        }
    }
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    row.put(names::OWN_CPU, Unit::Seconds, "clock_gettime", Some(cpu));
    let own = procfs::stat(std::process::id() as i32).ok();
    row.bytes(names::OWN_RSS, "/proc/self/stat", own.map(|stat| stat.rss_pages * procfs::page_bytes()));
}
