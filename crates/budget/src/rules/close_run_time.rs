//! Requests another reference if the answer depends on a run time close to the threshold.

use super::reference::{affordable, for_spread};
use crate::analysis::Analysis;
use crate::step::Step;

/// The spread of the references must be known better first.
pub fn step(a: &Analysis) -> Option<Step> {
    affordable(a).filter(|_| a.hangs_on_run_time).and_then(|_| for_spread(a))
}
