//! Whether the answer is decided, and by what: by memory alone, by a wide margin, or only by run time.

use model::Outcome;

use crate::bracket::Bracket;
use crate::cause::is_surely_slow;
use crate::noise::Noise;
use crate::tried::Tried;

/// Whether the answer depends on a run time so close to the threshold that the references' spread must be known better.
pub fn by_time_alone(a: &Noise, tried: &[Tried], bracket: &Bracket) -> bool {
    if a.resolves_slow_down {
        return false;
    }
    tried.iter().any(|t| (t.near || t.hardly_failed) && bracket.has_edge(t.limit))
}

/// Whether memory figures alone show that the limits next to the answer are enough, and too little.
pub fn by_memory(a: &Noise, bracket: &Bracket) -> bool {
    if a.has_hidden_cost {
        return false;
    }
    let is_told = |limit: u64, passed: bool| {
        a.evidence.search_trials().filter(|t| t.limit_bytes == Some(limit)).any(|t| match t.outcome {
            Outcome::Ok => passed && a.cost_nothing(t),
            Outcome::TooSlow if passed => a.is_untouched(t) || a.cost_nothing(t),
            Outcome::TooSlow => is_surely_slow(a, t),
            Outcome::Oom | Outcome::Failed | Outcome::Timeout => !passed,
        })
    };
    bracket.pass.is_some_and(|limit| is_told(limit, true)) && bracket.failed.is_none_or(|limit| is_told(limit, false))
}

/// Whether the limits next to the answer passed and failed so clearly that chance is excluded, though run times vary by more than the
/// slow-down. A single reference does not suffice: it may have been slow for another reason.
pub fn by_margin(a: &Noise, tried: &[Tried], bracket: &Bracket) -> bool {
    let is_clear = |limit: Option<u64>| tried.iter().any(|t| Some(t.limit) == limit && t.clear);
    a.evidence.timed().len() > 1 && is_clear(bracket.passed) && (bracket.failed.is_none() || is_clear(bracket.failed))
}
