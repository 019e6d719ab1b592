//! The second layer of the analysis: CPU time, what the references used, and what memory can have added to a run.

use std::ops::Deref;

use model::{Outcome, Spread, Trial};

use crate::facts::{Facts, TELLING_BYTES};

/// The maximum CPU time of a refault in seconds per byte: 15 µs a page. Slower storage shows as stall.
const MOST_READ_PRICE: f64 = 4.0 / (1u64 << 30) as f64;

/// The share of that maximum assumed for a run whose CPU time is known; 0.3 to 3 µs a page were measured.
const BELIEVED: f64 = 0.2;

/// The maximum CPU time of reclaim in seconds per byte: 2 µs a page.
const MOST_RECLAIM_PRICE: f64 = 0.5 / (1u64 << 30) as f64;

/// Memory's cost is negligible below this share of the slow-down.
const LITTLE: f64 = 0.25;

/// The noise of the clock of CPU time and stall, as a share of the run time: it does not see waits for locks and other processes.
const LEAST_NOISE: f64 = 0.025;

/// The assumed noise of a CPU time while there is only one reference, as a share.
const UNKNOWN_NOISE: f64 = 0.05;

/// CPU times, in seconds.
#[derive(Clone, Copy)]
pub struct Processor<'a> {
    facts: Facts<'a>,
    /// All CPU time of the references.
    references: Option<Spread>,
    /// All CPU time of the references and of the unhindered runs.
    pub usual: Option<Spread>,
    /// The kernel's part; `None` if it is unknown for a reference, and where a garbage collector may use more.
    usual_system: Option<Spread>,
}

impl<'a> Deref for Processor<'a> {
    type Target = Facts<'a>;

    fn deref(&self) -> &Facts<'a> {
        &self.facts
    }
}

impl<'a> Processor<'a> {
    /// Linear in the number of runs.
    pub fn of(facts: Facts<'a>) -> Processor<'a> {
        let runs = &facts.evidence.references;
        let cpu: Vec<f64> = runs.iter().filter_map(|r| r.cpu_seconds).collect();
        let system: Option<Vec<f64>> = runs.iter().map(|r| r.system_seconds).collect();
        let known = Processor { facts, references: Spread::of(&cpu), usual: None, usual_system: None };
        let unhindered: Vec<&Trial> = facts.evidence.search_trials().filter(|t| known.is_unhindered(t)).collect();
        let used = |references: Vec<f64>, of: fn(&Trial) -> Option<f64>| {
            let has_reference = !references.is_empty();
            let all: Vec<f64> = references.into_iter().chain(unhindered.iter().filter_map(|t| of(t))).collect();
            Spread::of(&all).filter(|_| has_reference)
        };
        let usual_system =
            system.filter(|_| !facts.settings.sizes_itself).and_then(|system| used(system, |t| t.system_seconds));
        Processor { usual: used(cpu, |t| t.cpu_seconds), usual_system, ..known }
    }

    /// Additional CPU seconds that memory cost a completed run; `None` if unknown.
    pub fn additional(&self, trial: &Trial) -> Option<f64> {
        match self.usual_system.zip(trial.system_seconds) {
            Some((usual, used)) if is_whole(trial) => Some(self.within(trial, used - usual.median)),
            _ => self.additional_of_all(trial),
        }
    }

    /// The same from all CPU time: an overestimate if the processor was slower.
    pub fn additional_of_all(&self, trial: &Trial) -> Option<f64> {
        let used = trial.cpu_seconds.filter(|_| is_whole(trial))?;
        Some(self.within(trial, used - self.usual?.median))
    }

    /// Limits to at least 0 and to what memory can have cost: a host that provides memory slowly also costs kernel CPU time.
    fn within(&self, trial: &Trial, additional: f64) -> f64 {
        let had_to_go = self.peak.zip(trial.limit_bytes).map_or(0, |(peak, limit)| peak.saturating_sub(limit));
        let reading = self.most_read(trial).filter(|_| !self.settings.sizes_itself);
        let most = reading.map_or(f64::INFINITY, |reading| BELIEVED * reading + had_to_go as f64 * MOST_RECLAIM_PRICE);
        additional.max(0.0).min(most)
    }

    /// The maximum CPU seconds of refaults; `None` if their number is unknown.
    pub fn most_read(&self, trial: &Trial) -> Option<f64> {
        Some((trial.refaults? * self.settings.page_bytes) as f64 * MOST_READ_PRICE)
    }

    /// Whether a run's additional CPU time alone exceeds the slow-down. A garbage collector with little memory shows this way, without
    /// stall or refaults.
    pub fn computes_more(&self, trial: &Trial) -> bool {
        // The CPU time of a stopped run could only have grown.
        let has_run = matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow);
        let Some((used, usual)) = trial.cpu_seconds.filter(|_| has_run).zip(self.references) else { return false };
        used > (1.0 + self.settings.slowdown + 2.0 * self.share_of(&usual, usual.median)) * usual.median
    }

    /// Standard deviation of a ratio from wall time combined with CPU time and stall, where run times vary by the share `wall`.
    pub fn together(&self, wall: f64) -> f64 {
        let knows = self.references.is_some() && self.evidence.references.iter().all(|r| r.stall_seconds.is_some());
        if !knows || wall <= 0.0 || self.has_hidden_cost {
            return wall;
        }
        1.0 / (1.0 / (wall * wall) + 1.0 / self.cost_noise().powi(2)).sqrt()
    }

    /// The noise of a cost by CPU time and stall, as a share of the run time.
    pub fn cost_noise(&self) -> f64 {
        self.processor_noise().max(LEAST_NOISE)
    }

    /// The noise of the references' CPU time that memory may change, as a share of the run time.
    pub fn processor_noise(&self) -> f64 {
        let Some(cpu) = self.usual else { return UNKNOWN_NOISE };
        self.share_of(&self.usual_system.unwrap_or(cpu), cpu.median)
    }

    /// Standard deviation of the CPU time used, as a share of `whole`; with one reference, at least [`UNKNOWN_NOISE`] of it is assumed.
    fn share_of(&self, used: &Spread, whole: f64) -> f64 {
        let unknown = if self.evidence.references.len() > 1 { 0.0 } else { UNKNOWN_NOISE * used.median };
        let deviation = used.stddev.max(unknown);
        if whole > 0.0 { deviation / whole } else { UNKNOWN_NOISE }
    }

    /// Whether a run under a limit shows the job's usage like one without a limit: almost no refaults, stall or reclaim. If it used much
    /// more CPU time, for whatever reason, it does not count.
    fn is_unhindered(&self, trial: &Trial) -> bool {
        let reference = self.evidence.reference_of(trial).filter(|_| !self.settings.sizes_itself);
        let Some(reference) = reference else { return false };
        let little = self.settings.slowdown * reference * LITTLE;
        let had_to_go = self.peak.zip(trial.limit_bytes).map(|(peak, limit)| peak.saturating_sub(limit) as f64);
        is_whole(trial)
            && !self.has_hidden_cost
            && trial.refaults.is_some_and(|pages| pages * self.settings.page_bytes < TELLING_BYTES)
            && trial.stall_seconds.is_some_and(|stall| stall < little)
            && had_to_go.is_some_and(|bytes| bytes * MOST_RECLAIM_PRICE < little)
            && !self.computes_more(trial)
    }
}

/// Whether a run completed.
pub fn is_whole(trial: &Trial) -> bool {
    !trial.lower_bound && matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow)
}
