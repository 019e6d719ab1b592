//! The planner: an analysis, and the first rule that requests a run.

use crate::analysis::Analysis;
use crate::answer::answer;
use crate::rules::RULES;
use crate::step::Step;
use crate::{Evidence, Settings};

/// The next step. The rules are asked in the order of [`RULES`]. A trial that the search cannot afford is not made; the answer then says
/// so.
pub fn next(settings: &Settings, evidence: &Evidence) -> Step {
    let a = Analysis::of(settings, evidence);
    let mut cut_short = None;
    for rule in RULES {
        match rule(&a) {
            Some(Step::Trial { .. }) if a.spent.is_some() => cut_short = a.cut_short(),
            Some(step) => return step,
            None => {}
        }
    }
    Step::Done(answer(&a, cut_short))
}
