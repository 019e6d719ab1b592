//! What a program's memory is worth, by more than its last interval.

use model::MissPoint;

/// What an interval counts for after the next.
const KEPT: f64 = 0.9;
/// Sizes that are told apart.
const SIZES: usize = 1024;
/// A program that did less work than this share of an interval was asleep, and nothing is to be divided by it.
const LEAST_WORK: f64 = 0.01;
/// Who is slowed down by so much more than before, as a logarithm, has other needs.
const RISEN: f64 = 1.0;
/// Limits nearer than this share of them are the same.
const SAME: f64 = 0.02;
/// After a limit has moved, what is brought back changes for so many intervals.
const SETTLING: u32 = 2;
/// What one interval tells of what is lost may be wrong by this much.
const DOUBT: f64 = 0.06;

/// Curves of misses of a program, added up over its intervals; what is longer ago counts for less.
///
/// A program that waits for memory makes few references, and in an interval of a second only some of those that come back after many: each
/// interval's curve is uncertain. So misses and work are added up, each of its own, and related to each other: misses in a second of work do
/// not depend on the pace, as long as the program does the same.
#[derive(Clone, Debug)]
pub struct History {
    unit: u64,
    misses: Vec<f64>,
    work_seconds: f64,
    /// Intervals, each by what it counts for.
    intervals: f64,
    /// What was brought back of late.
    brought_back: Option<BroughtBack>,
}

#[derive(Clone, Copy, Debug)]
struct BroughtBack {
    limit: u64,
    /// Intervals with this limit.
    intervals: u32,
    /// In a second of work, in the last of them and in the one before; infinite while it settled.
    of_late: [f64; 2],
}

/// What an interval has told.
#[derive(Clone, Copy, Debug)]
pub struct Lived {
    /// How long it was.
    pub seconds: f64,
    /// Of these the program worked, all of its threads together.
    pub work_seconds: f64,
    /// What it could have.
    pub limit: u64,
    /// Pages that were brought back.
    pub refaults: f64,
}

impl History {
    /// Of sizes up to this. Memory: 8 KiB.
    pub fn new(most: u64) -> History {
        let unit = (most / SIZES as u64).max(1);
        History { unit, misses: vec![0.0; SIZES + 1], work_seconds: 0.0, intervals: 0.0, brought_back: None }
    }

    /// Takes in what an interval brought back: whether that is so much more than before with the same limit that it is to be known anew. A miss
    /// takes it so long.
    pub fn notice(&mut self, lived: &Lived, miss_seconds: f64) -> bool {
        let now = lived.refaults / lived.work();
        let same = |before: &BroughtBack| before.limit.abs_diff(lived.limit) as f64 <= SAME * before.limit as f64;
        let before = self.brought_back.filter(same);
        let intervals = before.map_or(0, |before| before.intervals) + 1;
        let [last, last_but_one] = before.map_or([f64::INFINITY; 2], |before| before.of_late);
        let settled = if intervals > SETTLING { now } else { f64::INFINITY };
        self.brought_back = Some(BroughtBack { limit: lived.limit, intervals, of_late: [settled, last] });
        let lost = |per_work_second: f64| (per_work_second * miss_seconds).ln_1p();
        // Of a change amid an interval, that interval shows a part.
        lost(now) - lost(last.min(last_but_one)) > RISEN
    }

    /// Takes in an interval's curve, in misses per second of time. O(1024).
    pub fn add(&mut self, misses: &[MissPoint], lived: &Lived) {
        let mut points = misses.iter().peekable();
        let mut per_second = 0.0;
        for (at, sum) in (0..).zip(&mut self.misses) {
            while let Some(point) = points.next_if(|point| point.bytes <= at * self.unit) {
                per_second = point.misses_per_second.max(0.0);
            }
            *sum = KEPT * *sum + per_second * lived.seconds;
        }
        self.work_seconds = KEPT * self.work_seconds + lived.work();
        self.intervals = KEPT * self.intervals + 1.0;
    }

    /// It begins anew.
    pub fn forget(&mut self) {
        self.misses.fill(0.0);
        (self.work_seconds, self.intervals, self.brought_back) = (0.0, 0.0, None);
    }

    /// What is lost may be more or less by this; see [`crate::Demand::lost_with`]. 0 where nothing was taken in.
    pub fn doubt(&self) -> f64 {
        if self.intervals > 0.0 { DOUBT / self.intervals } else { 0.0 }
    }

    /// Misses in a second of work; none: nothing is known.
    pub fn misses(&self) -> Option<Vec<MissPoint>> {
        let point =
            |(at, sum): (u64, &f64)| MissPoint { bytes: at * self.unit, misses_per_second: sum / self.work_seconds };
        (self.work_seconds > 0.0).then(|| (0..).zip(&self.misses).map(point).collect())
    }
}

impl Lived {
    fn work(&self) -> f64 {
        self.work_seconds.max(LEAST_WORK * self.seconds).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISS_SECONDS: f64 = 1e-4;

    fn lived(work_seconds: f64, limit: u64, refaults: f64) -> Lived {
        Lived { seconds: 1.0, work_seconds, limit, refaults }
    }

    fn at(history: &History, bytes: u64) -> f64 {
        let misses = history.misses().unwrap();
        misses[misses.partition_point(|point| point.bytes <= bytes) - 1].misses_per_second
    }

    fn curve(per_second: f64, needs: u64) -> [MissPoint; 2] {
        [MissPoint { bytes: 0, misses_per_second: per_second }, MissPoint { bytes: needs, misses_per_second: 0.0 }]
    }

    #[test]
    fn the_same_program_at_another_pace_has_the_same_curve() {
        let mut history = History::new(1 << 20);
        for work in [1.0, 0.1, 0.02, 0.5] {
            history.add(&curve(5000.0 * work, 600_000), &lived(work, 0, 0.0));
        }
        assert!((at(&history, 0) - 5000.0).abs() < 1e-6 && (at(&history, 599_000) - 5000.0).abs() < 1e-6);
        assert_eq!(at(&history, 601_000), 0.0);
    }

    #[test]
    fn what_one_interval_has_not_seen_another_has() {
        let mut history = History::new(1 << 20);
        // Of a loop, whose references come back after several intervals, each sees some, and one none.
        for per_second in [0.0, 3000.0, 0.0, 9000.0, 0.0, 3000.0, 2000.0, 3000.0] {
            history.add(&curve(per_second, 600_000), &lived(0.5, 0, 0.0));
        }
        assert!((3000.0..6000.0).contains(&at(&history, 300_000)), "{}", at(&history, 300_000));
    }

    #[test]
    fn who_brings_back_more_with_the_same_limit_changes() {
        let mut history = History::new(1 << 20);
        let mut changes = |work, limit, refaults| history.notice(&lived(work, limit, refaults), MISS_SECONDS);
        assert!(!changes(0.9, 100, 10.0), "nothing was known");
        for refaults in [10.0, 30.0, 300.0] {
            assert!(!changes(0.9, 100, refaults), "many times as many, which nobody feels");
        }
        for refaults in [3000.0, 9000.0, 9900.0] {
            assert!(!changes(0.5, 50, refaults), "it has less now");
        }
        assert!(!changes(0.5, 50, 19_800.0), "twice as many, as it may be");
        assert!(changes(0.1, 50, 19_800.0), "for less work");
    }

    #[test]
    fn a_change_amid_an_interval_is_noticed_in_the_next() {
        let mut history = History::new(1 << 20);
        let mut changes = |refaults| history.notice(&lived(0.5, 100, refaults), MISS_SECONDS);
        for refaults in [10.0, 10.0, 10.0, 10.0] {
            assert!(!changes(refaults));
        }
        assert!(!changes(5000.0), "twice as slow, as it may be");
        assert!(changes(17_400.0), "and twice again");
    }

    #[test]
    fn more_intervals_are_less_in_doubt() {
        let mut history = History::new(1 << 20);
        assert_eq!(history.doubt(), 0.0);
        let mut doubt = f64::INFINITY;
        for _ in 0..20 {
            history.add(&curve(1.0, 1), &lived(1.0, 0, 0.0));
            assert!(history.doubt() < doubt);
            doubt = history.doubt();
        }
        assert!(doubt > DOUBT * (1.0 - KEPT), "what is long ago tells nothing: {doubt}");
    }

    #[test]
    fn nothing_is_known_at_first_and_of_who_sleeps_little() {
        let mut history = History::new(0);
        assert!(history.misses().is_none());
        history.add(&[], &lived(0.0, 0, 0.0));
        assert_eq!(at(&history, 7), 0.0);
        history.forget();
        assert!(history.misses().is_none());
    }
}
