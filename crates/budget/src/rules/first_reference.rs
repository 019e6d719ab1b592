//! Requests the first run, without a limit.

use super::reference::{reference, unrequested};
use crate::analysis::Analysis;
use crate::step::Step;

/// If there is no reference yet.
pub fn step(a: &Analysis) -> Option<Step> {
    (unrequested(a)? == 0).then(|| reference("how long it takes, and what it uses, without a limit"))
}
