//! Several runs of a command that were asked for, of which the last may not have come to its end.

use model::{Exit, Header, Observation, RecordKind};
use schemars::JsonSchema;
use serde::Serialize;

/// The option in a record's header: how many were asked for.
pub const RUNS: &str = "runs";

/// Runs that are missing.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Unfinished {
    /// Runs that were to be made.
    pub asked: usize,
    /// Runs that came to their end.
    pub complete: usize,
    /// A clause: what ended the last one.
    pub why: String,
}

impl Unfinished {
    /// What is missing of the runs of a record; `None`: nothing, or one run was asked for.
    pub fn of(header: &Header, runs: &[&Observation]) -> Option<Unfinished> {
        let (asked, complete) = (asked(header)?, runs.iter().filter(|run| is_complete(run)).count());
        let why = why(runs.len(), runs.iter().find(|run| !is_complete(run)));
        (complete < asked).then_some(Unfinished { asked, complete, why })
    }
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unfinished { asked, complete, why } = self;
        write!(to, "{why}: {complete} of {asked} runs complete")
    }
}

/// Whether statistics of several runs count it.
pub fn is_complete(run: &Observation) -> bool {
    run.exit == Exit::Status(0) && !run.evidence.interrupted
}

/// How many runs were asked for, if several were.
pub fn asked(header: &Header) -> Option<usize> {
    let runs = header.options.get(RUNS).filter(|_| header.kind == RecordKind::Run)?;
    runs.parse().ok().filter(|runs| *runs > 1)
}

fn why(made: usize, incomplete: Option<&&Observation>) -> String {
    let Some(run) = incomplete else { return format!("interrupted after run {made}") };
    let number = run.run + 1;
    match run.exit {
        _ if run.evidence.interrupted => "interrupted".into(),
        Exit::Status(status) => format!("run {number} failed with status {status}"),
        Exit::Signal(signal) => format!("signal {signal} ended run {number}"),
        Exit::TimedOut => format!("the time-out ended run {number}"),
        Exit::StoppedEarly => format!("bursar ended run {number}"),
        Exit::StillRunning => format!("the record ends in run {number}"),
    }
}
