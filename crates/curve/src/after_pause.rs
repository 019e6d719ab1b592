//! The working set to report when tracking begins again.
//!
//! A pause of tracking can end in the middle of a burst, so that what was accessed before its end is missing. A smaller
//! working set than before the pause is reported only after as many intervals as a working set covers have confirmed
//! it.

/// The working set reported across pauses.
#[derive(Clone, Debug, Default)]
pub struct AfterPause {
    reported: u64,
    before: u64,
    left: u32,
}

impl AfterPause {
    const INTERVALS: u32 = 8;
    /// Relative change within which a working set counts as unchanged.
    const TOLERANCE: f64 = 0.05;

    /// Takes a tracked interval that needs `wss` bytes; `is_first`: the first after a pause. Returns the working set to
    /// report, and whether it is the one from before the pause.
    pub fn interval(&mut self, wss: u64, is_first: bool) -> (u64, bool) {
        if is_first {
            (self.before, self.left) = (self.reported, AfterPause::INTERVALS);
        }
        let is_less = (wss as f64) < (1.0 - AfterPause::TOLERANCE) * self.before as f64;
        self.left = if is_less { self.left.saturating_sub(1) } else { 0 };
        let holds = self.left > 0;
        self.reported = if holds { self.before } else { wss };
        (self.reported, holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Working sets reported for intervals that need this much; `None`: an interval without tracking.
    fn reported(intervals: &[Option<u64>]) -> Vec<u64> {
        let mut after_pause = AfterPause::default();
        let mut was_paused = false;
        let report = |need: &Option<u64>| match need {
            Some(need) => Some(after_pause.interval(*need, std::mem::take(&mut was_paused)).0),
            None => {
                was_paused = true;
                None
            }
        };
        intervals.iter().filter_map(report).collect()
    }

    #[test]
    fn a_part_seen_after_a_pause_is_not_reported() {
        let part = [Some(100), None, None, Some(88), Some(90), Some(100), Some(90)];
        assert_eq!(reported(&part), [100, 100, 100, 100, 90], "a working set seen in full may change as usual");
        assert_eq!(reported(&[Some(100), None, Some(98), Some(90)]), [100, 98, 90]);
    }

    #[test]
    fn less_after_a_pause_is_reported_after_8_intervals() {
        let less: Vec<_> = [Some(100), None].into_iter().chain([Some(30); 9]).collect();
        assert_eq!(reported(&less), [100, 100, 100, 100, 100, 100, 100, 100, 30, 30]);
    }

    #[test]
    fn more_after_a_pause_is_reported_at_once() {
        assert_eq!(reported(&[Some(100), None, Some(300), Some(100)]), [100, 300, 100]);
    }
}
