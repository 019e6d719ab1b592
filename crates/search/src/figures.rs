//! What the planner is told of a run, by what was observed of it.

use budget::Progress;
use model::{Observation, Pressure, names};
use session::observe;

/// How a run goes on all its nodes: the CPU time of all tells how far it has come, and the node that waits longest holds up the others.
pub fn progress_of(nodes: &[observe::Progress]) -> Progress {
    let stall =
        |node: &observe::Progress| Some(stall(node.io_delay_seconds?, node.cpu_seconds?, node.sampled.as_secs_f64()));
    let cpu = nodes.iter().map(|node| node.cpu_seconds).sum::<Option<f64>>();
    let sampled = nodes.iter().map(|node| node.sampled.as_secs_f64()).reduce(f64::min);
    Progress {
        elapsed_seconds: nodes.iter().map(|node| node.elapsed.as_secs_f64()).fold(0.0, f64::max),
        stall_seconds: nodes.iter().filter_map(stall).reduce(f64::max),
        pace: cpu.zip(sampled),
        refaults: nodes.iter().filter_map(|node| node.refaults).reduce(|a, b| a.saturating_add(b)),
    }
}

/// Seconds the job waited for storage, comparable with wall time: the delay of all its tasks, divided by how many of them
/// ran or waited for storage at a time.
fn stall(delay: f64, cpu: f64, wall: f64) -> f64 {
    delay / ((delay + cpu) / wall).max(1.0)
}

pub fn stall_of(observation: &Observation) -> Option<f64> {
    let exit_records = observation.processes.iter().filter_map(|p| p.io_delay_seconds).reduce(|a, b| a + b);
    let delay = or_sampled(observation, exit_records, names::IO_DELAY)?;
    Some(stall(delay, cpu_of(observation)?, observation.wall_seconds))
}

/// Seconds of run time that pressure says were lost. While some task stalled and others went on, it is half: the truth lies between
/// all and nothing (Documentation/accounting/psi.rst). A page that is read again counts as memory and as I/O, so the larger of
/// the two is taken.
pub fn lost_to_pressure(pressure: &Pressure) -> Option<f64> {
    let lost = |some: Option<f64>, full: Option<f64>| Some((some? + full.unwrap_or(0.0)) / 2.0);
    let memory = lost(pressure.memory_some_seconds, pressure.memory_full_seconds);
    let io = lost(pressure.io_some_seconds, pressure.io_full_seconds);
    memory.into_iter().chain(io).reduce(f64::max)
}

pub fn cpu_of(observation: &Observation) -> Option<f64> {
    let waited_for = observation.rusage.map(|r| r.user_seconds + r.system_seconds);
    or_sampled(observation, waited_for, names::CPU)
}

/// Of a run that was stopped, what was killed left no record, and nobody waited for it: the samples know.
fn or_sampled(observation: &Observation, at_exit: Option<f64>, name: &str) -> Option<f64> {
    let sampled = observation.job_series(name).and_then(|series| series.last());
    at_exit.into_iter().chain(sampled).reduce(f64::max)
}

/// CPU seconds used, and when.
pub fn pace(observation: &Observation) -> Vec<(f64, f64)> {
    let points = observation.job_series(names::CPU).map_or(&[][..], |cpu| &cpu.points);
    points.iter().map(|(t_ns, cpu)| (*cpu, *t_ns as f64 / 1e9)).collect()
}

/// The most that two series came to together.
pub fn peak_of_sum(observation: &Observation, [one, other]: [&str; 2]) -> Option<u64> {
    let (one, other) = (observation.job_series(one)?, observation.job_series(other)?);
    let sums = one.points.iter().filter_map(|(t_ns, value)| Some(value + other.at(*t_ns)?));
    sums.reduce(f64::max).map(|bytes| bytes as u64)
}
