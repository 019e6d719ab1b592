//! Whether the slow-down asked for can be told from noise.

use model::Spread;

use crate::search::is_untouched;
use crate::{Seen, Settings};

const FEWEST: usize = 2;
const MOST: usize = 4;

/// Run times are never known better than this share, whatever two runs that happen to agree say.
const LEAST_NOISE: f64 = 0.005;

/// Standard error of a median of n normal values, over that of their mean.
const MEDIAN_OVER_MEAN: f64 = 1.2533;

/// How far a single run's ratio may be off by chance, as a share of the reference's run time (one standard deviation,
/// the reference's own uncertainty included).
pub fn ratio_noise(seen: &Seen) -> f64 {
    let Some(reference) = seen.reference() else { return LEAST_NOISE };
    let n = seen.timed().len() as f64;
    (reference.stddev / reference.median * (1.0 + 1.0 / n).sqrt()).max(LEAST_NOISE)
}

/// Twice the standard error of the reference's median stays below the slow-down.
pub fn can_tell(settings: &Settings, seen: &Seen) -> bool {
    let told = |spread: Spread| {
        let error = MEDIAN_OVER_MEAN * spread.stddev / (seen.timed().len() as f64).sqrt();
        2.0 * error <= settings.slowdown * spread.median
    };
    seen.references.len() >= FEWEST && seen.reference().is_some_and(told)
}

/// How many references it would take to tell.
pub fn references_needed(settings: &Settings, seen: &Seen) -> Option<u64> {
    let spread = seen.reference()?;
    let runs = (2.0 * MEDIAN_OVER_MEAN * spread.stddev / (settings.slowdown * spread.median)).powi(2).ceil();
    (runs.is_finite() && seen.references.len() >= FEWEST).then_some(runs as u64)
}

/// Why another reference run is wanted, or `None`.
pub fn wants_reference(settings: &Settings, seen: &Seen) -> Option<String> {
    let n = seen.references.len();
    let percent = settings.slowdown * 100.0;
    let untouched = seen.search_trials().filter(|t| is_untouched(settings, seen, t)).count();
    match settings.runs.map(|runs| runs.max(1) as usize) {
        Some(runs) if n < runs => Some(format!("reference {} of {runs}: how long it takes without a limit", n + 1)),
        Some(_) => None,
        None if n == 0 => Some("how long it takes, and what it uses, without a limit".into()),
        None if n < FEWEST => Some("how much its run time varies without a limit".into()),
        None if n < MOST && !can_tell(settings, seen) => {
            Some(format!("its run time varies too much so far to tell a slow-down of {percent:.0} %"))
        }
        None if n < (FEWEST + untouched / 2).min(MOST) => {
            Some("runs that did not come to their limit were too slow: has the machine become slower?".into())
        }
        None => None,
    }
}
