//! Requests another reference if the machine seems to have changed since the last one.

use model::{Outcome, Trial};

use super::reference::{affordable, reference};
use crate::analysis::Analysis;
use crate::cause::is_unexplained;
use crate::step::Step;

/// The last two runs under a limit were both slower, or both faster, than memory explains. One is enough if it never reached its limit: it
/// shows only the machine's speed, and each further trial would be misjudged as well.
pub fn step(a: &Analysis) -> Option<Step> {
    affordable(a).filter(|_| !a.hangs_on_run_time)?;
    // A program that sizes itself may be faster under a limit.
    let since = a.evidence.references.last().filter(|_| !a.settings.sizes_itself)?.run;
    let recent: Vec<&Trial> = a.evidence.search_trials().filter(|t| t.run > since).collect();
    if recent.last().is_some_and(|t| t.outcome == Outcome::TooSlow && a.is_untouched(t)) {
        return Some(reference("a run was slower and never came to its limit: has the machine become slower?"));
    }
    let last_two = &recent[recent.len().checked_sub(2)?..];
    let is_slow = |t: &&Trial| is_unexplained(a, t) || t.outcome == Outcome::TooSlow && a.is_untouched(t);
    let is_fast = |t: &&Trial| {
        t.outcome == Outcome::Ok && t.runtime_ratio.is_some_and(|ratio| ratio * (1.0 + a.settings.slowdown) < 1.0)
    };
    let how = match () {
        _ if last_two.iter().all(is_slow) => "slower",
        _ if last_two.iter().all(is_fast) => "faster",
        _ => return None,
    };
    Some(reference(format!("two runs were {how}, and memory does not explain it: has the machine become {how}?")))
}
