//! The planner of a memory budget. Pure: from the evidence it decides which run to make next, when to stop it, and in the end the answer.
//! It has no clock and makes no runs; its caller drives it:
//!
//! ```text
//! loop {
//! match next(&settings, &evidence) {
//! Reference | Trial | Method => run it, calling watch() meanwhile; judge() it; add it to the evidence
//!         Done(answer)               => break
//!     }
//! }
//! methods(&settings, &evidence, &answer)   the comparison
//! ```
//!
//! [`jobs`] is another way to an answer: from a cluster's accounting of past jobs.
//!
//! Each step is an `Analysis` of the evidence, and the first of the rules (`rules/`) that requests a run.
//!
//! The search: a reference without a limit, or two if no curve predicts the knee; then a trial at the predicted knee and one beside it, of
//! which one should pass and one fail. If so, the search is complete; if not, further trials bracket the knee from both sides. References
//! are added where only run time can decide and its spread is too wide or unknown, and where the machine seems to have changed.

mod analysis;
mod answer;
mod bracket;
mod cause;
mod chance;
mod clock;
mod decided;
mod effort;
mod estimate;
mod evidence;
mod facts;
mod grid;
mod impact;
pub mod jobs;
mod judge;
mod methods;
mod nodes;
mod noise;
mod outcome;
mod planner;
mod predict;
mod processor;
mod reference;
mod rules;
mod settings;
mod sizing;
mod step;
mod stretches;
mod tried;

pub use effort::{EffortLeft, effort_left};
pub use estimate::estimate;
pub use evidence::{Evidence, MethodMemory};
pub use judge::{Measured, Progress, judge, ratio_at_least, watch};
pub use methods::{method_notes, methods};
pub use nodes::nodes;
pub use noise::stddev_seconds;
pub use planner::next;
pub use reference::Reference;
pub use settings::Settings;
pub use sizing::{HeldLess, held_less};
pub use step::Step;

/// One mebibyte: limits are whole multiples of it.
const MIB: u64 = 1 << 20;

fn round_up(bytes: u64) -> u64 {
    bytes.div_ceil(MIB) * MIB
}

fn round_down(bytes: u64) -> u64 {
    bytes / MIB * MIB
}

#[cfg(test)]
mod tests {
    use model::{Outcome, Trial};

    use crate::MIB;

    /// A run of the search that was too slow, with nothing else known about it.
    pub fn trial(limit_mib: u64, wall_seconds: f64) -> Trial {
        let begun = Trial::new(2, Some(limit_mib * MIB), Outcome::TooSlow);
        Trial { wall_seconds, runtime_ratio: Some(wall_seconds / 10.0), ..begun }
    }
}
