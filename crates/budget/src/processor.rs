//! The second layer of the analysis: CPU time, what the references used of it, and what memory can have added to a run.

use std::ops::Deref;

use model::{Outcome, Spread, Trial};

use crate::facts::{Facts, TELLING_BYTES};

/// What reading a byte again costs the processor at the most, in seconds: 15 us a page. Slower storage shows as stall.
const MOST_READ_PRICE: f64 = 4.0 / (1u64 << 30) as f64;

/// The share of it that is believed of a run whose CPU time is known; 0.3 to 3 us a page were measured.
const BELIEVED: f64 = 0.2;

/// What reclaiming a byte costs it at the most: 2 us a page.
const MOST_RECLAIM_PRICE: f64 = 0.5 / (1u64 << 30) as f64;

/// Memory costs a run next to nothing where it costs less than this share of the slow-down.
const LITTLE: f64 = 0.25;

/// How far a clock of CPU time and stall may be off, as a share of the run time: waits for locks and for other processes are not in it.
const LEAST_NOISE: f64 = 0.025;

/// What a CPU time is taken to vary by while there is one reference only, as a share.
const UNKNOWN_NOISE: f64 = 0.05;

/// CPU times, in seconds.
#[derive(Clone, Copy)]
pub struct Processor<'a> {
    facts: Facts<'a>,
    /// Of the references alone.
    references: Option<Spread>,
    /// Of the references, and of the runs that memory did not hinder.
    pub usual: Option<Spread>,
    /// Of it, what the kernel used; `None` where that is not known of each reference, and where a garbage collector may use more.
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

    /// Additional CPU seconds that memory cost a run that came to its end; `None` if not known.
    pub fn additional(&self, trial: &Trial) -> Option<f64> {
        match self.usual_system.zip(trial.system_seconds) {
            Some((usual, used)) if is_whole(trial) => Some(self.within(trial, used - usual.median)),
            _ => self.additional_of_all(trial),
        }
    }

    /// The same of all CPU time: more than memory cost, where the processor was slower.
    pub fn additional_of_all(&self, trial: &Trial) -> Option<f64> {
        let used = trial.cpu_seconds.filter(|_| is_whole(trial))?;
        Some(self.within(trial, used - self.usual?.median))
    }

    /// At least nothing, and no more than memory can have cost: a host that hands out memory slowly costs the kernel's CPU time, too.
    fn within(&self, trial: &Trial, additional: f64) -> f64 {
        let had_to_go = self.peak.zip(trial.limit_bytes).map_or(0, |(peak, limit)| peak.saturating_sub(limit));
        let reading = self.most_read(trial).filter(|_| !self.settings.sizes_itself);
        let most = reading.map_or(f64::INFINITY, |reading| BELIEVED * reading + had_to_go as f64 * MOST_RECLAIM_PRICE);
        additional.max(0.0).min(most)
    }

    /// The most CPU seconds that reading again takes; `None` if it is not known how much was.
    pub fn most_read(&self, trial: &Trial) -> Option<f64> {
        Some((trial.refaults? * self.settings.page_bytes) as f64 * MOST_READ_PRICE)
    }

    /// Whether a run used so much more CPU time than the references that this alone exceeds the slow-down. A garbage collector that has
    /// little room shows so, and neither stalls nor reads again.
    pub fn computes_more(&self, trial: &Trial) -> bool {
        // What a run had used when it was stopped can only grow.
        let has_run = matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow);
        let Some((used, usual)) = trial.cpu_seconds.filter(|_| has_run).zip(self.references) else { return false };
        used > (1.0 + self.settings.slowdown + 2.0 * self.share_of(&usual, usual.median)) * usual.median
    }

    /// How far a ratio by wall time and by CPU time and stall together is off by chance, where run times vary by the share `wall`.
    pub fn together(&self, wall: f64) -> f64 {
        let knows = self.references.is_some() && self.evidence.references.iter().all(|r| r.stall_seconds.is_some());
        if !knows || wall <= 0.0 || self.may_cost_unseen {
            return wall;
        }
        1.0 / (1.0 / (wall * wall) + 1.0 / self.cost_noise().powi(2)).sqrt()
    }

    /// How far a cost by CPU time and stall may be off, as a share of the run time.
    pub fn cost_noise(&self) -> f64 {
        self.processor_noise().max(LEAST_NOISE)
    }

    /// How much the references vary in the CPU time that memory may change, as a share of the run time.
    pub fn processor_noise(&self) -> f64 {
        let Some(cpu) = self.usual else { return UNKNOWN_NOISE };
        self.share_of(&self.usual_system.unwrap_or(cpu), cpu.median)
    }

    /// The standard deviation of what was used, as a share of `whole`; where there is one reference only it is taken to be
    /// [`UNKNOWN_NOISE`] of that at least.
    fn share_of(&self, used: &Spread, whole: f64) -> f64 {
        let unknown = if self.evidence.references.len() > 1 { 0.0 } else { UNKNOWN_NOISE * used.median };
        let deviation = used.stddev.max(unknown);
        if whole > 0.0 { deviation / whole } else { UNKNOWN_NOISE }
    }

    /// A run under a limit that says as much of what the job uses as one without: it read next to nothing again, hardly waited, and
    /// little had to go for it. That it used more for another reason is not ruled out, so one that used much more does not count.
    fn is_unhindered(&self, trial: &Trial) -> bool {
        let reference = self.evidence.reference_of(trial).filter(|_| !self.settings.sizes_itself);
        let Some(reference) = reference else { return false };
        let little = self.settings.slowdown * reference * LITTLE;
        let had_to_go = self.peak.zip(trial.limit_bytes).map(|(peak, limit)| peak.saturating_sub(limit) as f64);
        is_whole(trial)
            && !self.may_cost_unseen
            && trial.refaults.is_some_and(|pages| pages * self.settings.page_bytes < TELLING_BYTES)
            && trial.stall_seconds.is_some_and(|stall| stall < little)
            && had_to_go.is_some_and(|bytes| bytes * MOST_RECLAIM_PRICE < little)
            && !self.computes_more(trial)
    }
}

/// Whether a run came to its end.
pub fn is_whole(trial: &Trial) -> bool {
    !trial.lower_bound && matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow)
}
