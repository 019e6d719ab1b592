//! What has been seen so far.

use model::{Breakdown, FileDemand, Method, Outcome, Spread, Trial};

use crate::Settings;
use crate::drift::{nearest, stretches};
use crate::judge::{asks_for_enough, is_too_slow};

/// Run times this close agree.
const AGREE: f64 = 1.05;

/// A run without a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// Which run of the record it was.
    pub run: u32,
    /// Seconds it ran.
    pub wall_seconds: f64,
    /// Seconds it waited for storage or memory, comparable with wall time: delays summed over the threads, divided by
    /// how many there were at a time; or pressure, where that says more.
    pub stall_seconds: Option<f64>,
    /// Peak charge, bytes.
    pub peak_charge_bytes: Option<u64>,
    /// What could not be reclaimed, at its peak, bytes.
    pub floor_bytes: Option<u64>,
    /// Of that, what surely cannot: heap and shared memory. Kernel memory may be caches that give way, and cgroup v1 does
    /// not tell which part is.
    pub held_bytes: Option<u64>,
    /// Mapped file pages at the peak, bytes: the program's own text and libraries at least.
    pub file_mapped_bytes: Option<u64>,
    /// Of those, what the kernel took to be in use, at most: their references are not seen once they are mapped.
    pub mapped_in_use_bytes: Option<u64>,
    /// Most file pages that were not yet written back, bytes.
    pub dirty_bytes: Option<u64>,
    /// File pages that the kernel counted as read again: at a cold start, those that the run before had cached.
    pub refaults: Option<u64>,
    /// CPU seconds used, all tasks.
    pub cpu_seconds: Option<f64>,
    /// Of it, what the kernel used.
    pub system_seconds: Option<f64>,
    /// Share of the tasks' life spent waiting for I/O.
    pub io_wait_share: Option<f64>,
    /// What the peak charge was made of.
    pub breakdown: Breakdown,
    /// How it went: CPU seconds used, all tasks, and the seconds since its start at which it had; both rising.
    pub pace: Vec<(f64, f64)>,
}

/// The memory that one of the usual methods names.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodMemory {
    /// Which.
    pub method: Method,
    /// How much, bytes.
    pub memory_bytes: u64,
    /// What it is made of.
    pub breakdown: Breakdown,
}

/// Everything seen so far. Kept in the record, so that a search can be resumed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Runs without a limit, in order.
    pub references: Vec<Reference>,
    /// The page cache's demand, from one of them.
    pub demand: Option<FileDemand>,
    /// Runs under a limit, in order, and those without one that were made for the comparison only; a trial's `stall_seconds` is what it had beyond the references'.
    pub trials: Vec<Trial>,
    /// What the usual methods name.
    pub methods: Vec<MethodMemory>,
}

impl Seen {
    /// Adds a run without a limit, and compares anew with it the runs that it is nearest to.
    pub fn learn(&mut self, settings: &Settings, reference: Reference) {
        let before = self.references.clone();
        self.references.push(reference);
        let references = &self.references;
        for trial in &mut self.trials {
            let Some(reference) = median(timed(nearest(references, trial.run))) else { continue };
            if trial.lower_bound {
                // What it had taken, or was behind, is now compared with another run time.
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

    /// The references that tell how long the job takes as the machine is now.
    pub fn timed(&self) -> &[Reference] {
        timed(stretches(&self.references).last().copied().unwrap_or_default())
    }

    /// Run time without a limit, in seconds, as the machine is now: the median, with its spread.
    pub fn reference(&self) -> Option<Spread> {
        spread(self.timed())
    }

    /// What a run is compared with, in seconds.
    pub(crate) fn reference_of(&self, trial: &Trial) -> Option<f64> {
        median(timed(nearest(&self.references, trial.run)))
    }

    /// The largest peak charge without a limit: at that limit nothing would have been reclaimed.
    pub fn peak_charge_bytes(&self) -> Option<u64> {
        self.references.iter().filter_map(|r| r.peak_charge_bytes).max()
    }

    /// The largest floor seen.
    pub fn floor_bytes(&self) -> Option<u64> {
        self.references.iter().filter_map(|r| r.floor_bytes).max()
    }

    /// What was run for the answer (references and search), in reference run times.
    pub fn run_times_used(&self) -> Option<f64> {
        self.run_times(false)
    }

    /// What the comparison's runs took beside it, in reference run times.
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

/// All of a stretch, unless two or more that agree show that the first alone was slow. It wakes a machine up: clocks, host
/// memory that was given back, caches of the storage.
pub(crate) fn timed(stretch: &[Reference]) -> &[Reference] {
    match stretch.split_first() {
        Some((first, rest)) if rest.len() >= 2 => {
            let walls = || rest.iter().map(|r| r.wall_seconds);
            let (least, most) = (walls().fold(f64::INFINITY, f64::min), walls().fold(0.0, f64::max));
            let is_slow_alone = most <= least * AGREE && first.wall_seconds > most * AGREE;
            if is_slow_alone { rest } else { stretch }
        }
        _ => stretch,
    }
}

pub(crate) fn spread(references: &[Reference]) -> Option<Spread> {
    let walls: Vec<f64> = references.iter().map(|r| r.wall_seconds).collect();
    Spread::of(&walls).filter(|spread| spread.median > 0.0)
}

fn median(references: &[Reference]) -> Option<f64> {
    Some(spread(references)?.median)
}
