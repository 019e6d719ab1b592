//! What a page needs that is accessed after memory was filled.
//!
//! Many programs fill all their memory once and then work on a part of it. When they first access a page again, all that was filled
//! after it lies in between. That happens once, so it is no need of the program if the page is soon accessed again, with less in between.
//! A program that goes round all its memory needs it: then the page is not soon accessed again, or with as much in between. So it is
//! where much new memory is found at once: it may have been filled before the page was accessed last.

use std::collections::HashMap;
use std::time::Duration;

use super::misses::Misses;

/// So long the first access counts for nothing, to be replaced by a second.
const SOON: Duration = Duration::from_secs(1);

/// The first accesses after memory was filled, by process and address.
#[derive(Debug, Default)]
pub struct FirstAgain(HashMap<(i32, u64), Need>);

/// What would have kept a page until that access.
#[derive(Debug)]
struct Need {
    /// In all, in pages.
    needs: u64,
    /// That the page stands for.
    pages: u64,
    /// When it was, since the beginning.
    at: Duration,
}

impl FirstAgain {
    /// A page was accessed for the first time after memory was filled. If it was before, as other memory was, the least counts.
    pub fn add(&mut self, page: (i32, u64), needs: u64, pages: u64, at: Duration) {
        let first = self.0.entry(page).or_insert(Need { needs, pages, at });
        first.needs = first.needs.min(needs);
    }

    /// A page was accessed once more: what it needs is known from this access.
    pub fn replace(&mut self, page: (i32, u64)) {
        self.0.remove(&page);
    }

    /// Counts those that no second access has replaced soon, whatever became of the page. `now`: the last look, for without looks no
    /// access is seen.
    pub fn settle(&mut self, now: Duration, misses: &mut Misses) {
        self.0.retain(|_, need| {
            let is_soon = now.saturating_sub(need.at) < SOON;
            if !is_soon {
                misses.add(need.needs, need.pages as f64);
            }
            is_soon
        });
    }
}

/// A program that fills memory for longer, or again after less, does so as a part of its work.
const LONG: Duration = Duration::from_secs(8);

/// When a program fills much memory.
#[derive(Debug, Default)]
pub struct Fills {
    began: Duration,
    last: Option<Duration>,
}

impl Fills {
    /// It does now, after so long: whether that is before its work, and not a part of it.
    pub fn is_before_work(&mut self, now: Duration) -> bool {
        if self.last.replace(now).is_none_or(|last| now - last > LONG) {
            self.began = now;
        }
        now - self.began < LONG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fills_memory_again_and_again_does_so_as_a_part_of_its_work() {
        let mut fills = Fills::default();
        let mut told = |seconds| fills.is_before_work(Duration::from_secs(seconds));
        assert_eq!([0, 1, 7, 9, 16, 30].map(&mut told), [true, true, true, false, false, true]);
    }

    /// Misses per second without any memory, after so many seconds, of two pages that were accessed again after one.
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
    fn a_first_access_counts_when_no_second_came_soon() {
        assert_eq!([missed(1, false), missed(2, false), missed(2, true)], [0.0, 2.0, 0.0]);
    }

    #[test]
    fn it_counts_once_with_the_least_need() {
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
