//! Memory that was first accessed recently: whether it will be accessed again is not known yet.
//!
//! A working set consists of memory that was accessed again. A program that has just accessed new memory for the first
//! time may soon do so again, and then needs all of it; or never, like one that reads a file from beginning to end. The
//! memory that was new before shows which: if as much was new then and was not accessed again, this memory will not be
//! either.

use std::collections::VecDeque;

/// Number of recent intervals, and of the intervals before them.
const INTERVALS: usize = 8;

/// The working set may be smaller than the new memory by this part.
const MARGIN: f64 = 0.1;

/// Bytes first accessed in each of the last tracked intervals.
#[derive(Clone, Debug, Default)]
pub struct Fresh(VecDeque<u64>);

impl Fresh {
    /// Adds an interval in which this many bytes were first accessed.
    pub fn add(&mut self, bytes: u64) {
        if self.0.len() == 2 * INTERVALS {
            self.0.pop_back();
        }
        self.0.push_front(bytes);
    }

    /// Bytes first accessed recently, at most `there`, the memory that still exists: freed memory is not accessed
    /// again.
    pub fn recent(&self, there: u64) -> u64 {
        self.0.iter().take(INTERVALS).sum::<u64>().min(there)
    }

    /// The same, if a working set of `wss` bytes does not cover it: it is larger, and more than twice what was new
    /// before. `unit`: what may be new besides a working set.
    pub fn beyond(&self, wss: u64, there: u64, unit: u64) -> Option<u64> {
        let came = self.recent(there);
        let before: u64 = self.0.iter().skip(INTERVALS).sum();
        let is_covered = wss as f64 * (1.0 + MARGIN) >= came.saturating_sub(unit) as f64;
        (!is_covered && came > before.saturating_mul(2)).then_some(came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(came: impl IntoIterator<Item = u64>, wss: u64) -> Vec<Option<u64>> {
        let mut fresh = Fresh::default();
        let mut report = |bytes| {
            fresh.add(bytes);
            fresh.beyond(wss, u64::MAX, 1)
        };
        came.into_iter().map(&mut report).collect()
    }

    #[test]
    fn a_burst_of_new_memory_may_be_needed_for_8_intervals() {
        let mut expected = vec![Some(100); INTERVALS];
        expected.push(None);
        assert_eq!(reported(std::iter::once(100).chain([0; INTERVALS]), 10), expected);
    }

    #[test]
    fn steady_new_memory_is_not_needed() {
        let reported = reported([50; 40], 10);
        assert!(
            reported[..8].iter().all(Option::is_some) && reported[12..].iter().all(Option::is_none),
            "{reported:?}"
        );
    }

    #[test]
    fn freed_memory_does_not_count_as_new() {
        let mut fresh = Fresh::default();
        [20, 20, 20, 100].into_iter().for_each(|bytes| fresh.add(bytes));
        assert_eq!((fresh.beyond(100, 160, 1), fresh.beyond(100, 105, 1)), (Some(160), None));
    }

    #[test]
    fn new_memory_covered_by_the_working_set_is_no_news() {
        assert_eq!(reported([100, 0], 95), [None, None]);
        assert_eq!(reported([1, 0], 0), [None, None]);
        assert_eq!(reported([], 0), []);
    }
}
