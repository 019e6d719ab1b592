//! The planner of a memory budget. Pure: told what was seen, it says which run to make next, when to stop it, and in the
//! end what the answer is. It has no clock and makes no run; the command drives it:
//!
//! ```text
//! loop {
//!     match next(&settings, &seen) {
//!         Reference | Trial | Method => run it, asking watch() as it goes; judge() it; add it to seen
//!         Done(answer)               => break
//!     }
//! }
//! methods(&settings, &seen, &answer)   the comparison
//! ```
//!
//! [`jobs`] is another way to an answer: from what a cluster's accounting tells of past jobs.
//!
//! Each step is an `Analysis` of the evidence and the first of the rules (`rules/`) that asks for a run.
//!
//! The search: a reference without a limit, two where no curve foretells the knee; then a trial at the predicted knee and one
//! beside it, one of which should pass and one fail. If so, that is all; if not, the trials bracket the knee from both sides.
//! References are added where run time alone must tell and the spread of the runs there are is too wide or not known, and
//! where the machine seems to have changed.

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

    /// A run of the search that was too slow, of which nothing else is known.
    pub fn trial(limit_mib: u64, wall_seconds: f64) -> Trial {
        let begun = Trial::new(2, Some(limit_mib * MIB), Outcome::TooSlow);
        Trial { wall_seconds, runtime_ratio: Some(wall_seconds / 10.0), ..begun }
    }
}
