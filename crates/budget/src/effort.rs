//! The effort that a search may cost.

use crate::{Evidence, Settings};

/// The runs of a trial last at least this many seconds together; the run time of shorter jobs varies too much.
const LEAST_SECONDS: f64 = 1.0;

/// The most runs of a trial.
const MOST_REPEATS: usize = 4;

/// The effort of a search in reference run times, references included; multiplied by the runs of a trial.
const MOST_RUN_TIMES: f64 = 8.0;

/// How many runs make up a trial: a short job is repeated until its runs last [`LEAST_SECONDS`] together.
pub fn runs_of_a_trial(evidence: &Evidence) -> usize {
    let runs = evidence.reference().map_or(1.0, |reference| (LEAST_SECONDS / reference.median).ceil());
    (runs as usize).clamp(1, MOST_REPEATS)
}

/// Whether a search may use this many more run times.
pub fn affords(evidence: &Evidence, run_times: f64) -> bool {
    evidence.run_times_used().is_none_or(|used| used + run_times <= most_run_times(evidence))
}

/// The effort that a search may cost, in reference run times.
pub fn most_run_times(evidence: &Evidence) -> f64 {
    MOST_RUN_TIMES.max(evidence.references.len() as f64 + 4.0) * runs_of_a_trial(evidence) as f64
}

/// The effort left to a search, without the comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffortLeft {
    /// The number of the next trial, from 1.
    pub trial: usize,
    /// An upper bound of the time, seconds.
    pub seconds: f64,
}

/// `None` before a run time is known.
pub fn effort_left(settings: &Settings, evidence: &Evidence) -> Option<EffortLeft> {
    let trials = evidence.search_trials().count();
    let run_times = most_run_times(evidence) - evidence.run_times_used()?;
    let trials_left = (settings.max_trials as usize).saturating_sub(trials);
    let seconds = run_times.min(trials_left as f64).max(0.0) * evidence.reference()?.median;
    Some(EffortLeft { trial: trials + 1, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;
    use crate::tests::trial;

    #[test]
    fn the_effort_left_is_bound_by_run_times_and_by_trials() {
        let settings = Settings::default();
        let mut evidence = Evidence::default();
        assert_eq!(effort_left(&settings, &evidence), None, "before the first run");
        evidence.references = vec![Reference { wall_seconds: 10.0, ..Reference::default() }; 2];
        assert_eq!(effort_left(&settings, &evidence), Some(EffortLeft { trial: 1, seconds: 60.0 }));
        evidence.trials = vec![trial(100, 15.0)];
        assert_eq!(effort_left(&settings, &evidence), Some(EffortLeft { trial: 2, seconds: 45.0 }));
        let few = Settings { max_trials: 2, ..settings };
        assert_eq!(effort_left(&few, &evidence), Some(EffortLeft { trial: 2, seconds: 10.0 }));
        evidence.trials = vec![trial(100, 70.0)];
        assert_eq!(effort_left(&few, &evidence), Some(EffortLeft { trial: 2, seconds: 0.0 }));
    }
}
