//! When to scan.

use std::time::{Duration, Instant};

/// The share of one processor that scans may use.
const SHARE: f64 = 0.008;
/// CPU time allowed at the start, so that a run of one second has scans.
const INITIAL_BUDGET: Duration = Duration::from_millis(8);
const MIN_PAUSE: Duration = Duration::from_millis(25);
/// Spreads the initial budget over time: the pause is a third of the time since the first scan, up to this.
const MAX_SPREAD: Duration = Duration::from_millis(200);

/// CPU time that scans have used.
#[derive(Debug)]
pub struct Pace {
    began: Instant,
    spent: Duration,
    last: Duration,
}

impl Pace {
    /// Starts with nothing spent.
    pub fn begin() -> Pace {
        Pace { began: Instant::now(), spent: Duration::ZERO, last: Duration::ZERO }
    }

    /// Adds the CPU time of one scan.
    pub fn spent(&mut self, cost: Duration) {
        self.spent += cost;
        self.last = cost;
    }

    /// How long to wait until the next scan, assuming that it costs as much as the last.
    pub fn pause(&self) -> Duration {
        pause(self.began.elapsed(), self.spent + self.last)
    }
}

fn pause(elapsed: Duration, cost: Duration) -> Duration {
    let paid_after = cost.saturating_sub(INITIAL_BUDGET).div_f64(SHARE);
    paid_after.saturating_sub(elapsed).max((elapsed / 3).clamp(MIN_PAUSE, MAX_SPREAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn first_scans_run_at_once_later_ones_keep_the_budget() {
        assert_eq!(pause(Duration::ZERO, 2 * MS), MIN_PAUSE);
        assert_eq!(pause(300 * MS, 8 * MS), 100 * MS);
        assert_eq!(pause(Duration::ZERO, 16 * MS), 1000 * MS);
        assert_eq!(pause(500 * MS, 16 * MS), 500 * MS);
        assert_eq!(pause(5000 * MS, 16 * MS), MAX_SPREAD);
    }
}
