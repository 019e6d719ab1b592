//! Why a run was slow: whether memory was the reason, and whether the run is conclusive about its limit.

use model::{Outcome, Trial};

use crate::clock::{cost, is_surely_more};
use crate::impact::EXPLAINED;
use crate::noise::Noise;
use crate::stretches::nearest;

/// No run exceeds the threshold by more than this share by chance, unless its refaults are known.
const CHANCE: f64 = 0.2;

/// Whether memory surely made a run too slow: shown by its CPU time and stall, or by being stopped far above the slow-down with many
/// refaults.
pub fn is_surely_slow(a: &Noise, trial: &Trial) -> bool {
    match cost(a, trial) {
        Some(cost) => is_surely_more(a, cost),
        None => a.has_refaulted(trial) == Some(true) && !is_unexplained(a, trial),
    }
}

/// Whether a run is conclusive about its limit.
pub fn is_conclusive(a: &Noise, trial: &Trial) -> bool {
    // Stopped because of references that were made before the machine changed.
    let is_outdated = || {
        let first = nearest(&a.evidence.references, trial.run).first();
        trial.lower_bound && first.is_some_and(|r| r.run > trial.run) && a.has_refaulted(trial) != Some(true)
    };
    // Stopped, but not slow compared with the references made since.
    let is_refuted = trial.lower_bound && trial.runtime_ratio.is_some_and(|ratio| ratio <= 1.0 + a.settings.slowdown);
    trial.outcome != Outcome::TooSlow || !a.is_untouched(trial) && !is_outdated() && !is_refuted
}

/// Whether a run was too slow although neither stall nor refaults explain it: the machine may have been slowed down by other work.
pub fn is_unexplained(a: &Noise, trial: &Trial) -> bool {
    let Some((reference, ratio)) = a.evidence.reference_of(trial).zip(trial.runtime_ratio) else { return false };
    let lost = (ratio - 1.0) * reference;
    // Without refault counts, memory's effect is not fully known.
    let is_near = ratio < 1.0 + a.settings.slowdown + CHANCE.max(4.0 * a.ratio_noise);
    trial.outcome == Outcome::TooSlow
        && !(a.settings.sizes_itself && a.computes_more(trial))
        && (trial.refaults.is_some() || is_near)
        && a.most_lost(trial, a.additional_of_all(trial)).is_some_and(|by_memory| by_memory < EXPLAINED * lost)
}
