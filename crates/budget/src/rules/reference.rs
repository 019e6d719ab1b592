//! A run without a limit, as a step of the search.

use crate::analysis::Analysis;
use crate::effort::affords;
use crate::noise::FEWEST;
use crate::step::Step;

/// No more references than these are made for their spread.
const MOST: usize = 4;

/// The step.
pub fn reference(why: impl Into<String>) -> Step {
    Step::Reference { compared: false, why: why.into() }
}

/// How many there are, where nobody has said how many there shall be.
pub fn unrequested(a: &Analysis) -> Option<usize> {
    a.settings.runs.is_none().then_some(a.evidence.references.len())
}

/// The same, once there are some, and where one more may be made.
pub fn affordable(a: &Analysis) -> Option<usize> {
    unrequested(a).filter(|n| *n > 0 && affords(a.evidence, 1.0))
}

/// One more, if the slow-down cannot be told from noise by those there are. Where memory is clearly enough or clearly short, and runs
/// that did not come to their limit agree with the references, none is needed.
pub fn to_tell(a: &Analysis) -> Option<Step> {
    let n = unrequested(a).filter(|n| *n < MOST && affords(a.evidence, 1.0))?;
    let is_told = a.is_told_by_memory || a.is_told_by_margin || n >= FEWEST && a.can_tell;
    let percent = a.settings.slowdown * 100.0;
    match () {
        _ if is_told => None,
        _ if n < FEWEST => Some(reference("how much its run time varies without a limit")),
        _ => Some(reference(format!("its run time varies too much so far to tell a slow-down of {percent:.0} %"))),
    }
}
