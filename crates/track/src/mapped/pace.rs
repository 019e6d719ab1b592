//! When to scan.

use std::time::{Duration, Instant};

/// Of one processor.
const SHARE: f64 = 0.008;
/// Allowed at the start, so that a run of a second has scans.
const AT_ONCE: Duration = Duration::from_millis(8);
const SHORTEST: Duration = Duration::from_millis(25);
/// What may be spent at once is spread: a scan waits for a third of the time since the first one, up to this.
const LONGEST_SPREAD: Duration = Duration::from_millis(200);

/// What scans have cost.
#[derive(Debug)]
pub struct Pace {
    began: Instant,
    spent: Duration,
    last: Duration,
}

impl Pace {
    /// Nothing was spent yet.
    pub fn begin() -> Pace {
        Pace { began: Instant::now(), spent: Duration::ZERO, last: Duration::ZERO }
    }

    /// A scan has cost so much.
    pub fn spent(&mut self, cost: Duration) {
        self.spent += cost;
        self.last = cost;
    }

    /// How long to wait until the next scan, which is taken to cost as much as the last.
    pub fn pause(&self) -> Duration {
        pause(self.began.elapsed(), self.spent + self.last)
    }
}

fn pause(elapsed: Duration, cost: Duration) -> Duration {
    let paid_after = cost.saturating_sub(AT_ONCE).div_f64(SHARE);
    paid_after.saturating_sub(elapsed).max((elapsed / 3).clamp(SHORTEST, LONGEST_SPREAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_scans_follow_each_other_and_later_ones_wait_until_they_are_paid() {
        assert_eq!(pause(Duration::ZERO, 2 * MS), SHORTEST);
        assert_eq!(pause(300 * MS, 8 * MS), 100 * MS);
        assert_eq!(pause(Duration::ZERO, 16 * MS), 1000 * MS);
        assert_eq!(pause(500 * MS, 16 * MS), 500 * MS);
        assert_eq!(pause(5000 * MS, 16 * MS), LONGEST_SPREAD);
    }
}
