//! Whether the slow-down asked for can be told from noise.

use model::{Outcome, Spread};

use crate::clock::together;
use crate::drift::{nearest, stretches, suspected};
use crate::predict::may_cost_unseen;
use crate::search::{affords, cost_nothing, is_told_by_margin, is_told_by_memory, is_told_by_time_alone, is_untouched};
use crate::seen::{spread, timed};
use crate::{Seen, Settings};

const FEWEST: usize = 2;
const MOST: usize = 4;

/// Run times are never known better than this share, whatever two runs that happen to agree say.
const LEAST_NOISE: f64 = 0.005;

/// What a run time is taken to vary by while there is one run only.
const UNKNOWN_NOISE: f64 = 0.03;

/// What a run time of [`SHORT_SECONDS`] is taken to vary by before it is measured, with the weight of one run: two runs agree by
/// chance. Longer ones vary by less, as what disturbs them comes and goes more often.
const PRIOR_NOISE: f64 = 0.02;
const SHORT_SECONDS: f64 = 3.0;

/// Standard error of a median of n normal values, over that of their mean.
const MEDIAN_OVER_MEAN: f64 = 1.2533;

/// How far apart runs are that memory did not slow down.
struct Noise {
    /// Standard deviation over the median.
    share: f64,
    /// How many runs say so of the machine as it is now.
    runs: f64,
}

fn noise(settings: &Settings, seen: &Seen) -> Option<Noise> {
    let now = seen.timed();
    let is_now = |run: u32| nearest(&seen.references, run).last() == now.last();
    // One that was stopped would have varied by more.
    let has_run = |t: &model::Trial| matches!(t.outcome, Outcome::Ok | Outcome::TooSlow);
    let is_unslowed = |t: &model::Trial| {
        is_untouched(settings, seen, t) || !may_cost_unseen(settings, seen) && cost_nothing(settings, seen, t)
    };
    // What sizes itself is another program under another limit.
    let unslowed =
        seen.search_trials().filter(|t| !settings.sizes_itself && has_run(t) && is_unslowed(t) && is_now(t.run));
    let trials = unslowed.filter_map(|t| Some(t.runtime_ratio? * seen.reference_of(t)?));
    let walls: Vec<f64> = now.iter().map(|r| r.wall_seconds).chain(trials).collect();
    let of = |spread: Option<Spread>| spread.map_or(0.0, |spread| spread.stddev / spread.median);
    let before = stretches(&seen.references).into_iter().filter(|s| s.len() > 1).map(|s| of(spread(timed(s))));
    let now = Spread::of(&walls).filter(|spread| spread.median > 0.0)?;
    // One run alone has no spread: then the machine is taken to be as noisy as it was before.
    let runs = walls.len() as f64;
    let share = if walls.len() > 1 {
        let prior = PRIOR_NOISE.powi(2) * (SHORT_SECONDS / now.median).min(1.0);
        ((of(Some(now)).powi(2) * (runs - 1.0) + prior) / runs).sqrt()
    } else {
        before.reduce(f64::max).unwrap_or(UNKNOWN_NOISE)
    };
    Some(Noise { share, runs: walls.len() as f64 })
}

/// The noise as more than one run has it.
fn measured(settings: &Settings, seen: &Seen) -> Option<Noise> {
    noise(settings, seen).filter(|noise| noise.runs >= FEWEST as f64)
}

/// How far a single run's ratio may be off by chance, as a share of the reference's run time (one standard deviation,
/// the reference's own uncertainty included).
pub fn ratio_noise(settings: &Settings, seen: &Seen) -> f64 {
    let share = noise(settings, seen).map_or(0.0, |noise| noise.share * (1.0 + 1.0 / noise.runs).sqrt());
    share.max(LEAST_NOISE)
}

/// Standard deviation of the run time where memory does not slow it down, in seconds; `None`: one run alone has none.
pub fn stddev_seconds(settings: &Settings, seen: &Seen) -> Option<f64> {
    let noise = measured(settings, seen)?;
    Some(noise.share * seen.reference()?.median)
}

/// Twice the standard error of the reference's median stays below the slow-down.
pub fn can_tell(settings: &Settings, seen: &Seen) -> bool {
    let told = |noise: Noise| {
        2.0 * MEDIAN_OVER_MEAN * together(settings, seen, noise.share) / noise.runs.sqrt() <= settings.slowdown
    };
    measured(settings, seen).is_some_and(told)
}

/// How many references it would take to tell.
pub fn references_needed(settings: &Settings, seen: &Seen) -> Option<u64> {
    let noise = measured(settings, seen)?;
    let runs = (2.0 * MEDIAN_OVER_MEAN * noise.share / settings.slowdown).powi(2).ceil();
    runs.is_finite().then_some(runs as u64)
}

fn waited_much(settings: &Settings, seen: &Seen) -> bool {
    seen.references.iter().any(|r| r.stall_seconds.is_some_and(|stall| stall > settings.slowdown * r.wall_seconds))
}

/// Why another reference run is wanted before the search goes on, or `None`.
pub fn wants_reference(settings: &Settings, seen: &Seen) -> Option<String> {
    let n = seen.references.len();
    match settings.runs.map(|runs| runs.max(1) as usize) {
        Some(runs) if n < runs => Some(format!("reference {} of {runs}: how long it takes without a limit", n + 1)),
        Some(_) => None,
        None if n == 0 => Some("how long it takes, and what it uses, without a limit".into()),
        // The trials beside a knee that a curve foretells mostly tell it as well.
        // What it waited for at its first start, or because of what ran before, would be taken off the trials' stall.
        None if n < FEWEST && waited_much(settings, seen) => {
            Some("it waited for storage: how long does it wait when nothing disturbs it?".into())
        }
        None if n < FEWEST && (seen.demand.is_none() || settings.sizes_itself || may_cost_unseen(settings, seen)) => {
            Some("how much its run time varies without a limit".into())
        }
        None if !affords(seen, 1.0) => None,
        None if n > FEWEST && stretches(&seen.references).last().is_some_and(|now| now.len() < FEWEST) => {
            Some("the machine has changed: how long does it take now, and how much does that vary?".into())
        }
        None if is_told_by_time_alone(settings, seen) => wants_to_tell(settings, seen),
        None => suspected(settings, seen),
    }
}

/// Why another reference run is wanted before an answer is given, or `None`. The search goes before it: where memory is clearly
/// enough or clearly short, and runs that did not come to their limit agree with the references, none is needed.
pub fn wants_to_tell(settings: &Settings, seen: &Seen) -> Option<String> {
    let n = seen.references.len();
    let percent = settings.slowdown * 100.0;
    match () {
        _ if settings.runs.is_some() || n >= MOST || !affords(seen, 1.0) => None,
        _ if is_told_by_memory(settings, seen) || is_told_by_margin(settings, seen) => None,
        _ if n >= FEWEST && can_tell(settings, seen) => None,
        _ if n < FEWEST => Some("how much its run time varies without a limit".into()),
        _ => Some(format!("its run time varies too much so far to tell a slow-down of {percent:.0} %")),
    }
}

#[cfg(test)]
mod tests {
    use model::Trial;

    use super::*;
    use crate::{MIB, Reference};

    /// As a compile did: its references differ by 6 %.
    #[test]
    fn a_trial_that_memory_cost_next_to_nothing_tells_how_much_run_times_vary() {
        let reference = |run, wall_seconds| Reference {
            run,
            wall_seconds,
            peak_charge_bytes: Some(74 * MIB),
            ..Reference::default()
        };
        let mut seen = Seen { references: vec![reference(0, 6.80), reference(1, 7.23)], ..Seen::default() };
        let settings = Settings::default();
        assert!(!can_tell(&settings, &seen));
        let trial = |refaulted_bytes, stall_seconds| Trial {
            run: 2,
            method: None,
            limit_bytes: Some(53 * MIB),
            outcome: Outcome::Ok,
            lower_bound: false,
            wall_seconds: 7.06,
            cpu_seconds: Some(12.96),
            system_seconds: None,
            stall_seconds: Some(stall_seconds),
            runtime_ratio: Some(1.006),
            predicted_ratio: None,
            io_wait_share: None,
            refaults: Some(refaulted_bytes / settings.page_bytes),
            peak_charge_bytes: Some(53 * MIB),
            breakdown: model::Breakdown::default(),
            exit_status: Some(0),
            why: String::new(),
            nodes: Vec::new(),
        };
        seen.trials = vec![trial(300 * MIB, 0.5)];
        assert!(!can_tell(&settings, &seen), "what it lost to memory is no noise");
        seen.trials = vec![trial(32 * MIB, 0.08)];
        assert!(can_tell(&settings, &seen));
    }
}
