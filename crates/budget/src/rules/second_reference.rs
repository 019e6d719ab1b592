//! Makes a second reference where no curve foretells the knee, or run time alone will tell.

use super::reference::{reference, unrequested};
use crate::analysis::Analysis;
use crate::noise::FEWEST;
use crate::step::Step;

/// The trials beside a knee that a curve foretells mostly tell the spread as well.
pub fn step(a: &Analysis) -> Option<Step> {
    let n = unrequested(a)?;
    let is_needed = a.evidence.demand.is_none() || a.settings.sizes_itself || a.may_cost_unseen;
    (n < FEWEST && is_needed).then(|| reference("how much its run time varies without a limit"))
}
