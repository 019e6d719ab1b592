//! Recent actions on regions, so that no region is promoted and demoted in turns.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// After an action, the region is left alone for this many decision horizons.
const REST_HORIZONS: u32 = 4;

/// Until when each region is left alone, by process and address.
#[derive(Debug)]
pub struct History {
    until: BTreeMap<(i32, u64), Instant>,
    rest: Duration,
}

impl History {
    /// `horizon`: how long a decision is expected to be useful.
    pub fn of(horizon: Duration) -> History {
        History { until: BTreeMap::new(), rest: horizon * REST_HORIZONS }
    }

    /// Notes an action on a region, even if it failed or was found not to be worth it.
    pub fn done(&mut self, pid: i32, region: u64, now: Instant) {
        self.until.insert((pid, region), now + self.rest);
    }

    /// Whether the region may be acted on.
    pub fn is_free(&self, pid: i32, region: u64, now: Instant) -> bool {
        self.until.get(&(pid, region)).is_none_or(|until| *until <= now)
    }

    /// Drops expired entries.
    pub fn forget(&mut self, now: Instant) {
        self.until.retain(|_, until| *until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_not_undone_at_once() {
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
