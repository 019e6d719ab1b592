//! The limits tried so far, with the combined result of their runs.

use model::{Method, Outcome, Spread, Trial};

use crate::Evidence;
use crate::cause::{is_conclusive, is_unexplained};
use crate::clock::{cost, deviation, is_surely_more, ratio};
use crate::effort::runs_of_a_trial;
use crate::noise::Noise;
use crate::outcome::{breaks, severity};

/// This many standard deviations from the threshold exclude chance.
const SURE: f64 = 2.0;

/// Minimum standard deviation of a ratio where only the ratio is known.
const LEAST_CHANCE: f64 = 0.05;

/// The combined result of the runs at one limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    pub limit: u64,
    pub passed: bool,
    pub runs: usize,
    /// So close to the threshold that one run does not decide.
    pub near: bool,
    /// So slow without memory being the reason that one run does not decide.
    pub unexplained: bool,
    /// It passed, and memory cost at least a third of the allowed slow-down.
    pub costs: bool,
    /// Too slow by so little that another run may pass.
    pub hardly_failed: bool,
    /// So far from the threshold that chance is excluded.
    pub clear: bool,
    /// A run was stopped early.
    pub stopped: bool,
    /// No run kept within the slow-down by its run time: if the limit passed, then only by memory's estimated cost.
    pub slow: bool,
    /// The worst outcome.
    pub worst: Outcome,
}

/// All limits tried, rising, with the combined result of their runs. Runs of other methods are for the comparison only. Runs that their
/// limit cannot have slowed down are not conclusive.
pub fn tried(a: &Noise) -> Vec<Tried> {
    let counts = |t: &&Trial| t.method.is_none() || is_overthrowing(a.evidence, t);
    let trials: Vec<&Trial> = a.evidence.trials.iter().filter(counts).filter(|t| is_conclusive(a, t)).collect();
    let mut limits: Vec<u64> = trials.iter().filter_map(|t| t.limit_bytes).collect();
    limits.sort_unstable();
    limits.dedup();
    let at = |limit| trials.iter().copied().filter(|t| t.limit_bytes == Some(limit)).collect::<Vec<_>>();
    limits.into_iter().map(|limit| together(a, limit, &at(limit))).collect()
}

/// Whether a repeated run at the answer counts against it: a single slow run does not overturn the search, but a killed one does, and so
/// may two slow ones.
fn is_overthrowing(evidence: &Evidence, trial: &Trial) -> bool {
    let repeats = || evidence.trials.iter().filter(|t| t.method == trial.method && t.limit_bytes == trial.limit_bytes);
    trial.method == Some(Method::Bursar) && (breaks(trial) || repeats().count() > 1)
}

/// Whether runs at one limit show that it is enough, whatever their purpose. A slow run that memory did not slow down is not evidence
/// against its limit.
pub fn is_enough(a: &Noise, limit: u64, trials: &[&Trial]) -> bool {
    let of_search = |trial: &&Trial| {
        let is_slow = trial.runtime_ratio.is_some_and(|ratio| ratio > 1.0 + a.settings.slowdown);
        let outcome = if trial.outcome == Outcome::Ok && is_slow { Outcome::TooSlow } else { trial.outcome };
        Trial { outcome, method: None, ..(*trial).clone() }
    };
    let counts = |t: &Trial| t.outcome != Outcome::TooSlow || is_conclusive(a, t) && !a.is_unslowed(t);
    let judged: Vec<Trial> = trials.iter().map(of_search).filter(counts).collect();
    judged.is_empty() || together(a, limit, &judged.iter().collect::<Vec<_>>()).passed
}

fn together(a: &Noise, limit: u64, trials: &[&Trial]) -> Tried {
    let broke = trials.iter().any(|t| breaks(t));
    let threshold = 1.0 + a.settings.slowdown;
    // A stopped run would have taken longer than it did, and longer than allowed.
    let least = threshold + 2.0 * a.ratio_noise;
    let ratio_of = |t: &&Trial| ratio(a, t).map(|r| if t.lower_bound { r.max(least) } else { r });
    let ratios: Vec<f64> = trials.iter().filter_map(ratio_of).collect();
    // Unexplained slowness only ever adds time, so the fastest run is the best estimate.
    let unexplained = trials.iter().any(|t| is_unexplained(a, t));
    let ratio = Spread::of(&ratios).map(|spread| if unexplained { spread.min } else { spread.median });
    let chance = trials.iter().map(|t| deviation(a, t)).fold(0.0, f64::max);
    let near = ratio.is_some_and(|r| (r - threshold).abs() <= chance / (trials.len() as f64).sqrt())
        && !trials.iter().all(|t| a.cost_nothing(t));
    let stopped = trials.iter().any(|t| t.lower_bound);
    Tried {
        limit,
        passed: !broke && ratio.is_some_and(|r| r <= threshold),
        runs: trials.len(),
        near: !broke && near && !stopped,
        stopped,
        slow: trials.iter().all(|t| t.outcome == Outcome::TooSlow),
        costs: trials.iter().any(|t| cost(a, t).is_some_and(|c| c.likely > 1.0 + a.settings.slowdown / 3.0)),
        hardly_failed: !broke
            && !stopped
            && ratio.is_some_and(|r| r > threshold && r - threshold <= SURE * chance / (trials.len() as f64).sqrt())
            && !trials.iter().all(|t| cost(a, t).is_some_and(|cost| is_surely_more(a, cost))),
        clear: broke
            || ratio.is_some_and(|r| {
                (r - threshold).abs() > SURE * chance.max(LEAST_CHANCE) / (trials.len() as f64).sqrt()
            }),
        unexplained: !broke && unexplained,
        worst: trials.iter().map(|t| t.outcome).max_by_key(severity).unwrap_or(Outcome::Ok),
    }
}

/// Whether the runs at a limit are too short together to be judged.
pub fn is_short(a: &Noise, tried: &Tried) -> bool {
    tried.runs < runs_of_a_trial(a.evidence) && matches!(tried.worst, Outcome::Ok | Outcome::TooSlow) && !tried.stopped
}
