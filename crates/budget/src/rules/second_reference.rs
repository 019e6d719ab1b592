//! Requests a second reference if no curve predicts the knee, or only run time can decide.

use super::reference::{reference, unrequested};
use crate::analysis::Analysis;
use crate::noise::FEWEST;
use crate::step::Step;

/// Trials beside a predicted knee usually show the spread as well.
pub fn step(a: &Analysis) -> Option<Step> {
    let n = unrequested(a)?;
    let is_needed = a.evidence.demand.is_none() || a.settings.sizes_itself || a.has_hidden_cost;
    (n < FEWEST && is_needed).then(|| reference("how much its run time varies without a limit"))
}
