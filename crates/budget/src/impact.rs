//! What memory can have cost one run, by what was seen of memory, whatever its run time was.

use model::Trial;

use crate::processor::Processor;

/// Memory explains a loss of time if it may have cost this share of it.
pub const EXPLAINED: f64 = 0.5;

/// The share of a stall that is sure to be seen.
pub const SEEN_STALL: f64 = 0.5;

/// A limit that was in the way shows: the charge came to it.
const TOUCHED: f64 = 0.98;

impl Processor<'_> {
    /// Its charge never came to its limit, or it read nothing again at a limit that the references' charge never came to: how long it
    /// took tells of the machine.
    pub fn is_untouched(&self, trial: &Trial) -> bool {
        let Some(limit) = trial.limit_bytes.filter(|_| !self.settings.sizes_itself) else { return false };
        let stayed_below = trial.peak_charge_bytes.is_some_and(|peak| (peak as f64) < TOUCHED * limit as f64);
        let is_ample = self.peak.is_some_and(|peak| limit >= peak) && self.read_again(trial) != Some(true);
        self.writers_knee.is_none() && (stayed_below && !self.computes_more(trial) || is_ample)
    }

    /// Memory did not slow it down: its limit was not in its way, or it lost nothing to it.
    pub fn cost_nothing(&self, trial: &Trial) -> bool {
        self.is_untouched(trial) || self.lost_nothing(trial)
    }

    /// Memory surely did not slow it down: nothing that it may have cost can be hidden.
    pub fn is_unslowed(&self, trial: &Trial) -> bool {
        self.is_untouched(trial) || !self.may_cost_unseen && self.lost_nothing(trial)
    }

    /// Stall and refaults are less noisy than time: where there are next to none beyond the references', memory did not cost the run
    /// anything, however long it took.
    fn lost_nothing(&self, trial: &Trial) -> bool {
        let allowed = self.evidence.reference_of(trial).map(|reference| self.settings.slowdown * reference);
        self.most_lost(trial, self.additional(trial))
            .zip(allowed)
            .is_some_and(|(lost, allowed)| lost < EXPLAINED * allowed)
    }

    /// The most that memory can have cost a run, in seconds: what it stalled, of which some may be hidden, or what reclaim and reading
    /// again took the processor: `cpu`, if the run came to its end, else what reading takes at the most. `None` if that is not known:
    /// how long the storage takes shows as stall only.
    pub fn most_lost(&self, trial: &Trial, cpu: Option<f64>) -> Option<f64> {
        if self.settings.has_slower_memory {
            return None;
        }
        let reading = cpu.or(self.most_read(trial));
        match trial.stall_seconds {
            Some(stall) => Some(reading.unwrap_or(0.0).max(stall / SEEN_STALL)),
            None => reading.filter(|_| self.read_again(trial) == Some(false)),
        }
    }
}
