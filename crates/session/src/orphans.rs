//! Processes of the command whose parent ended first: without a cgroup they come to bursar, and `wait4` tells what each used.

use linux::children::Orphan;
use linux::procfs;
use model::{ProcessKey, ProcessRecord};

/// A process that started up to this long before the run's begin, as its ticks round, is the run's.
const SLACK_SECONDS: f64 = 0.02;

/// Adds what `wait4` said of orphans to what samples saw of them, and those that no sample saw. `began_seconds`: the run's begin on
/// CLOCK_MONOTONIC.
pub fn add(all: &mut Vec<ProcessRecord>, orphans: Vec<Orphan>, began_seconds: f64) {
    for orphan in orphans {
        let record = record(orphan, began_seconds);
        if record.started_seconds.is_some_and(|started| started < -SLACK_SECONDS) {
            continue;
        }
        match all.iter_mut().find(|known| known.is(record.key)) {
            Some(known) => complete(known, record),
            None => all.push(record),
        }
    }
    all.sort_by_key(|process| (process.key.start_ticks, process.key.pid));
}

/// Its peak RSS is that of the largest of it and the children that it waited for.
fn record(orphan: Orphan, began_seconds: f64) -> ProcessRecord {
    let Orphan { pid, stat, ended } = orphan;
    ProcessRecord {
        command: stat.comm,
        started_seconds: Some(procfs::start_seconds(stat.starttime) - began_seconds),
        max_rss_bytes: Some(ended.rusage.max_rss_bytes),
        user_seconds: Some(procfs::seconds_of(stat.utime)),
        system_seconds: Some(procfs::seconds_of(stat.stime)),
        minor_faults: Some(stat.minflt),
        major_faults: Some(stat.majflt),
        exit_status: ended.exit.status(),
        signal: ended.exit.signal(),
        ..ProcessRecord::new(ProcessKey { pid, start_ticks: stat.starttime }, "wait4")
    }
}

fn complete(known: &mut ProcessRecord, reaped: ProcessRecord) {
    known.max_rss_bytes = known.max_rss_bytes.max(reaped.max_rss_bytes);
    known.user_seconds = reaped.user_seconds.or(known.user_seconds);
    known.system_seconds = reaped.system_seconds.or(known.system_seconds);
    known.minor_faults = known.minor_faults.max(reaped.minor_faults);
    known.major_faults = known.major_faults.max(reaped.major_faults);
    known.exit_status = known.exit_status.or(reaped.exit_status);
    known.signal = known.signal.or(reaped.signal);
}
