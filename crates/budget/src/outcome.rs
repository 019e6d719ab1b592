//! Comparing outcomes of runs.

use model::{Method, Outcome, Trial};

use crate::Settings;

/// Whether it did not complete, for another reason than being too slow.
pub fn breaks(trial: &Trial) -> bool {
    matches!(trial.outcome, Outcome::Oom | Outcome::Failed | Outcome::Timeout)
}

/// How bad an outcome is, to find the worst of several.
pub fn severity(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Ok => 0,
        Outcome::TooSlow => 1,
        Outcome::Timeout => 2,
        Outcome::Failed => 3,
        Outcome::Oom => 4,
    }
}

/// Whether a run is made to decide if its limit is enough; a run of another method only shows its cost.
pub fn asks_for_enough(method: Option<Method>) -> bool {
    matches!(method, None | Some(Method::Bursar))
}

/// Whether a completed run took longer than allowed.
pub fn is_too_slow(settings: &Settings, wall_seconds: f64, reference_seconds: f64) -> bool {
    wall_seconds > reference_seconds * (1.0 + settings.slowdown)
}
