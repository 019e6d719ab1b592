//! Whether a limit may have passed by chance: a smaller one failed with about as many refaults.
//!
//! The cost of a limit mostly grows with its refaults. If a run that was too slow refaulted hardly more than one within the slow-down,
//! something else decided: the state of the storage, or whether written data was on disk already. Such a program keeps within the slow-down
//! in some runs and not in others.

use std::cmp::Ordering;

use model::{Bytes, Outcome, Trial};

use crate::bracket::Bracket;
use crate::cause::{is_conclusive, is_unexplained};
use crate::clock::ratio;
use crate::noise::Noise;

/// Limits that failed down to this ratio below the passing one show the price of a refault there; farther below, other pages refault.
const BELOW: f64 = 1.5;

/// Pages that refault under any limit, by chance.
const FEW_PAGES: u64 = 128;

/// Two runs refault alike if one refaults less than this many times the other.
const ALIKE: f64 = 2.0;

/// A run counts as another pass with as many refaults if it has at least this share of them.
const AS_MUCH: f64 = 0.8;

/// This many passing runs with as many refaults show that refaults cost little.
const ENOUGH_RUNS: usize = 3;

/// The limit is tried this many times where chance decides: a second run often shows it. A few runs cannot show that a limit is always
/// enough.
const TWICE: usize = 2;

/// A limit that passed, though its refaults at the price under a smaller limit would make it too slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// The limit that passed.
    pub limit: u64,
    /// Refaults under it, in bytes.
    pub again: u64,
    /// The limit whose run paid that price.
    pub failed: u64,
    /// Refaults of that run, in bytes.
    pub failed_again: u64,
    /// Whether another run under it is useful.
    pub wants_run: bool,
    /// Whether the runs so far do not show that it always passes.
    pub doubtful: bool,
}

/// `None` where refaults explain why the limit passed and the one below failed, or where they are unknown.
pub fn chance(a: &Noise, bracket: &Bracket) -> Option<Chance> {
    if a.settings.sizes_itself || a.has_hidden_cost {
        return None;
    }
    let limit = bracket.passed.filter(|passed| bracket.pass == Some(*passed))?;
    let own: Vec<&Trial> = a.evidence.search_trials().filter(|t| t.limit_bytes == Some(limit)).collect();
    if own.iter().any(|t| a.is_untouched(t)) {
        return None;
    }
    let pages = own.iter().filter_map(|t| t.refaults).max()?;
    let price = |t: &Trial| lost(a, t).zip(t.refaults).map(|(lost, r)| lost / (r + FEW_PAGES) as f64);
    let foretold = |t: &Trial| price(t).map(|price| 1.0 + price * (pages + FEW_PAGES) as f64);
    let near = |t: &&Trial| t.limit_bytes.is_some_and(|l| l <= limit && l as f64 >= limit as f64 / BELOW);
    let too_slow = a.evidence.search_trials().filter(near).filter(|t| is_surely_memorys(a, t));
    let dear = too_slow.filter(|t| foretold(t).is_some_and(|ratio| ratio > 1.0 + a.settings.slowdown));
    let dearest = dear.max_by(|a, b| price(a).partial_cmp(&price(b)).unwrap_or(Ordering::Equal))?;
    let is_alike = dearest.refaults? as f64 <= ALIKE * (pages + FEW_PAGES) as f64;
    let passes = |t: &&Trial| {
        t.limit_bytes >= Some(limit)
            && t.refaults.is_some_and(|r| r as f64 >= AS_MUCH * pages as f64)
            && ratio(a, t).is_some_and(|ratio| ratio <= 1.0 + a.settings.slowdown)
    };
    let passed = a.evidence.search_trials().filter(passes).count();
    Some(Chance {
        limit,
        again: pages * a.settings.page_bytes,
        failed: dearest.limit_bytes?,
        failed_again: dearest.refaults? * a.settings.page_bytes,
        wants_run: if is_alike { own.len() < TWICE } else { passed < ENOUGH_RUNS && own.len() < ENOUGH_RUNS },
        doubtful: is_alike || passed < ENOUGH_RUNS,
    })
}

impl Chance {
    /// Why the answer is not sure, as a clause.
    pub fn doubt(&self) -> String {
        let (failed, failed_again) = (Bytes(self.failed), Bytes(self.failed_again));
        let limit = Bytes(self.limit);
        let one = format!("a run at {failed} was too slow and read {failed_again} again");
        match self.again {
            0 => format!("{one}, so another run at {limit} may be too slow if it reads a few pages again"),
            again => {
                format!("{one}; the run at {limit} read {} again, so another one there may be too slow", Bytes(again))
            }
        }
    }
}

/// Whether it was too slow because of memory.
fn is_surely_memorys(a: &Noise, trial: &Trial) -> bool {
    trial.outcome == Outcome::TooSlow && is_conclusive(a, trial) && !is_unexplained(a, trial)
}

/// The share of the run time that a run lost; for a stopped run, until it was stopped.
fn lost(a: &Noise, trial: &Trial) -> Option<f64> {
    if !trial.lower_bound {
        return Some(ratio(a, trial)? - 1.0);
    }
    let stalled = trial.stall_seconds.unwrap_or(0.0) / a.evidence.reference_of(trial)?;
    Some((trial.runtime_ratio? - 1.0).max(stalled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::answer::answer;
    use crate::tests::trial;
    use crate::{Evidence, MIB, Reference, Settings};

    /// The search of a `samtools sort`: at 35 MiB it waited in one run and not in another; at 38 MiB some runs were 15 % slower.
    fn sorts() -> Evidence {
        let reference = |run, wall_seconds, cpu, system| Reference {
            run,
            wall_seconds,
            stall_seconds: Some(0.0),
            peak_charge_bytes: Some(206 * MIB),
            floor_bytes: Some(32 * MIB),
            held_bytes: Some(31 * MIB),
            refaults: Some(0),
            cpu_seconds: Some(cpu),
            system_seconds: Some(system),
            ..Reference::default()
        };
        let ok = |run, limit: u64, wall_seconds, cpu, system, stall, refaults| Trial {
            run,
            outcome: Outcome::Ok,
            runtime_ratio: Some(wall_seconds / 1.955),
            cpu_seconds: Some(cpu),
            system_seconds: Some(system),
            stall_seconds: Some(stall),
            refaults: Some(refaults),
            peak_charge_bytes: Some(limit * MIB),
            ..trial(limit, wall_seconds)
        };
        let stopped = Trial {
            lower_bound: true,
            outcome: Outcome::TooSlow,
            system_seconds: None,
            ..ok(3, 35, 2.31, 1.87, 0.0, 0.28, 73_815)
        };
        Evidence {
            references: vec![reference(0, 1.90, 1.86, 0.28), reference(2, 2.01, 1.96, 0.35)],
            trials: vec![
                ok(1, 35, 1.95, 1.74, 0.26, 0.12, 75_534),
                stopped,
                ok(4, 41, 1.88, 1.79, 0.23, 0.04, 37_528),
                ok(5, 38, 1.95, 1.81, 0.25, 0.07, 56_149),
            ],
            ..Evidence::default()
        }
    }

    #[test]
    fn a_limit_with_the_refaults_of_a_failed_one_is_not_sure() {
        let found = answer(&Analysis::of(&Settings::default(), &sorts()), None);
        assert_eq!((found.smallest_passing_bytes, found.confident), (Some(38 * MIB), false), "{}", found.reason);
        let doubt = "a run at 35.0 MiB was too slow and read 288 MiB again; the run at 38.0 MiB read 219 MiB again, so another one there may be too slow";
        assert!(found.reason.contains(doubt), "{}", found.reason);
    }

    #[test]
    fn a_doubted_limit_without_refaults_is_not_said_to_refault() {
        let mut evidence = sorts();
        evidence.trials[1].refaults = Some(60);
        evidence.trials.iter_mut().filter(|t| t.limit_bytes >= Some(38 * MIB)).for_each(|t| t.refaults = Some(0));
        let found = answer(&Analysis::of(&Settings::default(), &evidence), None);
        let doubt = "a run at 35.0 MiB was too slow and read 240 KiB again, so another run at 38.0 MiB may be too slow if it reads a few pages again";
        assert!(found.reason.contains(doubt), "{}", found.reason);
    }

    #[test]
    fn a_limit_with_few_refaults_is_a_sure_answer() {
        let mut evidence = sorts();
        for trial in evidence.trials.iter_mut().filter(|t| t.limit_bytes >= Some(38 * MIB)) {
            trial.refaults = Some(4_000);
        }
        let found = answer(&Analysis::of(&Settings::default(), &evidence), None);
        assert!(found.confident, "{}", found.reason);
    }
}
