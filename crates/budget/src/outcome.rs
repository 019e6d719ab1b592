//! Outcomes of runs, compared.

use model::{Method, Outcome, Trial};

use crate::Settings;

/// Whether it did not come to its end, for another reason than that it was too slow.
pub fn breaks(trial: &Trial) -> bool {
    matches!(trial.outcome, Outcome::Oom | Outcome::Failed | Outcome::Timeout)
}

/// How bad an outcome is, for the worst of several.
pub fn severity(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Ok => 0,
        Outcome::TooSlow => 1,
        Outcome::Timeout => 2,
        Outcome::Failed => 3,
        Outcome::Oom => 4,
    }
}

/// Whether a run is to tell if its limit is enough; another method's is to show what it costs.
pub fn asks_for_enough(method: Option<Method>) -> bool {
    matches!(method, None | Some(Method::Bursar))
}

/// Whether a run that came to its end took longer than is allowed.
pub fn is_too_slow(settings: &Settings, wall_seconds: f64, reference_seconds: f64) -> bool {
    wall_seconds > reference_seconds * (1.0 + settings.slowdown)
}
