//! The first layer of the analysis: facts from references and settings, before any run time is weighed.

use model::{Outcome, Spread, Trial};

use crate::{Evidence, MIB, Settings};

/// The sampled peak of anonymous and kernel memory exceeds what the job can run with by at most this share: charges are batched per
/// processor, and kernel caches shrink.
const FLOOR_SLACK: f64 = 0.97;

/// Fewer refaulted bytes do not show the price of a refault.
pub const TELLING_BYTES: u64 = 4 * MIB;

/// Facts of a search. Bytes are bytes, times are seconds.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The user's settings.
    pub settings: &'a Settings,
    /// All runs so far.
    pub evidence: &'a Evidence,
    /// Run time without a limit, as the machine is now.
    pub reference: Option<Spread>,
    /// The largest peak charge without a limit.
    pub peak: Option<u64>,
    /// The largest floor.
    pub floor: Option<u64>,
    /// Whether a limit may have a cost that shows only in the run time, and neither as stall nor as refaults: by throttled writers or swap.
    pub has_hidden_cost: bool,
    /// The smallest limit at which the job's writers are not throttled (the kernel's Documentation/admin-guide/sysctl/vm.rst, dirty_ratio,
    /// applied to a cgroup's own memory): dirty pages must stay below a share of the limit minus the unreclaimable memory. `None` if that
    /// is no more than the peak without a limit, or if a trial well below it has passed, which shows that writing is no bottleneck.
    pub writers_knee: Option<u64>,
    /// The limit below which the job is surely killed; `None` with swap.
    pub killed_below: Option<u64>,
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
            has_hidden_cost: has_hidden_cost(settings, evidence),
            writers_knee: writers_knee(settings, evidence, floor, peak),
            killed_below: killed_below(settings, evidence),
        }
    }

    /// A limit that the charge never reached without one, and that therefore restricts nothing.
    pub fn never_reached(&self) -> Option<u64> {
        let peak = self.peak?;
        Some(self.writers_knee.map_or(peak, |knee| knee.max(peak)))
    }

    /// Whether a limit restricts nothing.
    pub fn is_no_limit(&self, limit_bytes: u64) -> bool {
        self.never_reached().is_some_and(|peak| limit_bytes >= peak)
    }

    /// Whether a run had enough refaults to show memory's effect; `None` if unknown.
    pub fn has_refaulted(&self, trial: &Trial) -> Option<bool> {
        Some(trial.refaults? * self.settings.page_bytes >= TELLING_BYTES)
    }
}

fn most_dirty(evidence: &Evidence) -> Option<u64> {
    evidence.references.iter().filter_map(|r| r.dirty_bytes).max()
}

fn has_hidden_cost(settings: &Settings, evidence: &Evidence) -> bool {
    settings.has_slower_memory || settings.dirty_share.is_some() && most_dirty(evidence).unwrap_or(0) >= TELLING_BYTES
}

fn writers_knee(settings: &Settings, evidence: &Evidence, floor: Option<u64>, peak: Option<u64>) -> Option<u64> {
    let knee = floor? + (most_dirty(evidence)? as f64 / settings.dirty_share?) as u64;
    let is_refuted =
        |t: &Trial| t.outcome == Outcome::Ok && t.limit_bytes.is_some_and(|l| (l as f64) < 0.95 * knee as f64);
    (knee > peak? && !evidence.trials.iter().any(is_refuted)).then_some(knee)
}

fn killed_below(settings: &Settings, evidence: &Evidence) -> Option<u64> {
    let held = evidence.references.iter().filter_map(|r| r.held_bytes.or(r.floor_bytes)).max();
    held.filter(|_| !settings.has_slower_memory && !settings.sizes_itself)
        .map(|held| (held as f64 * FLOOR_SLACK) as u64)
}
