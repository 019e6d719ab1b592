//! The processes of a run: joins samples, the processes' own reports, the kernel's exit records and `wait4`.

use std::collections::{BTreeMap, HashMap};

use job::Ended;
use linux::procfs;
use model::{ProcessKey, ProcessRecord, Rusage};

/// The command's process, the stub that started it, and its end.
pub struct Main<'a> {
    pub pid: i32,
    pub stub: i32,
    pub ended: &'a Ended,
    pub wall_seconds: f64,
}

/// Source if the processes report on themselves.
const REPORTED: &str = "reports of each process at its end; samples, and wait4 of the command and of orphans";
/// Source if no process reports, as in a statically linked command.
const SAMPLED: &str =
    "sampled, wait4 of the command and of orphans; others that ended between two samples may be missing";
/// Fewer page faults than any process has, but more than a process has after it has reported its end.
const LEAST_FAULTS: u64 = 24;
/// Processes may have up to `1 / LEAST_PART` of all page faults after their reports.
const LEAST_PART: u64 = 50;

/// Joins the samples, `reported` (exit records, or the processes' own reports) and `wait4` by process. Exact records replace samples.
pub fn merge(
    sampled: Vec<ProcessRecord>,
    reported: Option<Vec<ProcessRecord>>,
    main: &Main,
    sources: &mut BTreeMap<String, String>,
) -> Vec<ProcessRecord> {
    let rung = match reported.iter().flatten().next().map(|process| process.source.as_str()) {
        Some("taskstats") => "exit records (taskstats)",
        Some("inside") => REPORTED,
        Some(_) => "exit tracepoint",
        None => SAMPLED,
    };
    sources.insert("processes".into(), rung.into());
    let mut all = reported.unwrap_or_default();
    // Indexed, because a build has tens of thousands of processes.
    let mut by_pid: HashMap<i32, Vec<usize>> = HashMap::new();
    for (index, known) in all.iter().enumerate() {
        by_pid.entry(known.key.pid).or_default().push(index);
    }
    for process in sampled {
        let pids = [Some(process.key.pid), process.own.map(|own| own.pid)];
        let mut perhaps = pids.into_iter().flatten().filter_map(|pid| by_pid.get(&pid)).flatten();
        match perhaps.find(|index| is_same(&all[**index], &process)) {
            Some(index) => fill(&mut all[*index], process),
            None => all.push(process),
        }
    }
    all.retain(|process| process.key.pid != main.stub);
    if let Some(command) = all.iter_mut().find(|p| p.key.pid == main.pid) {
        command.lifetime_seconds.get_or_insert(main.wall_seconds);
        command.signal = main.ended.exit.signal();
        command.exit_status = main.ended.exit.status();
    }
    all.sort_by_key(|process| (process.key.start_ticks, process.key.pid));
    all
}

/// A process in a PID namespace of its own reports its PID in that namespace.
fn is_same(known: &ProcessRecord, sampled: &ProcessRecord) -> bool {
    match known.own.filter(|_| known.source == "inside") {
        Some(own) => {
            sampled.own == Some(own)
                && known.is(ProcessKey { pid: known.key.pid, start_ticks: sampled.key.start_ticks })
        }
        None => known.is(sampled.key),
    }
}

/// Fills the gaps of an exit record from the last sample.
fn fill(known: &mut ProcessRecord, sampled: ProcessRecord) {
    known.key = sampled.key;
    if known.lifetime_seconds.is_none() {
        known.max_rss_bytes = known.max_rss_bytes.max(sampled.max_rss_bytes);
        known.minor_faults = known.minor_faults.max(sampled.minor_faults);
        known.major_faults = known.major_faults.max(sampled.major_faults);
    }
    known.max_rss_bytes = known.max_rss_bytes.or(sampled.max_rss_bytes);
    known.started_seconds = known.started_seconds.or(sampled.started_seconds);
    known.user_seconds = known.user_seconds.or(sampled.user_seconds);
    known.system_seconds = known.system_seconds.or(sampled.system_seconds);
    // A process that was killed, or that executed a program without the library, did not report its memory.
    if known.source == "inside" {
        known.largest_seen = known.largest_seen.or(sampled.largest_seen);
        known.lifetime_seconds = known.lifetime_seconds.or(sampled.lifetime_seconds);
    }
    known.parent = known.parent.or(sampled.parent);
    known.own = known.own.or(sampled.own);
    if known.command.is_empty() {
        known.command = sampled.command;
    }
}

/// Page faults of processes that neither reported nor were sampled: the kernel's count for the command and the children it waited
/// for, less the known ones. `None`: exit records cover every process, or samples are the only source and the command waited for no
/// child.
pub fn untold_faults(processes: &[ProcessRecord], ended: &Ended, sources: &BTreeMap<String, String>) -> Option<u64> {
    let is_source = |source: &&String| *source == REPORTED || *source == SAMPLED && !ended.waited_for_none;
    sources.get("processes").filter(is_source)?;
    let known: u64 = processes.iter().filter_map(|process| process.minor_faults).sum();
    Some(ended.rusage.minor_faults.saturating_sub(known)).filter(|faults| *faults > LEAST_FAULTS)
}

/// The most memory that page faults can have brought, bytes: a page each, where no page of shared memory may be huge.
pub fn faulted_bytes(processes: &[ProcessRecord], rusage: &Rusage) -> u64 {
    if linux::thp::shared_may_be_huge() {
        return u64::MAX;
    }
    let known: u64 = processes.iter().filter_map(|process| process.minor_faults).sum();
    rusage.minor_faults.max(known).saturating_mul(procfs::page_bytes())
}

/// A sentence on processes that may be missing from the list; `None`: none are.
pub fn missing(untold: Option<u64>, rusage: &Rusage, sources: &BTreeMap<String, String>) -> Option<String> {
    if sources.get("processes").is_none_or(|source| source != REPORTED) {
        return Some("Processes that lived for less than the time between two samples may be missing.".into());
    }
    let faults = untold.filter(|faults| faults.saturating_mul(LEAST_PART) >= rusage.minor_faults)?;
    Some(format!(
        "{faults} of {} page faults are of processes that left no report: processes that were killed, or that are statically \
         linked, may be missing.",
        rusage.minor_faults
    ))
}
