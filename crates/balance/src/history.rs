//! What a program's memory is worth, by more than its last interval.

use model::MissPoint;

use crate::Guess;

/// What an interval counts for after the next.
const KEPT: f64 = 0.9;
/// Sizes that are told apart.
const SIZES: usize = 1024;
/// A program that did less work than this share of an interval was asleep, and nothing is to be divided by it.
const LEAST_WORK: f64 = 0.01;
/// Who is slowed down by so much more than before, as a logarithm, has other needs; and by so many standard deviations of what chance makes of it.
const RISEN: f64 = 1.0;
const DEVIATIONS: f64 = 2.0;
/// Work is counted by the kernel's ticks that fall into it, and told in these.
const TICK_SECONDS: f64 = 0.01;
/// A limit that has become less by more than this part of it makes what was brought back before no measure.
const MUCH: u64 = 16;
/// What is brought back with it changes for so many intervals.
const SETTLING: u32 = 2;
/// Of what a limit has moved by, each page may be brought back once.
const PAGE_BYTES: u64 = 4096;
/// Where it misses at least so many times as much as was seen, it does something else now.
const OUTDATED: f64 = 2.0;
/// What one interval tells of what is lost may be wrong by this much.
const DOUBT: f64 = 0.06;

/// Curves of misses of a program, added up over its intervals; what is longer ago counts for less.
///
/// A program that waits for memory makes few references, and in an interval of a second only some of those that come back after many: each
/// interval's curve is uncertain. So misses and work are added up, each of its own, and related to each other: misses in a second of work do
/// not depend on the pace, as long as the program does the same.
///
/// A program that has what it needs accesses most of it between any two looks, and how often cannot be seen. While it starved that was seen,
/// and what was seen stands as long as it is not less than must be so.
#[derive(Clone, Debug)]
pub struct History {
    unit: u64,
    /// By size.
    sums: Vec<Sum>,
    /// Intervals, each by what it counts for.
    intervals: f64,
    /// What was brought back of late.
    brought_back: Option<BroughtBack>,
}

/// Of one size.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    misses: f64,
    work_seconds: f64,
    /// Whether that was seen; else it is a guess.
    is_seen: bool,
}

#[derive(Clone, Copy, Debug)]
struct BroughtBack {
    limit: u64,
    /// Intervals since it became much less.
    intervals: u32,
    /// Pages that may be brought back because it has moved since.
    moved: f64,
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
    /// Of sizes up to this. Memory: 24 KiB.
    pub fn new(most: u64) -> History {
        let unit = (most / SIZES as u64).max(1);
        History { unit, sums: vec![Sum::default(); SIZES + 1], intervals: 0.0, brought_back: None }
    }

    /// Takes in what an interval brought back: whether that is so much more than before, though the limit is not much less, that it is to be known
    /// anew. A miss takes it so long.
    pub fn notice(&mut self, lived: &Lived, miss_seconds: f64) -> bool {
        let is_measure = |before: &BroughtBack| before.limit.saturating_sub(lived.limit) <= before.limit / MUCH;
        let before = self.brought_back.filter(is_measure);
        let moved =
            before.map_or(0.0, |before| before.moved + (before.limit.abs_diff(lived.limit) / PAGE_BYTES) as f64);
        let now = (lived.refaults - moved).max(0.0) / lived.work();
        let moved = (moved - lived.refaults).max(0.0);
        let intervals = before.map_or(0, |before| before.intervals) + 1;
        let [last, last_but_one] = before.map_or([f64::INFINITY; 2], |before| before.of_late);
        let settled = if intervals > SETTLING { now } else { f64::INFINITY };
        self.brought_back = Some(BroughtBack { limit: lived.limit, intervals, moved, of_late: [settled, last] });
        let lost = |per_work_second: f64| (per_work_second * miss_seconds).ln_1p();
        // Of a change amid an interval, that interval shows a part.
        lost(now) - lost(last.min(last_but_one)) > RISEN + DEVIATIONS * lived.chance()
    }

    /// Takes in an interval's curve, in misses per second of time. O(1024).
    pub fn add(&mut self, misses: &[MissPoint], guess: Guess, lived: &Lived) {
        let mut points = misses.iter().peekable();
        let mut per_second = 0.0;
        for (at, sum) in (0..).zip(&mut self.sums) {
            let bytes = at * self.unit;
            while let Some(point) = points.next_if(|point| point.bytes <= bytes) {
                per_second = point.misses_per_second.max(0.0);
            }
            match bytes >= guess.below {
                true => sum.see(per_second, lived),
                false => sum.guess(per_second, guess.misses_per_second, lived),
            }
        }
        self.intervals = KEPT * self.intervals + 1.0;
    }

    /// It begins anew.
    pub fn forget(&mut self) {
        self.sums.fill(Sum::default());
        (self.intervals, self.brought_back) = (0.0, None);
    }

    /// What is lost may be more or less by this; see [`crate::Demand::lost_with`]. 0 where nothing was taken in.
    pub fn doubt(&self) -> f64 {
        if self.intervals > 0.0 { DOUBT / self.intervals } else { 0.0 }
    }

    /// Misses in a second of work; none: nothing is known.
    pub fn misses(&self) -> Option<Vec<MissPoint>> {
        let point = |(at, sum): (u64, &Sum)| MissPoint { bytes: at * self.unit, misses_per_second: sum.per_work() };
        let mut points: Vec<MissPoint> = (0..).zip(&self.sums).map(point).collect();
        // What is guessed is not less than what was seen of larger sizes.
        let mut larger = 0.0f64;
        for (point, sum) in points.iter_mut().zip(&self.sums).rev() {
            if !sum.is_seen {
                point.misses_per_second = point.misses_per_second.max(larger);
            }
            larger = larger.max(point.misses_per_second);
        }
        (self.intervals > 0.0).then_some(points)
    }
}

impl Sum {
    /// Takes in misses that were seen.
    fn see(&mut self, per_second: f64, lived: &Lived) {
        if !self.is_seen {
            *self = Sum { is_seen: true, ..Sum::default() };
        }
        self.add(per_second, lived);
    }

    /// Takes in the least that may be so, and what is taken for it where nothing was seen or what was is less.
    fn guess(&mut self, least: f64, guess: f64, lived: &Lived) {
        if self.is_seen {
            if least * lived.seconds <= OUTDATED * self.per_work() * lived.work() {
                return;
            }
            *self = Sum::default();
        }
        self.add(guess.max(least), lived);
    }

    fn add(&mut self, per_second: f64, lived: &Lived) {
        self.misses = KEPT * self.misses + per_second * lived.seconds;
        self.work_seconds = KEPT * self.work_seconds + lived.work();
    }

    fn per_work(&self) -> f64 {
        self.misses / self.work_seconds.max(f64::MIN_POSITIVE)
    }
}

impl Lived {
    fn work(&self) -> f64 {
        self.work_seconds.max(LEAST_WORK * self.seconds).max(f64::MIN_POSITIVE)
    }

    /// By how much the logarithms of two such works differ by chance, as a standard deviation.
    fn chance(&self) -> f64 {
        (2.0 * TICK_SECONDS / self.work().max(TICK_SECONDS)).sqrt()
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
            history.add(&curve(5000.0 * work, 600_000), Guess::default(), &lived(work, 0, 0.0));
        }
        assert!((at(&history, 0) - 5000.0).abs() < 1e-6 && (at(&history, 599_000) - 5000.0).abs() < 1e-6);
        assert_eq!(at(&history, 601_000), 0.0);
    }

    #[test]
    fn what_one_interval_has_not_seen_another_has() {
        let mut history = History::new(1 << 20);
        // Of a loop, whose references come back after several intervals, each sees some, and one none.
        for per_second in [0.0, 3000.0, 0.0, 9000.0, 0.0, 3000.0, 2000.0, 3000.0] {
            history.add(&curve(per_second, 600_000), Guess::default(), &lived(0.5, 0, 0.0));
        }
        assert!((3000.0..6000.0).contains(&at(&history, 300_000)), "{}", at(&history, 300_000));
    }

    #[test]
    fn what_was_seen_of_one_that_starved_stands_while_it_has_what_it_needs() {
        let mut history = History::new(1 << 20);
        for _ in 0..2 {
            history.add(&curve(1000.0, 600_000), Guess { below: 30_000, misses_per_second: 0.0 }, &lived(0.05, 0, 0.0));
        }
        // It accesses all between two looks: ten times as often as can be seen.
        let has_all = Guess { below: 590_000, misses_per_second: 5000.0 };
        (0..20).for_each(|_| history.add(&curve(2000.0, 600_000), has_all, &lived(1.0, 0, 0.0)));
        assert!((at(&history, 300_000) - 20_000.0).abs() < 1e-6, "{}", at(&history, 300_000));
        assert!((at(&history, 10_000) - 20_000.0).abs() < 1e-6, "with less not less: {}", at(&history, 10_000));

        // It needs a third of it now, and that as much as before.
        let needs_less = Guess { below: 190_000, misses_per_second: 5000.0 };
        (0..5).for_each(|_| history.add(&curve(2000.0, 200_000), needs_less, &lived(1.0, 0, 0.0)));
        assert!(at(&history, 300_000) < 500.0, "{}", at(&history, 300_000));
        assert!((at(&history, 100_000) - 20_000.0).abs() < 1e-6);
    }

    #[test]
    fn what_was_seen_of_one_that_did_something_else_does_not() {
        let mut history = History::new(1 << 20);
        (0..20).for_each(|_| {
            history.add(
                &curve(100.0, 600_000),
                Guess { below: 50_000, misses_per_second: 5000.0 },
                &lived(1.0, 0, 0.0),
            );
        });
        assert!((at(&history, 300_000) - 100.0).abs() < 1e-6);
        let busy = Guess { below: 590_000, misses_per_second: 5000.0 };
        history.add(&curve(2000.0, 600_000), busy, &lived(1.0, 0, 0.0));
        assert!((at(&history, 300_000) - 5000.0).abs() < 1e-6, "{}", at(&history, 300_000));
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
    fn few_ticks_of_work_by_chance_are_no_change() {
        let mut history = History::new(1 << 20);
        let mut changes = |ticks: f64, refaults: f64| {
            let lived = Lived { seconds: 3.0, work_seconds: ticks * TICK_SECONDS, limit: 100, refaults };
            history.notice(&lived, MISS_SECONDS)
        };
        // It works for 7 % of 3 s.
        for ticks in [21.0, 26.0, 17.0, 25.0, 7.0, 30.0] {
            assert!(!changes(ticks, 100_000.0), "{ticks}");
        }
        assert!(!changes(280.0, 100.0) && !changes(290.0, 100.0));
        assert!(changes(7.0, 100_000.0));
    }

    #[test]
    fn a_change_right_after_a_move_is_noticed_and_the_move_is_none() {
        let mib = |mib: u64| mib << 20;
        let changes = |limits: [u64; 2], refaults: [f64; 2]| {
            let mut history = History::new(mib(1024));
            let mut changes = |work, limit, refaults| history.notice(&lived(work, limit, refaults), MISS_SECONDS);
            (0..4).for_each(|_| assert!(!changes(0.9, limits[0], refaults[0])));
            changes(0.1, limits[1], refaults[1])
        };
        assert!(changes([mib(173), mib(167)], [0.0, 90_000.0]), "it has hardly less");
        assert!(!changes([mib(173), mib(100)], [0.0, 90_000.0]), "it has less");
        assert!(!changes([mib(27), mib(173)], [500.0, 37_000.0]), "it has been given as much");
        assert!(changes([mib(27), mib(173)], [500.0, 90_000.0]), "it has been given less than that");
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
            history.add(&curve(1.0, 1), Guess::default(), &lived(1.0, 0, 0.0));
            assert!(history.doubt() < doubt);
            doubt = history.doubt();
        }
        assert!(doubt > DOUBT * (1.0 - KEPT), "what is long ago tells nothing: {doubt}");
    }

    #[test]
    fn nothing_is_known_at_first_and_of_who_sleeps_little() {
        let mut history = History::new(0);
        assert!(history.misses().is_none());
        history.add(&[], Guess::default(), &lived(0.0, 0, 0.0));
        assert_eq!(at(&history, 7), 0.0);
        history.forget();
        assert!(history.misses().is_none());
    }
}
