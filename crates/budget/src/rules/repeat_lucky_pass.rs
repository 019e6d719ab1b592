//! Repeats the answer's limit if it may have passed by chance.

use model::Bytes;

use super::trial::trial;
use crate::analysis::Analysis;
use crate::bracket::is_close;
use crate::step::Step;

/// If the bracket is close.
pub fn step(a: &Analysis) -> Option<Step> {
    let chance = a.chance.filter(|chance| is_close(&a.bracket) && chance.wants_run)?;
    let why = format!("it read much again, and at {} that was too slow: once more", Bytes(chance.failed));
    Some(trial(a, chance.limit, why))
}
