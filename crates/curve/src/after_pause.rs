//! What is told when tracking begins again.
//!
//! A pause of tracking can end in the midst of a burst: what was accessed before its end is missing. Less than was told before the pause is
//! told when as many intervals as a working set is of have seen no more.

/// What is told of tracked intervals, after pauses and before.
#[derive(Clone, Debug, Default)]
pub struct AfterPause {
    told: u64,
    before: u64,
    left: u32,
}

impl AfterPause {
    const INTERVALS: u32 = 8;
    /// By so much a working set that has not changed may vary.
    const SAME: f64 = 0.05;

    /// Of a tracked interval that needs so many bytes, the first after a pause or not: what to tell, and whether that is still of before.
    pub fn interval(&mut self, wss: u64, is_first: bool) -> (u64, bool) {
        if is_first {
            (self.before, self.left) = (self.told, AfterPause::INTERVALS);
        }
        let is_less = (wss as f64) < (1.0 - AfterPause::SAME) * self.before as f64;
        self.left = if is_less { self.left.saturating_sub(1) } else { 0 };
        let holds = self.left > 0;
        self.told = if holds { self.before } else { wss };
        (self.told, holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of intervals that need so much; `None`: one without tracking.
    fn told(intervals: &[Option<u64>]) -> Vec<u64> {
        let mut after_pause = AfterPause::default();
        let mut was_paused = false;
        let tell = |need: &Option<u64>| match need {
            Some(need) => Some(after_pause.interval(*need, std::mem::take(&mut was_paused)).0),
            None => {
                was_paused = true;
                None
            }
        };
        intervals.iter().filter_map(tell).collect()
    }

    #[test]
    fn a_part_that_is_seen_after_a_pause_is_not_told() {
        let part = [Some(100), None, None, Some(88), Some(90), Some(100), Some(90)];
        assert_eq!(told(&part), [100, 100, 100, 100, 90], "what was seen again may change as always");
        assert_eq!(told(&[Some(100), None, Some(98), Some(90)]), [100, 98, 90]);
    }

    #[test]
    fn less_after_a_pause_is_told_when_eight_intervals_have_seen_no_more() {
        let less: Vec<_> = [Some(100), None].into_iter().chain([Some(30); 9]).collect();
        assert_eq!(told(&less), [100, 100, 100, 100, 100, 100, 100, 100, 30, 30]);
    }

    #[test]
    fn more_after_a_pause_is_told_at_once() {
        assert_eq!(told(&[Some(100), None, Some(300), Some(100)]), [100, 300, 100]);
    }
}
