//! A decision as it is told afterwards.

use serde::{Deserialize, Serialize};

/// What was decided of a range, when, and by which numbers: one of the `explained` of `bursar advise run --stats`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The process.
    pub pid: i32,
    /// Seconds since it began.
    pub seconds: f64,
    /// Kind of mapping: `heap`, `mmap`, `bss`, `data`, `stack` or `code`.
    pub kind: String,
    /// Which of them, as in a profile: the size class, the object, or `-`.
    pub which: String,
    /// Which of that class; `None`: the only one, or not told.
    pub ordinal: Option<u64>,
    /// Where it begins within the mapping, in bytes.
    pub from: u64,
    /// How large it is, in bytes.
    pub bytes: u64,
    /// What was done: `huge`, `eager`, `base`, `leave`, `promote`, `demote`.
    pub action: String,
    /// By what: `profile`, `dense`, `growth`, and so on.
    pub why: String,
    /// Expected cost, in ns of the program's time.
    pub cost_ns: f64,
    /// Expected benefit, in ns.
    pub benefit_ns: f64,
}
