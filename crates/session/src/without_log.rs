//! Processes of a job beside the logs that they have left: which left none, and what the kernel kept of those that did.

use attribute::{Here, KernelPeak, ProcessLog};
use linux::procfs;
use model::{Observation, OtherProcess, ProcessKey, ProcessRecord};

use crate::launch;
use crate::logs::Found;

/// Without a log, what ran for less is some child that ended before it had one.
const WORTH_NAMING_SECONDS: f64 = 1.0;
/// Nor one that became another program, unless it held as much.
const WORTH_NAMING_BYTES: u64 = 8 << 20;
/// And as large a part of what the largest held.
const WORTH_NAMING_SHARE: u64 = 50;

/// From where the job's processes were seen.
pub fn here(observation: &Observation) -> Here {
    Here {
        host: procfs::hostname(),
        boot: procfs::boot_id().unwrap_or_default(),
        pid_namespace: procfs::pid_namespace(std::process::id() as i32).map_or(0, u64::from),
        started_unix_ns: observation.started_unix_ns,
    }
}

/// Whether a log is that process's, as `identify` has found it.
fn is_of(log: &ProcessLog, process: &ProcessRecord) -> bool {
    let namespace = procfs::pid_namespace(std::process::id() as i32).map_or(0, u64::from);
    let is_here = log.started.pid_namespace == 0 || namespace == 0 || log.started.pid_namespace == namespace;
    is_here && process.is(ProcessKey { pid: log.started.pid, start_ticks: log.started.start_ticks })
}

/// Processes of the job that have left no log, or became a program that left none.
pub fn strangers<'a>(processes: &'a [ProcessRecord], found: &Found) -> Vec<&'a ProcessRecord> {
    let is_launcher = |process: &ProcessRecord| launch::is_launcher(&process.command);
    let is_rank = |process: &ProcessRecord| {
        processes.iter().any(|parent| Some(parent.key.pid) == process.parent && is_launcher(parent))
    };
    let ran_long = |process: &ProcessRecord| {
        // Without root its CPU time is all that is known.
        let ran = process.lifetime_seconds.or(process.user_seconds.zip(process.system_seconds).map(|(u, s)| u + s));
        ran.is_some_and(|seconds| seconds > WORTH_NAMING_SECONDS)
    };
    let largest = processes.iter().filter_map(|process| process.max_rss_bytes).max().unwrap_or_default();
    let held_much = |process: &ProcessRecord| {
        let much = WORTH_NAMING_BYTES.max(largest / WORTH_NAMING_SHARE);
        obtained(process, processes).is_some_and(|bytes| bytes >= much)
    };
    let is_stranger = |process: &&ProcessRecord| {
        let logs = found.logs.iter().filter(|log| is_of(log, process));
        match logs.max_by_key(|log| log.started.unix_ns) {
            // Behind chroot there may be no /proc to look into before exec.
            Some(last) => says_without(last) || last.totals.last().is_some_and(|totals| totals.reason == "exec"),
            None => ran_long(process) || is_rank(process) || held_much(process),
        }
    };
    processes.iter().filter(|process| !is_launcher(process) && is_stranger(process)).collect()
}

/// What a process held that its parent did not, at most. A process with its parent's name may be a fork, which shares the pages that it
/// did not fault in.
fn obtained(process: &ProcessRecord, processes: &[ProcessRecord]) -> Option<u64> {
    let parent = processes.iter().find(|parent| Some(parent.key.pid) == process.parent);
    let may_share = parent.is_some_and(|parent| parent.command == process.command);
    match may_share {
        true => Some(process.max_rss_bytes?.min(process.minor_faults? * procfs::page_bytes())),
        false => process.max_rss_bytes,
    }
}

/// The same in a sentence; without any log another one says why.
pub fn strangers_note(strangers: &[&ProcessRecord], found: &Found) -> Option<String> {
    // What it was before has said why already.
    let is_explained =
        |process: &&&ProcessRecord| found.logs.iter().any(|log| is_of(log, process) && says_without(log));
    let strangers: Vec<_> = strangers.iter().filter(|process| !is_explained(process)).collect();
    let first = strangers.first().filter(|_| !found.logs.is_empty())?;
    let more = match strangers.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    Some(format!(
        "{} ({}){more} ran without the library, and is in no figure: it is statically linked, of 32 bits, setuid, was \
         given another environment, or does not see the library (a mount namespace, a container, chroot).",
        first.command, first.key.pid
    ))
}

/// Whether a process has told that it was about to become a program that the library is not in.
fn says_without(log: &ProcessLog) -> bool {
    log.notes.iter().any(|note| note.contains("the library is not in it"))
}

/// Those that held much, largest first.
pub fn large(host: &str, strangers: &[&ProcessRecord], processes: &[ProcessRecord]) -> Vec<OtherProcess> {
    let process = |process: &&ProcessRecord| {
        Some(OtherProcess {
            pid: process.key.pid,
            host: host.into(),
            command: process.command.clone(),
            peak_bytes: obtained(process, processes).filter(|bytes| *bytes >= WORTH_NAMING_BYTES)?,
        })
    };
    let mut large: Vec<OtherProcess> = strangers.iter().filter_map(process).collect();
    large.sort_by_key(|process| std::cmp::Reverse(process.peak_bytes));
    large
}

/// The largest resident sets that the kernel kept of those of the job's processes that have left logs here.
pub fn kernel_peaks(observation: &Observation, logs: &[ProcessLog]) -> Vec<KernelPeak> {
    let here = here(observation);
    let peak = |process: &ProcessRecord| {
        let ended_seconds = process.started_seconds.zip(process.lifetime_seconds).map(|(start, life)| start + life);
        let unix_ns = |seconds: f64| observation.started_unix_ns.saturating_add_signed((seconds * 1e9) as i64);
        let log = logs.iter().find(|log| here.has(&log.started) && is_of(log, process))?;
        Some(KernelPeak {
            host: log.started.host.clone(),
            pid: process.key.pid,
            start_ticks: log.started.start_ticks,
            max_rss_bytes: process.max_rss_bytes?,
            ended_unix_ns: ended_seconds.map(unix_ns),
            exit_status: process.exit_status,
        })
    };
    let mut peaks: Vec<KernelPeak> = observation.processes.iter().filter_map(peak).collect();
    // Without exit records, peaks are samples; `wait4` knows the largest process alone, and counts what it was before exec:
    // one whose log has an end was looked at then, and gains nothing by it.
    let has_end = |peak: &KernelPeak| {
        let is_its = |log: &&ProcessLog| log.started.host == peak.host && log.started.pid == peak.pid;
        logs.iter().filter(is_its).any(|log| log.ended.is_some())
    };
    let largest = peaks.iter_mut().max_by_key(|peak| peak.max_rss_bytes);
    if let (Some(largest), Some(usage)) = (largest.filter(|largest| !has_end(largest)), observation.rusage) {
        largest.max_rss_bytes = largest.max_rss_bytes.max(usage.max_rss_bytes);
    }
    peaks
}
