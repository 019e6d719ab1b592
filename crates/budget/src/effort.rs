//! What a search may cost.

use crate::Evidence;

/// The runs of a trial last for at least so many seconds together; shorter jobs start and end by chance a little earlier or later.
const LEAST_SECONDS: f64 = 1.0;

/// But there are no more than this.
const MOST_REPEATS: usize = 4;

/// What a search may cost in run times, references included. More by as many times as a trial has runs.
const MOST_RUN_TIMES: f64 = 8.0;

/// How many runs make up a trial: a short job is repeated until its runs last for [`LEAST_SECONDS`] together.
pub fn runs_of_a_trial(evidence: &Evidence) -> usize {
    let runs = evidence.reference().map_or(1.0, |reference| (LEAST_SECONDS / reference.median).ceil());
    (runs as usize).clamp(1, MOST_REPEATS)
}

/// Whether a search may cost so many run times more.
pub fn affords(evidence: &Evidence, run_times: f64) -> bool {
    let most = MOST_RUN_TIMES.max(evidence.references.len() as f64 + 4.0) * runs_of_a_trial(evidence) as f64;
    evidence.run_times_used().is_none_or(|used| used + run_times <= most)
}
