//! A program's recent needs: the curves of its last intervals, averaged.
//!
//! A program that goes through its memory once in some seconds needs it all the time, though many single intervals do
//! not show that. So the working set covers several intervals together: memory that misses too often in any of them is
//! needed, and memory is dropped when none of them misses it. (IMT: "it uses the same LRU list and histogram as in the
//! last tracking interval".)

use std::collections::VecDeque;

use model::{MissPoint, PagesRound, told_apart};

/// Number of intervals. With fewer, the working set oscillates for programs whose loops take longer than an interval;
/// with more, it falls later when less is needed. With 6, 7, 9 and 10 the mean error for the real programs of
/// bench/phases was 0.8, 0.4, 0.1 and 0.3 points higher.
const INTERVALS: usize = 8;

/// What was seen in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Misses per second by memory size, sizes rising.
    pub misses: Vec<MissPoint>,
    /// Its length.
    pub seconds: f64,
    /// One of this many pages was scanned.
    pub one_in: u64,
    /// Below this size, in bytes, the curve is unknown.
    pub blind_below: u64,
}

impl From<&PagesRound> for Seen {
    fn from(round: &PagesRound) -> Seen {
        let PagesRound { seconds, one_in, blind_below, .. } = *round;
        Seen { misses: round.misses.clone(), seconds, one_in, blind_below }
    }
}

/// The last tracked intervals.
#[derive(Clone, Debug, Default)]
pub struct Recent(VecDeque<Seen>);

impl Recent {
    /// Adds an interval.
    pub fn add(&mut self, seen: Seen) {
        if self.0.len() == INTERVALS {
            self.0.pop_front();
        }
        self.0.push_back(seen);
    }

    /// Call before the first interval after some without tracking: keeps only the last interval before. Otherwise a
    /// slow change of the working set is reported late, because memory needed in any interval counts for all of them.
    pub fn keep_last(&mut self) {
        self.0.drain(..self.0.len().saturating_sub(1));
    }

    /// The working set of these intervals together: the smallest size, in bytes, with at most this many misses per
    /// second, plus less than a standard deviation of the sample. 0 without intervals. O(n log n) for n points.
    pub fn working_set(&self, misses_per_second: f64) -> u64 {
        working_set(self.0.iter(), misses_per_second)
    }

    /// The same for the last interval alone.
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
    // Misses that each size avoids.
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

    /// A second with these misses, each as (size that avoids them, number of misses).
    fn seen(needs: &[(u64, f64)]) -> Seen {
        let mut left: f64 = needs.iter().map(|(_, misses)| misses).sum();
        let mut misses = vec![MissPoint { bytes: 0, misses_per_second: left }];
        for (bytes, fewer) in needs {
            left -= fewer;
            misses.push(MissPoint { bytes: *bytes, misses_per_second: left });
        }
        Seen { misses, seconds: 1.0, one_in: 0, blind_below: 0 }
    }

    fn reported(intervals: &[&[(u64, f64)]]) -> Vec<u64> {
        let mut recent = Recent::default();
        let mut report = |needs: &&[(u64, f64)]| {
            recent.add(seen(needs));
            recent.working_set(TOLERATED)
        };
        intervals.iter().map(&mut report).collect()
    }

    #[test]
    fn memory_used_in_every_third_interval_is_needed() {
        let (still, through): (&[_], &[_]) = (&[(10, 5000.0)], &[(10, 5000.0), (900, 5000.0)]);
        assert_eq!(reported(&[through, still, still, through, still, still, still, still]), [900; 8]);
    }

    #[test]
    fn wss_falls_after_8_intervals_and_rises_at_once() {
        let (much, little): (&[_], &[_]) = (&[(900, 5000.0)], &[(10, 5000.0)]);
        assert_eq!(
            reported(&[little, much, little, little, little, little, little, little, little, little]),
            [10, 900, 900, 900, 900, 900, 900, 900, 900, 10]
        );
    }

    #[test]
    fn slightly_too_many_misses_once_are_tolerated() {
        let (usual, chance): (&[_], &[_]) = (&[(10, 5000.0), (11, 99.0)], &[(10, 5000.0), (11, 99.0), (50, 103.0)]);
        assert_eq!(reported(&[usual, usual, usual, chance, usual]), [10, 10, 10, 11, 11]);
    }

    #[test]
    fn wss_is_not_below_the_blind_part() {
        let mut recent = Recent::default();
        assert_eq!(recent.working_set(TOLERATED), 0);
        recent.add(Seen { blind_below: 64, ..seen(&[(10, 5000.0)]) });
        assert_eq!((recent.working_set(TOLERATED), recent.last_working_set(TOLERATED)), (64, 64));
    }

    #[test]
    fn last_working_set_uses_the_last_interval_only() {
        let mut recent = Recent::default();
        recent.add(seen(&[(900, 5000.0)]));
        recent.add(seen(&[(10, 5000.0)]));
        assert_eq!((recent.working_set(TOLERATED), recent.last_working_set(TOLERATED)), (900, 10));
    }

    #[test]
    fn only_the_last_interval_before_a_gap_is_kept() {
        let mut recent = Recent::default();
        recent.keep_last();
        recent.add(seen(&[(900, 5000.0)]));
        recent.add(seen(&[(20, 5000.0)]));
        recent.keep_last();
        recent.add(seen(&[(10, 5000.0)]));
        assert_eq!(recent.working_set(TOLERATED), 20);
    }

    #[test]
    fn without_misses_nothing_is_needed() {
        assert_eq!(reported(&[&[(10, 5.0)]]), [0]);
    }
}
