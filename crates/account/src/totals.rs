//! What was counted up over the run.

use model::{FaultCounts, FlowCounts, Observation, Pressure, names};

/// How much a counter grew: last minus first. One sample shows no growth and no lack of it.
pub fn counted(run: &Observation, name: &str) -> Option<f64> {
    match run.job_series(name)?.points.as_slice() {
        [(_, first), .., (_, last)] => Some(last - first),
        _ => None,
    }
}

/// User and system time: `wait4`'s, else the sum over the processes for which it is known.
pub fn cpu_seconds(run: &Observation) -> (Option<f64>, Option<f64>) {
    if let Some(usage) = run.rusage {
        return (Some(usage.user_seconds), Some(usage.system_seconds));
    }
    let sum = |of: fn(&model::ProcessRecord) -> Option<f64>| run.processes.iter().filter_map(of).reduce(|a, b| a + b);
    (sum(|p| p.user_seconds), sum(|p| p.system_seconds))
}

/// Page faults. `wait4` misses processes that nobody waited for, the series what came after the last sample: both are
/// lower bounds, and the larger is the better.
pub fn faults(run: &Observation) -> FaultCounts {
    FaultCounts {
        minor: run.rusage.map(|usage| usage.minor_faults).max(events(run, names::MINOR_FAULTS)),
        major: run.rusage.map(|usage| usage.major_faults).max(events(run, names::MAJOR_FAULTS)),
    }
}

/// Reclaim and refaults.
pub fn flow(run: &Observation) -> FlowCounts {
    FlowCounts {
        // What else counts them counts those of others where the limit is emulated.
        refaults_file: run
            .evidence
            .emulated
            .map(|emulated| emulated.read_again_pages)
            .or_else(|| events(run, names::REFAULTS_FILE)),
        refaults_anon: events(run, names::REFAULTS_ANON),
        scanned: events(run, names::SCANNED),
        reclaimed: events(run, names::RECLAIMED),
    }
}

/// Pressure; the rung of the series says whose it is.
pub fn pressure(run: &Observation) -> Pressure {
    let scope = [names::PSI_MEMORY_SOME, names::PSI_IO_SOME]
        .iter()
        .find_map(|name| run.job_series(name))
        .map(|series| if series.rung.contains("cgroup") { "job" } else { "system" }.to_string());
    Pressure {
        scope,
        memory_some_seconds: counted(run, names::PSI_MEMORY_SOME),
        memory_full_seconds: counted(run, names::PSI_MEMORY_FULL),
        io_some_seconds: counted(run, names::PSI_IO_SOME),
        io_full_seconds: counted(run, names::PSI_IO_FULL),
    }
}

/// Processes seen: all of them where each was recorded, else the most at once.
pub fn processes(run: &Observation) -> Option<u64> {
    match run.processes.len() {
        0 => run.job_series(names::PROCESSES)?.peak().map(|v| v as u64),
        n => Some(n as u64),
    }
}

fn events(run: &Observation, name: &str) -> Option<u64> {
    counted(run, name).map(|v| v.max(0.0) as u64)
}
