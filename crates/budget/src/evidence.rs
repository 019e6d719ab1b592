//! The evidence: all that the planner knows about a program. It grows by one run at a time, and nothing else decides.

use model::{Breakdown, FileDemand, Method, Outcome, Spread, Trial};

use crate::outcome::{asks_for_enough, is_too_slow};
use crate::stretches::{median, nearest, spread, stretches, timed};
use crate::{Reference, Settings};

/// The memory that one of the usual methods names.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodMemory {
    /// The method.
    pub method: Method,
    /// Its figure, bytes.
    pub memory_bytes: u64,
    /// Its breakdown.
    pub breakdown: Breakdown,
}

/// All runs so far. Kept in the record, so that a search can be resumed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Runs without a limit, in order.
    pub references: Vec<Reference>,
    /// The page cache's demand, from one of them.
    pub demand: Option<FileDemand>,
    /// Runs under a limit, in order, and those without one made only for the comparison. A trial's `stall_seconds` is the excess over the
    /// references'.
    pub trials: Vec<Trial>,
    /// The figures of the usual methods.
    pub methods: Vec<MethodMemory>,
}

impl Evidence {
    /// Adds a run without a limit, and compares the runs nearest to it with it.
    pub fn learn(&mut self, settings: &Settings, reference: Reference) {
        let before = self.references.clone();
        self.references.push(reference);
        let references = &self.references;
        for trial in &mut self.trials {
            let Some(reference) = median(timed(nearest(references, trial.run))) else { continue };
            if trial.lower_bound {
                // The lower bound of a stopped run's ratio now refers to another run time.
                let changed = median(timed(nearest(&before, trial.run))).map_or(1.0, |known| known / reference);
                trial.runtime_ratio = trial.runtime_ratio.map(|ratio| ratio * changed);
                continue;
            }
            trial.runtime_ratio = trial.runtime_ratio.map(|_| trial.wall_seconds / reference);
            let is_slow = is_too_slow(settings, trial.wall_seconds, reference);
            trial.outcome = match trial.outcome {
                Outcome::Ok | Outcome::TooSlow if is_slow && asks_for_enough(trial.method) => Outcome::TooSlow,
                Outcome::Ok | Outcome::TooSlow => Outcome::Ok,
                other => other,
            };
        }
    }

    /// The references that show the job's run time as the machine is now.
    pub fn timed(&self) -> &[Reference] {
        timed(stretches(&self.references).last().copied().unwrap_or_default())
    }

    /// The median run time without a limit, in seconds, as the machine is now, with its spread.
    pub fn reference(&self) -> Option<Spread> {
        spread(self.timed())
    }

    /// The reference run time for a run, in seconds.
    pub(crate) fn reference_of(&self, trial: &Trial) -> Option<f64> {
        median(timed(nearest(&self.references, trial.run)))
    }

    /// The largest peak charge without a limit: at that limit nothing would have been reclaimed.
    pub fn peak_charge_bytes(&self) -> Option<u64> {
        self.references.iter().filter_map(|r| r.peak_charge_bytes).max()
    }

    /// The largest floor of all runs.
    pub fn floor_bytes(&self) -> Option<u64> {
        self.references.iter().filter_map(|r| r.floor_bytes).max()
    }

    /// The effort for the answer (references and search), in reference run times.
    pub fn run_times_used(&self) -> Option<f64> {
        self.run_times(false)
    }

    /// The additional effort for the comparison, in reference run times.
    pub fn compare_run_times(&self) -> Option<f64> {
        self.run_times(true)
    }

    /// Trials of the search.
    pub(crate) fn search_trials(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|t| t.method.is_none() && t.limit_bytes.is_some())
    }

    fn run_times(&self, compared: bool) -> Option<f64> {
        let references = self.references.iter().filter(|_| !compared).map(|r| r.wall_seconds);
        let trials = self.trials.iter().filter(|t| t.method.is_some() == compared).map(|t| t.wall_seconds);
        // The sum of nothing is -0.0.
        Some(references.chain(trials).fold(0.0, |sum, seconds| sum + seconds) / self.reference()?.median)
    }
}
