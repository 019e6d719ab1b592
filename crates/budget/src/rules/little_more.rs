//! Tries a limit slightly above one that was barely too slow.

use super::trial::trial;
use crate::analysis::Analysis;
use crate::round_up;
use crate::step::Step;
use crate::tried::is_short;

/// How far above a limit that may have failed by chance. A run there is more informative than another at the same limit.
const LITTLE_MORE: f64 = 1.06;

/// If that limit is still below the passing one.
pub fn step(a: &Analysis) -> Option<Step> {
    let mut once = a.tried.iter().filter(|t| t.runs < 2 || is_short(a, t));
    let just_failed = once.find(|t| t.near && a.bracket.failed == Some(t.limit))?;
    let limit = round_up((just_failed.limit as f64 * LITTLE_MORE) as u64);
    let why = "the smaller limit was hardly too slow: is a little more enough?";
    (Some(limit) < a.bracket.pass).then(|| trial(a, limit, why.into()))
}
