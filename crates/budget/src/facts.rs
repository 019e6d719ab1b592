//! The first layer of the analysis: what the references and the settings say by themselves, before any run time is weighed.

use model::{Outcome, Spread, Trial};

use crate::{Evidence, MIB, Settings};

/// Anonymous and kernel memory sampled at its peak is at most this much above what the job can do with: charges are
/// batched per processor, and caches inside the kernel give way.
const FLOOR_SLACK: f64 = 0.97;

/// Too few bytes read again to say what one costs.
pub const TELLING_BYTES: u64 = 4 * MIB;

/// Facts of a search. Bytes are bytes, times are seconds.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// What the person asked for.
    pub settings: &'a Settings,
    /// All runs so far.
    pub evidence: &'a Evidence,
    /// Run time without a limit as the machine is now.
    pub reference: Option<Spread>,
    /// The largest peak charge without a limit.
    pub peak: Option<u64>,
    /// The largest floor.
    pub floor: Option<u64>,
    /// A limit may cost what shows in the run time only, and neither as stall nor as file pages read again: writers that are held
    /// back, and swap.
    pub may_cost_unseen: bool,
    /// The least limit at which the job's writers are not held back (the kernel's Documentation/admin-guide/sysctl/vm.rst,
    /// dirty_ratio, applied to a cgroup's own memory): what it writes must stay below a share of what the limit leaves beside
    /// the unreclaimable. `None` if that is no more than what it used without a limit, or if a trial well below has passed: then
    /// the writing is no hindrance.
    pub writers_knee: Option<u64>,
    /// The limit below which the job is killed for sure; nothing is known where it may swap.
    pub too_little: Option<u64>,
}

impl<'a> Facts<'a> {
    /// Linear in the number of runs.
    pub fn of(settings: &'a Settings, evidence: &'a Evidence) -> Facts<'a> {
        let (peak, floor) = (evidence.peak_charge_bytes(), evidence.floor_bytes());
        Facts {
            settings,
            evidence,
            reference: evidence.reference(),
            peak,
            floor,
            may_cost_unseen: may_cost_unseen(settings, evidence),
            writers_knee: writers_knee(settings, evidence, floor, peak),
            too_little: too_little(settings, evidence),
        }
    }

    /// A limit that the charge never came to without one, and that is therefore none.
    pub fn never_reached(&self) -> Option<u64> {
        let peak = self.peak?;
        Some(self.writers_knee.map_or(peak, |knee| knee.max(peak)))
    }

    /// Whether a limit is such a one.
    pub fn is_no_limit(&self, limit_bytes: u64) -> bool {
        self.never_reached().is_some_and(|peak| limit_bytes >= peak)
    }

    /// Whether a run had to read so much again that this tells of memory; `None` if that is not known.
    pub fn read_again(&self, trial: &Trial) -> Option<bool> {
        Some(trial.refaults? * self.settings.page_bytes >= TELLING_BYTES)
    }
}

fn most_dirty(evidence: &Evidence) -> Option<u64> {
    evidence.references.iter().filter_map(|r| r.dirty_bytes).max()
}

fn may_cost_unseen(settings: &Settings, evidence: &Evidence) -> bool {
    settings.has_slower_memory || settings.dirty_share.is_some() && most_dirty(evidence).unwrap_or(0) >= TELLING_BYTES
}

fn writers_knee(settings: &Settings, evidence: &Evidence, floor: Option<u64>, peak: Option<u64>) -> Option<u64> {
    let knee = floor? + (most_dirty(evidence)? as f64 / settings.dirty_share?) as u64;
    let is_refuted =
        |t: &Trial| t.outcome == Outcome::Ok && t.limit_bytes.is_some_and(|l| (l as f64) < 0.95 * knee as f64);
    (knee > peak? && !evidence.trials.iter().any(is_refuted)).then_some(knee)
}

fn too_little(settings: &Settings, evidence: &Evidence) -> Option<u64> {
    let held = evidence.references.iter().filter_map(|r| r.held_bytes.or(r.floor_bytes)).max();
    held.filter(|_| !settings.has_slower_memory && !settings.sizes_itself)
        .map(|held| (held as f64 * FLOOR_SLACK) as u64)
}
