//! The share of a job's life spent waiting for I/O (MEMSYS 2020, Table 2).

use model::{Observation, Series, names};

/// Block I/O delay over thread lifetime, both summed over all threads, 0 to 1. `sources["io_wait_share"]` says which
/// rung is valid: delay accounting (exit records, else the threads seen alive), else sampled D state.
pub fn io_wait_share(run: &Observation) -> Option<f64> {
    let source = run.sources.get("io_wait_share")?;
    let share = if source.contains("D state") {
        waiting_share(run)?
    } else {
        exit_records_share(run).or_else(|| seen_alive_share(run))?
    };
    Some(share.clamp(0.0, 1.0))
}

fn exit_records_share(run: &Observation) -> Option<f64> {
    let known = run.processes.iter().filter_map(|p| p.io_delay_seconds.zip(p.thread_seconds));
    let (delay, life) = known.fold((0.0, 0.0), |(delay, life), (d, l)| (delay + d, life + l));
    (life > 0.0).then(|| delay / life)
}

fn seen_alive_share(run: &Observation) -> Option<f64> {
    let delay = run.job_series(names::IO_DELAY)?;
    let (_, before) = delay.points.first()?;
    let life = integral(run.job_series(names::TASKS)?);
    (life > 0.0).then(|| (delay.last().unwrap_or(*before) - before) / life)
}

/// Weighed by time and by tasks, so that it is the same quotient as the others.
fn waiting_share(run: &Observation) -> Option<f64> {
    let waiting = integral(run.job_series(names::TASKS_WAITING)?);
    let life = integral(run.job_series(names::TASKS)?);
    (life > 0.0).then(|| waiting / life)
}

/// Value times seconds, each value in force until the next sample.
fn integral(series: &Series) -> f64 {
    series.points.windows(2).map(|pair| pair[0].1 * (pair[1].0 - pair[0].0) as f64 / 1e9).sum()
}
