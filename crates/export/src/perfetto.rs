//! The Chrome trace event format, which ui.perfetto.dev opens: each run is a process of the trace, each series a
//! counter, each run and each process of it a slice. All runs are on one time line, as they followed one another.

use std::io::{self, Write};

use model::{Bytes, Observation, ProcessKey, RunRole, Trial};
use record::Record;
use serde_json::{Value, json};

use crate::rows::unit_name;

pub(crate) fn write(record: &Record, out: &mut impl Write) -> io::Result<()> {
    let start = record.runs.iter().map(|run| run.started_unix_ns).min().unwrap_or_default();
    let other = json!({"command": record.header.command, "host": record.header.host, "kernel": record.header.kernel});
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{other},\"traceEvents\":[")?;
    let mut first = true;
    for run in &record.runs {
        let trial = record.trials.iter().find(|trial| trial.run == run.run);
        let since_ns = run.started_unix_ns - start;
        let slices = run.processes.iter().filter_map(|process| slice_of_process(run, process, since_ns));
        let heads = names(run, trial).into_iter().chain([slice_of_run(run, trial, since_ns)]);
        for event in heads.chain(slices).chain(counters(run, since_ns)) {
            let separator = if std::mem::take(&mut first) { "\n" } else { ",\n" };
            write!(out, "{separator}{event}")?;
        }
    }
    out.write_all(b"\n]}\n")
}

/// Process 0 is the idle process to trace viewers.
fn trace_process(run: &Observation) -> u32 {
    run.run.saturating_add(1)
}

fn names(run: &Observation, trial: Option<&Trial>) -> [Value; 2] {
    let pid = trace_process(run);
    [
        json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": title(run, trial)}}),
        json!({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": run.run}}),
    ]
}

fn title(run: &Observation, trial: Option<&Trial>) -> String {
    let role = match run.role {
        RunRole::Plain => "run",
        RunRole::Reference => "reference",
        RunRole::Trial => "trial",
        RunRole::Method => "method",
        RunRole::Part => "part",
    };
    let limit = run.limit_bytes.map(|limit| format!(" at {}", Bytes(limit))).unwrap_or_default();
    let outcome = trial.map(|trial| json!(trial.outcome));
    let outcome = outcome.as_ref().and_then(Value::as_str).map(|outcome| format!(": {outcome}")).unwrap_or_default();
    let whose = run.origin.as_ref().map(|origin| match origin.rank {
        Some(rank) => format!(" of rank {rank} on {}", origin.host),
        None => format!(" on {}", origin.host),
    });
    format!("{} {role}{}{limit}{outcome}", run.run, whose.unwrap_or_default())
}

fn slice_of_run(run: &Observation, trial: Option<&Trial>, since_ns: u64) -> Value {
    let args = trial.map_or_else(|| json!({"cache_state": run.cache_state}), |trial| json!(trial));
    json!({
        "ph": "X", "cat": "run", "name": title(run, trial), "pid": trace_process(run), "tid": 0,
        "ts": micros(since_ns), "dur": run.wall_seconds * 1e6, "args": args,
    })
}

/// The part of a process's life that is within the run; `None` if it is not known.
fn slice_of_process(run: &Observation, process: &model::ProcessRecord, since_ns: u64) -> Option<Value> {
    let started = process.started_seconds?;
    let end = process.lifetime_seconds.map_or(run.wall_seconds, |lifetime| started + lifetime);
    let begin = started.max(0.0);
    Some(json!({
        "ph": "X", "cat": "process", "name": process.command, "pid": trace_process(run), "tid": process.key.pid,
        "ts": micros(since_ns) + begin * 1e6, "dur": (end - begin).max(0.0) * 1e6,
        "args": {"max_rss_bytes": process.max_rss_bytes, "exit_status": process.exit_status, "parent": process.parent},
    }))
}

fn counters(run: &Observation, since_ns: u64) -> impl Iterator<Item = Value> {
    run.series.iter().flat_map(move |series| {
        let (name, unit) = (counter_name(run, &series.name, series.process), unit_name(series.unit));
        series.points.iter().map(move |(t_ns, value)| {
            let ts = micros(since_ns.saturating_add(*t_ns));
            json!({"ph": "C", "name": name, "pid": trace_process(run), "ts": ts, "args": {unit: value}})
        })
    })
}

fn counter_name(run: &Observation, series: &str, process: Option<ProcessKey>) -> String {
    let Some(key) = process else { return series.to_string() };
    let command = run.processes.iter().find(|process| process.key == key).map(|process| process.command.as_str());
    // a PID that was used twice makes two tracks
    format!("{series} {} [{} @{}]", command.unwrap_or("?"), key.pid, key.start_ticks)
}

fn micros(t_ns: u64) -> f64 {
    t_ns as f64 / 1e3
}
