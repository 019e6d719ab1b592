//! What `bursar advise try` found: ways to run one command, compared.

use schemars::JsonSchema;
use serde::Serialize;

use crate::FaultCounts;

/// A smaller share of the run time is no gain to act on, nor a difference between two ways.
pub const LEAST_GAIN: f64 = 0.01;

/// A comparison of ways to run a command.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct ArmsReport {
    /// The command.
    pub command: Vec<String>,
    /// Why no further rounds were made.
    pub ended: ArmsEnded,
    /// How many rounds were begun.
    pub rounds: u64,
    /// The ways that were run, in the order in which they were tried first; `plain` is the first.
    pub arms: Vec<ArmFigures>,
    /// Ways that were not run, or not to the end.
    pub left_out: Vec<LeftOut>,
    /// The arm to use; `None`: none is surely faster than `plain`.
    pub best: Option<String>,
    /// Arms that are surely faster than `plain` and as fast as the fastest, within a hundredth of the run time.
    pub equal: Vec<String>,
    /// The share of `plain`'s run time that `best` saves; without `best`, of the arm that seemed to save most.
    pub gain: Option<f64>,
    /// The ends of the gain's interval.
    pub interval: Option<(f64, f64)>,
    /// Lines that keep the fastest way, by place.
    pub settings: Vec<ArmSetting>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
}

/// Why a comparison ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmsEnded {
    /// More rounds would change nothing that matters.
    Decided,
    /// There were as many rounds as were allowed.
    #[default]
    Rounds,
    /// The time allowed was over.
    TimeLimit,
    /// The user interrupted it.
    Interrupted,
}

/// One way to run the command. Seconds and bytes are medians of its runs.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct ArmFigures {
    /// Name of the way.
    pub name: String,
    /// Run time.
    pub wall_seconds: f64,
    /// CPU time of the command and of the children that it waited for.
    pub cpu_seconds: Option<f64>,
    /// Peak memory of its processes together, huge pages of a pool included.
    pub peak_bytes: Option<u64>,
    /// Page faults of the command and of the children that it waited for.
    pub faults: FaultCounts,
    /// Number of runs.
    pub rounds: u64,
    /// The share of `plain`'s run time that it saves; `None` of `plain` itself and of less than two rounds.
    pub gain: Option<f64>,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// Why it was not run to the end.
    pub dropped: Option<String>,
}

/// A way that was not run.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct LeftOut {
    /// Name of the way.
    pub name: String,
    /// Why.
    pub why: String,
}

/// Lines that keep an arm.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct ArmSetting {
    /// Where they go.
    pub place: String,
    /// The lines.
    pub lines: Vec<String>,
}
