//! What was advised in a run, as it is told afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What advice did in a run.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Advice {
    /// The run.
    pub run: u32,
    /// In figures.
    #[serde(flatten)]
    pub figures: AdviceFigures,
    /// Decisions with their numbers; of many some.
    pub explained: Vec<Explained>,
}

/// The figures of all processes together.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AdviceFigures {
    /// Peak of huge memory over peak of anonymous memory; `None`: there was no memory.
    pub huge_share: Option<f64>,
    /// Regions of 2 MiB that were made huge pages, or populated as such.
    pub promoted: u64,
    /// Huge pages that were split.
    pub demoted: u64,
    /// Populated ahead of the program.
    pub populated_bytes: u64,
    /// How often something was decided.
    pub decisions: u64,
    /// Processor time of bursar's own threads, or of its agent.
    pub cpu_seconds: f64,
}

/// A decision about a range: its time, action, cost and benefit.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Explained {
    /// The process.
    pub pid: i32,
    /// Seconds since it began.
    pub seconds: f64,
    /// Kind of mapping: `heap`, `mmap`, `bss`, `data`, `stack` or `code`.
    pub kind: String,
    /// Which of them, as in a profile: the size class, the object, or `-`.
    pub which: String,
    /// Number of the range within its class; `None`: the only one, or not known.
    pub ordinal: Option<u64>,
    /// Start of the range within the mapping, bytes.
    pub from: u64,
    /// Size of the range, bytes.
    pub bytes: u64,
    /// The action: `huge`, `eager`, `pool`, `base`, `leave`, `promote`, `demote`.
    pub action: String,
    /// The rule that decided: `profile`, `dense`, `growth`, and so on.
    pub why: String,
    /// Expected cost, in ns of the program's time.
    pub cost_ns: f64,
    /// Expected benefit, in ns.
    pub benefit_ns: f64,
}
