//! Repeats a trial that does not decide: too short, too close to the threshold, or contradicted by a smaller limit.

use model::Outcome;

use super::trial::trial;
use crate::analysis::Analysis;
use crate::bracket::is_close;
use crate::step::Step;
use crate::tried::{Tried, is_short};

/// Only once, except for short runs.
pub fn step(a: &Analysis) -> Option<Step> {
    let (tried, bracket) = (&a.tried, &a.bracket);
    let is_short = |t: &Tried| is_short(a, t);
    // More memory cannot be slower: one of the two was misjudged by chance.
    let has_passed_below = |limit: u64| tried.iter().any(|t| t.passed && t.limit < limit);
    let is_contradicted =
        |t: &Tried| t.worst == Outcome::TooSlow && bracket.failed == Some(t.limit) && has_passed_below(t.limit);
    let is_undecided = |t: &&Tried| {
        t.unexplained && bracket.has_edge(t.limit)
            || t.near && bracket.passed == Some(t.limit)
            || is_contradicted(t)
            || is_close(bracket) && t.hardly_failed && bracket.failed == Some(t.limit)
            || is_short(t) && bracket.has_edge(t.limit)
    };
    let again = tried.iter().filter(|t| t.runs < 2 || is_short(t)).find(is_undecided)?;
    let why = if is_short(again) {
        "its runs are short: once more"
    } else {
        "one run so close to the threshold does not decide: once more"
    };
    Some(trial(a, again.limit, why.into()))
}
