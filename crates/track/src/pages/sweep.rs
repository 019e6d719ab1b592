//! Clearing all bits of a process at once, by `clear_refs`: the way to pages that are mapped more than once or locked.
//!
//! It takes 50 to 160 ns per page that is there, and the program has all that it uses to touch anew. So it is done seldom, and
//! only where much would be blind otherwise. Between two sweeps such a page is seen once, when it is accessed first.

use std::time::{Duration, Instant};

/// Of the whole cost that is allowed, this share is for sweeps.
pub const SHARE: f64 = 0.25;
/// Worth a sweep is this part of what is there.
const WORTH: u64 = 16;
const SOONEST: Duration = Duration::from_secs(1);

/// When a process is swept.
#[derive(Debug, Default)]
pub struct Sweep {
    /// `None`: not yet.
    next: Option<Instant>,
    forbidden: bool,
}

impl Sweep {
    /// Whether to sweep now, if so many pages, of all that are there, cannot be cleared otherwise.
    pub fn is_due(&self, pages: u64, all: u64) -> bool {
        !self.forbidden && pages > 0 && pages * WORTH >= all && self.next.is_none_or(|next| next <= Instant::now())
    }

    /// One was made that cost so much, bursar and the program together.
    pub fn was_made(&mut self, cost: Duration, overhead: f64) {
        self.next = Some(Instant::now() + cost.div_f64((overhead * SHARE).max(1e-4)).max(SOONEST));
    }

    /// The kernel did not allow it.
    pub fn was_refused(&mut self) {
        self.forbidden = true;
    }

    /// Whether one was made.
    pub fn is_used(&self) -> bool {
        self.next.is_some()
    }
}
