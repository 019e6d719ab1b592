//! What memory can have cost one run, by its memory figures and whatever its run time was.

use model::Trial;

use crate::processor::Processor;

/// Memory explains a loss of time if it may have cost this share of it.
pub const EXPLAINED: f64 = 0.5;

/// The share of a stall that surely shows in the figures.
pub const SEEN_STALL: f64 = 0.5;

/// A limit mattered if the charge reached this share of it.
const TOUCHED: f64 = 0.98;

impl Processor<'_> {
    /// Whether its charge never reached its limit, or it had no refaults under a limit that the references never reached: its run time then
    /// shows only the machine's speed.
    pub fn is_untouched(&self, trial: &Trial) -> bool {
        let Some(limit) = trial.limit_bytes.filter(|_| !self.settings.sizes_itself) else { return false };
        let stayed_below = trial.peak_charge_bytes.is_some_and(|peak| (peak as f64) < TOUCHED * limit as f64);
        let is_ample = self.peak.is_some_and(|peak| limit >= peak) && self.has_refaulted(trial) != Some(true);
        self.writers_knee.is_none() && (stayed_below && !self.computes_more(trial) || is_ample)
    }

    /// Whether memory did not slow it down: its limit did not matter, or it lost nothing to it.
    pub fn cost_nothing(&self, trial: &Trial) -> bool {
        self.is_untouched(trial) || self.lost_nothing(trial)
    }

    /// Whether memory surely did not slow it down: none of memory's cost can be hidden.
    pub fn is_unslowed(&self, trial: &Trial) -> bool {
        self.is_untouched(trial) || !self.has_hidden_cost && self.lost_nothing(trial)
    }

    /// Stall and refaults are less noisy than time. Without excess over the references', memory cost the run nothing, however long it took.
    fn lost_nothing(&self, trial: &Trial) -> bool {
        let allowed = self.evidence.reference_of(trial).map(|reference| self.settings.slowdown * reference);
        self.most_lost(trial, self.additional(trial))
            .zip(allowed)
            .is_some_and(|(lost, allowed)| lost < EXPLAINED * allowed)
    }

    /// The most that memory can have cost a run, in seconds: the stall, of which some may be hidden, or the CPU time of reclaim and
    /// refaults (`cpu` of a completed run, else the maximum for its refaults). `None` if unknown: the storage's latency shows only as
    /// stall.
    pub fn most_lost(&self, trial: &Trial, cpu: Option<f64>) -> Option<f64> {
        if self.settings.has_slower_memory {
            return None;
        }
        let reading = cpu.or(self.most_read(trial));
        match trial.stall_seconds {
            Some(stall) => Some(reading.unwrap_or(0.0).max(stall / SEEN_STALL)),
            None => reading.filter(|_| self.has_refaulted(trial) == Some(false)),
        }
    }
}
