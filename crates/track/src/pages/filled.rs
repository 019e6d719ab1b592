//! The memory needed by a page that is accessed after a fill phase.
//!
//! Many programs fill all their memory once and then work on a part of it. At the first access to a page after the
//! fill, all memory filled later lies in between. That distance occurs once, so it is discarded if the page is accessed
//! again soon, with less in between. It counts for a program that loops over all its memory, whose pages are not
//! accessed again soon or only with as much in between. The same holds where a scan finds much new memory at once,
//! because that may have been filled before the page's last access.

use std::collections::HashMap;
use std::time::Duration;

use super::misses::Misses;

/// The first access after a fill counts only if no second one follows within this time.
const REPLACE_WITHIN: Duration = Duration::from_secs(1);

/// First accesses after a fill, by (process, address).
#[derive(Debug, Default)]
pub struct FirstAgain(HashMap<(i32, u64), Need>);

/// The first access of a page after a fill.
#[derive(Debug)]
struct Need {
    /// Pages of memory that would have kept the page.
    needs: u64,
    /// Number of pages that the page stands for.
    pages: u64,
    /// Time of the access, since tracking began.
    at: Duration,
}

impl FirstAgain {
    /// Notes the first access of a page after a fill. If there are several, as when more memory was filled, the least
    /// distance counts.
    pub fn add(&mut self, page: (i32, u64), needs: u64, pages: u64, at: Duration) {
        let first = self.0.entry(page).or_insert(Need { needs, pages, at });
        first.needs = first.needs.min(needs);
    }

    /// A page was accessed once more: this access shows what it needs.
    pub fn replace(&mut self, page: (i32, u64)) {
        self.0.remove(&page);
    }

    /// Counts those that no second access has replaced in time, even if the page is gone. `now` is the time of the last
    /// scan, because no access is seen without scans.
    pub fn settle(&mut self, now: Duration, misses: &mut Misses) {
        self.0.retain(|_, need| {
            let may_be_replaced = now.saturating_sub(need.at) < REPLACE_WITHIN;
            if !may_be_replaced {
                misses.add(need.needs, need.pages as f64);
            }
            may_be_replaced
        });
    }
}

/// A program that fills memory for longer than this, or again within this time, fills it as a part of its work.
const FILL_GAP: Duration = Duration::from_secs(8);

/// The times when a program filled much memory.
#[derive(Debug, Default)]
pub struct Fills {
    began: Duration,
    last: Option<Duration>,
}

impl Fills {
    /// The program fills much memory now. Returns whether it does so before its work, and not as a part of it.
    pub fn is_before_work(&mut self, now: Duration) -> bool {
        if self.last.replace(now).is_none_or(|last| now - last > FILL_GAP) {
            self.began = now;
        }
        now - self.began < FILL_GAP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_fills_are_part_of_the_work() {
        let mut fills = Fills::default();
        let mut before_work = |seconds| fills.is_before_work(Duration::from_secs(seconds));
        assert_eq!([0, 1, 7, 9, 16, 30].map(&mut before_work), [true, true, true, false, false, true]);
    }

    /// Misses per second without any memory, after so many seconds, of two pages that were accessed again after one
    /// second.
    fn missed(seconds: u64, was_replaced: bool) -> f64 {
        let (mut first, mut misses) = (FirstAgain::default(), Misses::default());
        first.add((1, 0), 300, 2, Duration::from_secs(1));
        if was_replaced {
            first.replace((1, 0));
        }
        first.settle(Duration::from_secs(seconds), &mut misses);
        misses.curve(1.0, 4096)[0].misses_per_second
    }

    #[test]
    fn a_first_access_counts_if_no_second_follows_soon() {
        assert_eq!([missed(1, false), missed(2, false), missed(2, true)], [0.0, 2.0, 0.0]);
    }

    #[test]
    fn a_first_access_counts_once_with_the_least_distance() {
        let (mut first, mut misses) = (FirstAgain::default(), Misses::default());
        first.add((1, 0), 300, 2, Duration::ZERO);
        first.add((1, 0), 64, 2, Duration::from_millis(900));
        (5..8).for_each(|seconds| first.settle(Duration::from_secs(seconds), &mut misses));
        let curve = misses.curve(1.0, 4096);
        assert_eq!(
            curve.iter().map(|point| (point.bytes >> 12, point.misses_per_second)).collect::<Vec<_>>(),
            [(0, 2.0), (64, 0.0)]
        );
    }
}
