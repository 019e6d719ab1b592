//! Memory that was accessed for the first time of late: whether it will be again is not known yet.
//!
//! A working set says what was accessed again. A program that has just gone through new memory for the first time may do so again in a
//! moment, and then needs all of it; or never, as one that reads a file from its beginning to its end. Which of the two it is, the
//! memory that came before tells: as much came, and was not accessed again.

use std::collections::VecDeque;

/// So many intervals for what came of late, and as many before those.
const INTERVALS: usize = 8;

/// The working set may be less than what came by this part.
const MARGIN: f64 = 0.1;

/// What came in the last intervals in which memory was tracked, in bytes.
#[derive(Clone, Debug, Default)]
pub struct Fresh(VecDeque<u64>);

impl Fresh {
    /// One more interval, in which so many bytes were accessed for the first time.
    pub fn add(&mut self, bytes: u64) {
        if self.0.len() == 2 * INTERVALS {
            self.0.pop_back();
        }
        self.0.push_front(bytes);
    }

    /// What came of late, of memory of which `there` bytes are there still: what a process had that is gone is not accessed again.
    pub fn recent(&self, there: u64) -> u64 {
        self.0.iter().take(INTERVALS).sum::<u64>().min(there)
    }

    /// The same, if a working set of `wss` bytes says nothing of it: it is more, and more than twice what came before.
    /// `unit`: what may come beside a working set.
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

    fn told(came: impl IntoIterator<Item = u64>, wss: u64) -> Vec<Option<u64>> {
        let mut fresh = Fresh::default();
        let mut tell = |bytes| {
            fresh.add(bytes);
            fresh.beyond(wss, u64::MAX, 1)
        };
        came.into_iter().map(&mut tell).collect()
    }

    #[test]
    fn what_came_at_once_may_be_needed_until_it_is_not_for_eight_intervals() {
        let mut expected = vec![Some(100); INTERVALS];
        expected.push(None);
        assert_eq!(told(std::iter::once(100).chain([0; INTERVALS]), 10), expected);
    }

    #[test]
    fn a_program_that_always_goes_on_to_new_memory_needs_what_it_accesses_again() {
        let told = told([50; 40], 10);
        assert!(told[..8].iter().all(Option::is_some) && told[12..].iter().all(Option::is_none), "{told:?}");
    }

    #[test]
    fn what_processes_had_that_are_gone_is_no_news() {
        let mut fresh = Fresh::default();
        [20, 20, 20, 100].into_iter().for_each(|bytes| fresh.add(bytes));
        assert_eq!((fresh.beyond(100, 160, 1), fresh.beyond(100, 105, 1)), (Some(160), None));
    }

    #[test]
    fn a_working_set_that_holds_it_is_known_and_a_little_is_no_news() {
        assert_eq!(told([100, 0], 95), [None, None]);
        assert_eq!(told([1, 0], 0), [None, None]);
        assert_eq!(told([], 0), []);
    }
}
