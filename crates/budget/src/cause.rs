//! Why a run was slow: whether memory was the reason, and whether the run says something of its limit at all.

use model::{Outcome, Trial};

use crate::clock::{cost, is_surely_more};
use crate::impact::EXPLAINED;
use crate::noise::Noise;
use crate::stretches::nearest;

/// Above the threshold by more than this, no run is slow by chance, unless it is known how much it read again.
const CHANCE: f64 = 0.2;

/// Whether a run was too slow for reasons that are memory's: by its CPU time and stall, or stopped far above the slow-down with much read
/// again.
pub fn is_surely_slow(a: &Noise, trial: &Trial) -> bool {
    match cost(a, trial) {
        Some(cost) => is_surely_more(a, cost),
        None => a.read_again(trial) == Some(true) && !is_unexplained(a, trial),
    }
}

/// Whether a run says something of its limit.
pub fn is_telling(a: &Noise, trial: &Trial) -> bool {
    // Stopped by the pace of references that tell of the machine as it was before.
    let is_outdated = || {
        let first = nearest(&a.evidence.references, trial.run).first();
        trial.lower_bound && first.is_some_and(|r| r.run > trial.run) && a.read_again(trial) != Some(true)
    };
    // Stopped, but not slow beside the references that were made since.
    let is_refuted = trial.lower_bound && trial.runtime_ratio.is_some_and(|ratio| ratio <= 1.0 + a.settings.slowdown);
    trial.outcome != Outcome::TooSlow || !a.is_untouched(trial) && !is_outdated() && !is_refuted
}

/// Too slow, though neither stall nor refaults tell why: something else may have slowed the machine down.
pub fn is_unexplained(a: &Noise, trial: &Trial) -> bool {
    let Some((reference, ratio)) = a.evidence.reference_of(trial).zip(trial.runtime_ratio) else { return false };
    let lost = (ratio - 1.0) * reference;
    // Without refaults, not all is known of what memory did.
    let is_near = ratio < 1.0 + a.settings.slowdown + CHANCE.max(4.0 * a.ratio_noise);
    trial.outcome == Outcome::TooSlow
        && !(a.settings.sizes_itself && a.computes_more(trial))
        && (trial.refaults.is_some() || is_near)
        && a.most_lost(trial, a.additional_of_all(trial)).is_some_and(|by_memory| by_memory < EXPLAINED * lost)
}
