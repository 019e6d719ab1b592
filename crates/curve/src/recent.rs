//! What a program has needed of late: the curves of its last intervals, averaged.
//!
//! A program that goes through its memory once in some seconds needs it all the time, though in many a single interval it is not seen
//! to. So the working set is told of several intervals together: what misses too often in any of them is needed, and what is
//! needed no more is let go when none of them misses it. (IMT: "it uses the same LRU list and histogram as in the last tracking
//! interval".)

use std::collections::VecDeque;

use model::{MissPoint, PagesRound, told_apart};

/// So many intervals. With fewer, programs whose loops take longer than an interval swing; with more, it takes longer to see that one
/// needs less. With 6, 7, 9 and 10 the mean error of the real programs of bench/phases was 0.8, 0.4, 0.1 and 0.3 points higher.
const INTERVALS: usize = 8;

/// What was seen in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Misses per second by memory size, sizes rising.
    pub misses: Vec<MissPoint>,
    /// How long it was.
    pub seconds: f64,
    /// Of how many pages one was looked at.
    pub one_in: u64,
    /// Below this size, in bytes, the curve is not known.
    pub blind_below: u64,
}

impl From<&PagesRound> for Seen {
    fn from(round: &PagesRound) -> Seen {
        let PagesRound { seconds, one_in, blind_below, .. } = *round;
        Seen { misses: round.misses.clone(), seconds, one_in, blind_below }
    }
}

/// The last intervals in which memory was tracked.
#[derive(Clone, Debug, Default)]
pub struct Recent(VecDeque<Seen>);

impl Recent {
    /// One more interval.
    pub fn add(&mut self, seen: Seen) {
        if self.0.len() == INTERVALS {
            self.0.pop_front();
        }
        self.0.push_back(seen);
    }

    /// Before the first interval after some in which memory was not tracked: all that came before says no more than its last. Else a
    /// working set that changes slowly is told long after, for what is needed in any interval is told of all of them.
    pub fn keep_last(&mut self) {
        self.0.drain(..self.0.len().saturating_sub(1));
    }

    /// The working set of these intervals together: the least size, in bytes, with at most so many misses per second, or with less than
    /// a standard deviation more in the sample. 0 of none. O(n log n) of n points.
    pub fn working_set(&self, misses_per_second: f64) -> u64 {
        working_set(self.0.iter(), misses_per_second)
    }

    /// The same of the last interval alone.
    pub fn last_working_set(&self, misses_per_second: f64) -> u64 {
        working_set(self.0.back().into_iter(), misses_per_second)
    }
}

fn working_set<'a>(all: impl Iterator<Item = &'a Seen> + Clone, misses_per_second: f64) -> u64 {
    let seconds: f64 = all.clone().map(|seen| seen.seconds).sum();
    let one_in = all.clone().map(|seen| seen.one_in).max().unwrap_or(0);
    let blind_below = all.clone().map(|seen| seen.blind_below).max().unwrap_or(0);
    if seconds <= 0.0 {
        return blind_below;
    }
    let most = told_apart(misses_per_second, one_in as f64 / seconds) * seconds;
    let mut left: f64 =
        all.clone().filter_map(|seen| Some(seen.misses.first()?.misses_per_second * seen.seconds)).sum();
    // What each size misses no more.
    let hits = |seen: &'a Seen| {
        seen.misses.windows(2).map(|points| {
            let fewer = points[0].misses_per_second - points[1].misses_per_second;
            (points[1].bytes, fewer * seen.seconds)
        })
    };
    let mut hits: Vec<(u64, f64)> = all.flat_map(hits).collect();
    hits.sort_unstable_by_key(|(bytes, _)| *bytes);
    let mut size = 0;
    for (bytes, fewer) in hits {
        if left <= most {
            break;
        }
        (size, left) = (bytes, left - fewer);
    }
    size.max(blind_below)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERATED: f64 = 100.0;

    /// A second in which so many misses need this size not to be, and so many that one.
    fn seen(needs: &[(u64, f64)]) -> Seen {
        let mut left: f64 = needs.iter().map(|(_, misses)| misses).sum();
        let mut misses = vec![MissPoint { bytes: 0, misses_per_second: left }];
        for (bytes, fewer) in needs {
            left -= fewer;
            misses.push(MissPoint { bytes: *bytes, misses_per_second: left });
        }
        Seen { misses, seconds: 1.0, one_in: 0, blind_below: 0 }
    }

    fn told(intervals: &[&[(u64, f64)]]) -> Vec<u64> {
        let mut recent = Recent::default();
        let mut tell = |needs: &&[(u64, f64)]| {
            recent.add(seen(needs));
            recent.working_set(TOLERATED)
        };
        intervals.iter().map(&mut tell).collect()
    }

    #[test]
    fn what_is_gone_through_in_every_third_interval_is_needed() {
        let (still, through): (&[_], &[_]) = (&[(10, 5000.0)], &[(10, 5000.0), (900, 5000.0)]);
        assert_eq!(told(&[through, still, still, through, still, still, still, still]), [900; 8]);
    }

    #[test]
    fn what_is_needed_no_more_is_let_go_after_eight_intervals_and_what_is_needed_now_is_told_now() {
        let (much, little): (&[_], &[_]) = (&[(900, 5000.0)], &[(10, 5000.0)]);
        assert_eq!(
            told(&[little, much, little, little, little, little, little, little, little, little]),
            [10, 900, 900, 900, 900, 900, 900, 900, 900, 10]
        );
    }

    #[test]
    fn a_little_above_what_is_tolerated_in_one_of_them_is_not_needed() {
        let (usual, chance): (&[_], &[_]) = (&[(10, 5000.0), (11, 99.0)], &[(10, 5000.0), (11, 99.0), (50, 103.0)]);
        assert_eq!(told(&[usual, usual, usual, chance, usual]), [10, 10, 10, 11, 11]);
    }

    #[test]
    fn below_what_can_be_seen_nothing_is_told() {
        let mut recent = Recent::default();
        assert_eq!(recent.working_set(TOLERATED), 0);
        recent.add(Seen { blind_below: 64, ..seen(&[(10, 5000.0)]) });
        assert_eq!((recent.working_set(TOLERATED), recent.last_working_set(TOLERATED)), (64, 64));
    }

    #[test]
    fn the_last_interval_alone_tells_what_it_needs() {
        let mut recent = Recent::default();
        recent.add(seen(&[(900, 5000.0)]));
        recent.add(seen(&[(10, 5000.0)]));
        assert_eq!((recent.working_set(TOLERATED), recent.last_working_set(TOLERATED)), (900, 10));
    }

    #[test]
    fn of_what_was_seen_before_a_gap_the_last_is_kept() {
        let mut recent = Recent::default();
        recent.keep_last();
        recent.add(seen(&[(900, 5000.0)]));
        recent.add(seen(&[(20, 5000.0)]));
        recent.keep_last();
        recent.add(seen(&[(10, 5000.0)]));
        assert_eq!(recent.working_set(TOLERATED), 20);
    }

    #[test]
    fn nothing_that_misses_is_nothing_that_is_needed() {
        assert_eq!(told(&[&[(10, 5.0)]]), [0]);
    }
}
