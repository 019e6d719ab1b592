//! The planner's rules, one per file, in the order in which they are asked:
//!
//! 1. [`requested_references`]
//! 2. [`first_reference`]
//! 3. [`undisturbed_reference`]
//! 4. [`second_reference`]
//! 5. [`changed_machine`]
//! 6. [`close_run_time`]
//! 7. [`suspected_drift`]
//! 8. [`cheap_reading`]
//! 9. [`repeat_undecided`]
//! 10. [`little_more`]
//! 11. [`untried_answer`]
//! 12. [`repeat_lucky_pass`]
//! 13. [`predicted_knee`]
//! 14. [`narrow_bracket`]
//! 15. [`last_reference`]
//! 16. [`comparison`]
//!
//! References come first (1 to 8): every trial is judged by them, so gaps in them are filled before a run is misjudged. An undecided trial
//! is repeated (9, 10) before the next limit is chosen, because that choice depends on it. Once the bracket is close, its passing limit is
//! confirmed (11, 12); until then it is narrowed, by prediction first (13), which takes fewer trials than halving (14). References for the
//! answer (15) wait for the search, which often makes them unnecessary, and the comparison (16) needs the search's limit. If no rule
//! requests a run, the answer is given.

mod changed_machine;
mod cheap_reading;
mod close_run_time;
mod comparison;
mod first_reference;
mod last_reference;
mod little_more;
mod narrow_bracket;
mod predicted_knee;
mod reference;
mod repeat_lucky_pass;
mod repeat_undecided;
mod requested_references;
mod second_reference;
mod suspected_drift;
mod trial;
mod undisturbed_reference;
mod untried_answer;

use crate::analysis::Analysis;
use crate::step::Step;

/// A requested run with its reason; `None`: the rule requests nothing.
pub type Rule = fn(&Analysis) -> Option<Step>;

/// All rules in order.
pub const RULES: [Rule; 16] = [
    requested_references::step,
    first_reference::step,
    undisturbed_reference::step,
    second_reference::step,
    changed_machine::step,
    close_run_time::step,
    suspected_drift::step,
    cheap_reading::step,
    repeat_undecided::step,
    little_more::step,
    untried_answer::step,
    repeat_lucky_pass::step,
    predicted_knee::step,
    narrow_bracket::step,
    last_reference::step,
    comparison::step,
];
