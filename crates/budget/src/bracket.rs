//! The bracket of the knee.

use crate::facts::Facts;
use crate::tried::Tried;
use crate::{MIB, round_up};

/// The search ends when the smallest passing limit is at most this many times the largest failing one.
pub const CLOSE: f64 = 1.12;

/// The knee lies above `fail` and at or below `pass`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bracket {
    /// The largest limit that failed.
    pub failed: Option<u64>,
    /// The smallest limit that passed, with no failed limit above it.
    pub passed: Option<u64>,
    /// The larger of `failed` and the limit that the floor rules out.
    pub fail: Option<u64>,
    /// The smaller of `passed` and the peak charge without a limit.
    pub pass: Option<u64>,
}

impl Bracket {
    /// Whether a limit is one of the edges that were tried.
    pub fn has_edge(&self, limit: u64) -> bool {
        self.passed == Some(limit) || self.failed == Some(limit)
    }
}

/// Computes the bracket from the limits tried.
pub fn bracket(a: &Facts, tried: &[Tried]) -> Bracket {
    let failed = tried.iter().filter(|t| !t.passed).map(|t| t.limit).max();
    let passed = tried.iter().filter(|t| t.passed && Some(t.limit) > failed).map(|t| t.limit).min();
    let is_enough = |peak: &u64| Some(*peak) > failed && a.writers_knee.is_none();
    let unreclaimed = a.peak.map(round_up).filter(is_enough);
    let pass = match (passed, unreclaimed) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    // A limit that passed below the floor refutes the floor.
    let ruled_out = a.killed_below.filter(|floor| pass.is_none_or(|pass| *floor < pass));
    Bracket { failed, passed, fail: failed.max(ruled_out), pass }
}

/// Whether the knee is known closely enough.
pub fn is_close(bracket: &Bracket) -> bool {
    match (bracket.fail, bracket.pass) {
        (Some(fail), Some(pass)) => pass as f64 <= fail as f64 * CLOSE || pass - fail <= MIB,
        (None, Some(pass)) => pass <= MIB,
        _ => false,
    }
}
