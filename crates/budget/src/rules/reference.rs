//! A run without a limit, as a step of the search.

use crate::analysis::Analysis;
use crate::effort::affords;
use crate::noise::FEWEST;
use crate::step::Step;

/// The maximum number of references for the spread.
const MOST: usize = 4;

/// The step.
pub fn reference(why: impl Into<String>) -> Step {
    Step::Reference { compared: false, why: why.into() }
}

/// The number of references, if the user has not set one.
pub fn unrequested(a: &Analysis) -> Option<usize> {
    a.settings.runs.is_none().then_some(a.evidence.references.len())
}

/// The same, if there is at least one and one more may be made.
pub fn affordable(a: &Analysis) -> Option<usize> {
    unrequested(a).filter(|n| *n > 0 && affords(a.evidence, 1.0))
}

/// One more reference, if the slow-down cannot be distinguished from noise yet. None is needed where memory is clearly enough or clearly
/// short, and unrestricted runs agree with the references.
pub fn for_spread(a: &Analysis) -> Option<Step> {
    let n = unrequested(a).filter(|n| *n < MOST && affords(a.evidence, 1.0))?;
    let is_decided = a.memory_is_conclusive || a.margin_is_conclusive || n >= FEWEST && a.resolves_slow_down;
    let percent = a.settings.slowdown * 100.0;
    match () {
        _ if is_decided => None,
        _ if n < FEWEST => Some(reference("how much its run time varies without a limit")),
        _ => Some(reference(format!("its run time varies too much so far to detect a slow-down of {percent:.0} %"))),
    }
}
