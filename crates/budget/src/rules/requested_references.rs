//! Requests as many references as the user has set.

use super::reference::reference;
use crate::analysis::Analysis;
use crate::step::Step;

/// With `--runs`.
pub fn step(a: &Analysis) -> Option<Step> {
    let (runs, n) = (a.settings.runs?.max(1) as usize, a.evidence.references.len());
    (n < runs).then(|| reference(format!("reference {} of {runs}: how long it takes without a limit", n + 1)))
}
