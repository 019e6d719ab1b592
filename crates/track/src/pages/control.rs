//! How often to scan, and how many pages, so that the cost stays within the limit and the result is as precise as the
//! limit allows.

use std::time::Duration;

/// The curve is blind below the share of pages accessed between two scans. A share below the minimum gains little,
/// because the order within a scan is learnt, while the extra scans take their cost from the sample. A sample with
/// fewer units than the minimum is dominated by chance.
const MIN_BLIND_SHARE: f64 = 0.015;
const MAX_BLIND_SHARE: f64 = 0.035;
const MIN_UNITS: usize = 512;
const MAX_UNITS: usize = 16_384;
/// For pages that return from swap a smaller sample is enough, because each return is an event.
const MIN_RETURN_UNITS: usize = 128;
const MIN_INTERVAL: Duration = Duration::from_millis(1);
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// The pace is only made denser below this share of the allowed cost, so that doubling the cost stays within it.
const DENSER_BELOW: f64 = 0.42;

/// How scans are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time from scan to scan.
    pub interval: Duration,
    /// One of 2^level pages is scanned.
    pub level: u32,
}

/// Measured costs over some time, as shares of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Reading bits and evaluating them.
    pub scanning: f64,
    /// Clearing bits, including what that costs the program.
    pub clearing: f64,
    /// Events of pages that return from swap, which depend on the level alone; included in both of the above.
    pub returned: f64,
    /// Share of the pages, hot ones excluded, that one scan found accessed.
    pub touched: f64,
    /// Pages and huge pages scanned.
    pub units: usize,
}

impl Pace {
    /// The next pace.
    pub fn after(self, spent: Spent, allowed: f64) -> Pace {
        let share = spent.scanning + spent.clearing;
        let slower = Pace { interval: (self.interval * 3 / 2).min(MAX_INTERVAL), ..self };
        let faster = Pace { interval: (self.interval * 2 / 3).max(MIN_INTERVAL), ..self };
        let thinner = Pace { level: self.level + 1, ..self };
        let denser = Pace { level: self.level.saturating_sub(1), ..self };
        if share > allowed {
            let is_sample_large = spent.units >= 2 * MIN_UNITS && spent.touched > MIN_BLIND_SHARE;
            let is_swapping_costly = spent.units >= 2 * MIN_RETURN_UNITS && spent.returned * 2.0 > allowed;
            return if is_sample_large || is_swapping_costly { thinner } else { slower };
        }
        if spent.touched > MAX_BLIND_SHARE && faster != self {
            // Trade a sample that is large enough for more frequent scans.
            return match share * 1.5 < allowed {
                true => faster,
                false if spent.units >= 2 * MIN_UNITS => thinner,
                false => self,
            };
        }
        if spent.touched < MIN_BLIND_SHARE && self.interval < MAX_INTERVAL {
            return slower;
        }
        match share < DENSER_BELOW * allowed && spent.units * 2 <= MAX_UNITS && self.level > 0 {
            true => denser,
            false => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { interval: Duration::from_millis(10), level: 6 };

    fn spent(scanning: f64, clearing: f64, touched: f64, units: usize) -> Spent {
        Spent { scanning, clearing, returned: 0.0, touched, units }
    }

    #[test]
    fn excess_cost_thins_large_samples_and_slows_small_ones() {
        assert_eq!(PACE.after(spent(0.01, 0.03, 0.02, 4096), 0.02).level, 7);
        assert!(PACE.after(spent(0.03, 0.0, 0.001, 4096), 0.02).interval > PACE.interval);
        assert!(PACE.after(spent(0.03, 0.03, 0.02, 512), 0.02).interval > PACE.interval);
    }

    #[test]
    fn many_swap_returns_thin_the_sample() {
        let returned = |units| Spent { returned: 0.02, ..spent(0.015, 0.015, 0.0, units) };
        assert_eq!(PACE.after(returned(512), 0.02).level, 7);
        assert!(PACE.after(returned(128), 0.02).interval > PACE.interval);
    }

    #[test]
    fn scans_speed_up_when_much_is_touched_between_them() {
        assert!(PACE.after(spent(0.001, 0.001, 0.2, 4096), 0.02).interval < PACE.interval);
        assert_eq!(PACE.after(spent(0.018, 0.001, 0.2, 4096), 0.02).level, 7);
    }

    #[test]
    fn spare_cost_adds_pages_up_to_the_maximum() {
        assert_eq!(PACE.after(spent(0.001, 0.001, 0.02, 4096), 0.02).level, 5);
        assert_eq!(PACE.after(spent(0.001, 0.001, 0.02, MAX_UNITS), 0.02), PACE);
    }

    #[test]
    fn an_idle_program_is_scanned_rarely() {
        let mut pace = PACE;
        for _ in 0..100 {
            pace = pace.after(spent(0.0001, 0.0, 0.0, 4096), 0.02);
        }
        assert_eq!(pace.interval, MAX_INTERVAL);
    }
}
