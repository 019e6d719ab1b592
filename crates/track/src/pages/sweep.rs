//! Sweeps: clearing all bits of a process at once, by `clear_refs`, for pages that are mapped more than once or locked.
//!
//! A sweep takes 50 to 160 ns per present page, and the program touches all its pages anew. So sweeps are rare, and
//! made only where much memory would be blind otherwise. Between two sweeps only the first access to such a page is
//! seen.

use std::time::{Duration, Instant};

/// Share of the allowed cost that sweeps may use.
pub const SHARE: f64 = 0.25;
/// A sweep is worth its cost if at least this part (1/16) of the present pages needs it.
const SWEEP_PART: u64 = 16;
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// When a process is swept.
#[derive(Debug, Default)]
pub struct Sweep {
    /// `None`: not yet.
    next: Option<Instant>,
    forbidden: bool,
}

impl Sweep {
    /// Whether to sweep now, if `pages` of `all` present pages cannot be cleared otherwise.
    pub fn is_due(&self, pages: u64, all: u64) -> bool {
        !self.forbidden && pages > 0 && pages * SWEEP_PART >= all && self.next.is_none_or(|next| next <= Instant::now())
    }

    /// Notes a sweep with this cost, of bursar and the program together.
    pub fn was_made(&mut self, cost: Duration, overhead: f64) {
        self.next = Some(Instant::now() + cost.div_f64((overhead * SHARE).max(1e-4)).max(MIN_INTERVAL));
    }

    /// Notes that the kernel refused it.
    pub fn was_refused(&mut self) {
        self.forbidden = true;
    }

    /// Whether a sweep was made.
    pub fn is_used(&self) -> bool {
        self.next.is_some()
    }
}
