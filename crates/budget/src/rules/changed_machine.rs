//! Requests a second reference after the machine has become faster or slower.

use super::reference::{affordable, reference};
use crate::analysis::Analysis;
use crate::noise::FEWEST;
use crate::step::Step;
use crate::stretches::stretches;

/// Earlier references no longer count, and a single one has no spread.
pub fn step(a: &Analysis) -> Option<Step> {
    let n = affordable(a)?;
    let is_alone = stretches(&a.evidence.references).last().is_some_and(|now| now.len() < FEWEST);
    (n > FEWEST && is_alone)
        .then(|| reference("the machine has changed: how long does it take now, and how much does that vary?"))
}
