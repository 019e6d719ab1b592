//! What was done to regions, so that none goes to and fro.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What was done is let alone for so many times as long as a decision is of use.
const REST: u32 = 4;

/// Regions by process and address, and until when each is let alone.
#[derive(Debug)]
pub struct History {
    until: BTreeMap<(i32, u64), Instant>,
    rest: Duration,
}

impl History {
    /// `horizon`: how long a decision is of use.
    pub fn of(horizon: Duration) -> History {
        History { until: BTreeMap::new(), rest: horizon * REST }
    }

    /// Something was done to a region, or could not be, or was found not to be worth it.
    pub fn done(&mut self, pid: i32, region: u64, now: Instant) {
        self.until.insert((pid, region), now + self.rest);
    }

    /// Whether anything may be done to it.
    pub fn is_free(&self, pid: i32, region: u64, now: Instant) -> bool {
        self.until.get(&(pid, region)).is_none_or(|until| *until <= now)
    }

    /// Forgets what is over.
    pub fn forget(&mut self, now: Instant) {
        self.until.retain(|_, until| *until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_to_a_region_is_not_undone_at_once() {
        let now = Instant::now();
        let mut history = History::of(Duration::from_secs(15));
        history.done(7, 1 << 21, now);
        assert!(!history.is_free(7, 1 << 21, now + Duration::from_secs(59)));
        assert!(history.is_free(7, 1 << 21, now + Duration::from_secs(60)));
        assert!(history.is_free(8, 1 << 21, now) && history.is_free(7, 2 << 21, now));
        history.forget(now + Duration::from_secs(60));
        assert!(history.until.is_empty());
    }
}
