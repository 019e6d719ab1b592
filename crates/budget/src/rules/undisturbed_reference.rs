//! Requests a second reference if the first one waited for storage.

use super::reference::{reference, unrequested};
use crate::analysis::Analysis;
use crate::noise::FEWEST;
use crate::step::Step;

/// The stall of a first start, or caused by earlier work, would be subtracted from the trials' stall.
pub fn step(a: &Analysis) -> Option<Step> {
    let n = unrequested(a)?;
    let has_waited = |stall: f64, wall: f64| stall > a.settings.slowdown * wall;
    let mut references = a.evidence.references.iter();
    let waited = references.any(|r| r.stall_seconds.is_some_and(|stall| has_waited(stall, r.wall_seconds)));
    (n < FEWEST && waited).then(|| reference("it waited for storage: how long does it wait when nothing disturbs it?"))
}
