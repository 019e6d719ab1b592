//! The third layer of the analysis: the noise of run times, and whether the slow-down can be distinguished from it.

use std::ops::Deref;

use model::{Outcome, Spread, Trial};

use crate::facts::Facts;
use crate::processor::Processor;
use crate::stretches::{nearest, spread, stretches, timed};
use crate::{Evidence, Settings};

/// The number of runs that a spread needs.
pub const FEWEST: usize = 2;

/// Run times are never assumed to be known better than this share, even if two runs happen to agree.
const LEAST_NOISE: f64 = 0.005;

/// The assumed noise of a run time while there is only one run.
const UNKNOWN_NOISE: f64 = 0.03;

/// The assumed noise of a run time of [`SHORT_SECONDS`] before it is measured, with the weight of one run, because two runs may agree by
/// chance. Longer runs vary less: disturbances come and go more often during them.
const PRIOR_NOISE: f64 = 0.02;
const SHORT_SECONDS: f64 = 3.0;

/// Standard error of a median of n normal values, over that of their mean.
const MEDIAN_OVER_MEAN: f64 = 1.2533;

/// The noise of runs that memory did not slow down.
#[derive(Clone, Copy)]
pub struct Noise<'a> {
    processor: Processor<'a>,
    /// Standard deviation over the median, and the number of runs that show it for the machine as it is now.
    share: Option<(f64, f64)>,
    /// Standard deviation of a single run's ratio, as a share of the reference's run time, including the reference's own uncertainty.
    pub ratio_noise: f64,
    /// Whether the slow-down exceeds the noise: twice the standard error of the reference's median is less.
    pub resolves_slow_down: bool,
}

impl<'a> Deref for Noise<'a> {
    type Target = Processor<'a>;

    fn deref(&self) -> &Processor<'a> {
        &self.processor
    }
}

impl<'a> Noise<'a> {
    /// Linear in the number of trials, times that of references.
    pub fn of(settings: &'a Settings, evidence: &'a Evidence) -> Noise<'a> {
        let processor = Processor::of(Facts::of(settings, evidence));
        let share = share(&processor);
        let ratio_noise = share.map_or(0.0, |(share, runs)| share * (1.0 + 1.0 / runs).sqrt()).max(LEAST_NOISE);
        let noise = Noise { processor, share, ratio_noise, resolves_slow_down: false };
        let is_distinct = |(share, runs): (f64, f64)| {
            2.0 * MEDIAN_OVER_MEAN * noise.together(share) / runs.sqrt() <= settings.slowdown
        };
        Noise { resolves_slow_down: noise.measured().is_some_and(is_distinct), ..noise }
    }

    /// The noise as measured by more than one run.
    fn measured(&self) -> Option<(f64, f64)> {
        self.share.filter(|(_, runs)| *runs >= FEWEST as f64)
    }

    /// How many references would resolve the slow-down.
    pub fn references_needed(&self) -> Option<u64> {
        let (share, _) = self.measured()?;
        let runs = (2.0 * MEDIAN_OVER_MEAN * share / self.settings.slowdown).powi(2).ceil();
        runs.is_finite().then_some(runs as u64)
    }
}

/// Standard deviation of the run time where memory does not slow it down, in seconds; `None`: only one run.
pub fn stddev_seconds(settings: &Settings, evidence: &Evidence) -> Option<f64> {
    let noise = Noise::of(settings, evidence);
    let (share, _) = noise.measured()?;
    Some(share * noise.reference?.median)
}

fn share(a: &Processor) -> Option<(f64, f64)> {
    let references = &a.evidence.references;
    let now = a.evidence.timed();
    let is_now = |run: u32| nearest(references, run).last() == now.last();
    // A run that was stopped would have varied by more.
    let has_run = |t: &Trial| matches!(t.outcome, Outcome::Ok | Outcome::TooSlow);
    // A program that sizes itself behaves differently under another limit.
    let counts = |t: &&Trial| !a.settings.sizes_itself && has_run(t) && a.is_unslowed(t) && is_now(t.run);
    let unslowed = a.evidence.search_trials().filter(counts);
    let trials = unslowed.filter_map(|t| Some(t.runtime_ratio? * a.evidence.reference_of(t)?));
    let walls: Vec<f64> = now.iter().map(|r| r.wall_seconds).chain(trials).collect();
    let of = |spread: Option<Spread>| spread.map_or(0.0, |spread| spread.stddev / spread.median);
    let before = stretches(references).into_iter().filter(|s| s.len() > 1).map(|s| of(spread(timed(s))));
    let now = Spread::of(&walls).filter(|spread| spread.median > 0.0)?;
    // A single run has no spread: the machine is assumed to be as noisy as before.
    let runs = walls.len() as f64;
    let share = if walls.len() > 1 {
        let prior = PRIOR_NOISE.powi(2) * (SHORT_SECONDS / now.median).min(1.0);
        ((of(Some(now)).powi(2) * (runs - 1.0) + prior) / runs).sqrt()
    } else {
        before.reduce(f64::max).unwrap_or(UNKNOWN_NOISE)
    };
    Some((share, runs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MIB, Reference};

    /// As a compilation did: its references differ by 6 %.
    #[test]
    fn a_trial_without_memory_cost_counts_for_the_noise() {
        let reference = |run, wall_seconds| Reference {
            run,
            wall_seconds,
            peak_charge_bytes: Some(74 * MIB),
            ..Reference::default()
        };
        let mut evidence = Evidence { references: vec![reference(0, 6.80), reference(1, 7.23)], ..Evidence::default() };
        let settings = Settings::default();
        assert!(!Noise::of(&settings, &evidence).resolves_slow_down);
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
        evidence.trials = vec![trial(300 * MIB, 0.5)];
        assert!(!Noise::of(&settings, &evidence).resolves_slow_down, "time lost to memory is not noise");
        evidence.trials = vec![trial(32 * MIB, 0.08)];
        assert!(Noise::of(&settings, &evidence).resolves_slow_down);
    }
}
