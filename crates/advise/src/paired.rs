//! Which of several ways to run a program is the fastest, from paired rounds.
//!
//! In each round every arm that is still compared runs once, so that what slows the machine down for a while slows all of them down.
//! Arm 0 is the baseline. Times are compared as logarithms of ratios within a round: a gain is a share of the run time, and so is noise.
//!
//! A run now and then is disturbed, and a short one by much of its time. So a gain is a trimmed mean of these logarithms: a fifth of the
//! rounds at each end does not count. Its interval is Student's with the winsorized variance (Tukey and McLaughlin), in which what is trimmed
//! counts as much as the farthest round that is kept. The variance is the arm's own, or that of all arms where that is larger, since four
//! rounds can be alike by chance.
//!
//! The rounds are judged several times ([`looks`]), and each time for several arms: a probability of [`FALSE_ALARM`] that any arm is called
//! faster though none is, is divided among arms and looks (Bonferroni). So the intervals hold together, whenever the comparison ends. The last
//! look has most of it, for what is close is decided there.

use compare::exceeded_with;
use model::LEAST_GAIN;

/// Wall seconds of one round, by arm; `None`: the arm did not run.
pub type Round = Vec<Option<f64>>;

/// The probability that any arm is called faster or slower than the baseline though all are equal.
pub const FALSE_ALARM: f64 = 0.05;
/// The first look: of fewer rounds no spread is known.
const FIRST_LOOK_ROUNDS: usize = 4;
/// From one look to the next, rounds grow by this factor: looks cost certainty.
const LOOK_GROWTH: f64 = 1.5;
/// Degrees of freedom that an arm borrows from the spread of the others at most.
const MOST_BORROWED: usize = 8;
/// The share of the false alarms that the last look may make.
const LAST_LOOK: f64 = 0.7;
/// One round of so many at each end does not count.
const TRIMMED_OF_ROUNDS: usize = 5;
/// An interval is narrow enough at this part of the gain.
const PRECISION: f64 = 0.2;

/// The share of the baseline's run time that an arm saves; negative: it takes longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// By the trimmed mean of the rounds.
    pub share: f64,
    /// The interval's ends.
    pub low: f64,
    /// The interval's ends.
    pub high: f64,
}

/// Why an arm is not run any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It is surely slower than this arm.
    SlowerThan(usize),
    /// It surely gains less than [`LEAST_GAIN`].
    GainsNothing,
}

/// What rounds have shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// By arm; `None` of the baseline and of arms that ran in fewer than two rounds.
    pub gains: Vec<Option<Gain>>,
    /// Arms that need not run again.
    pub dropped: Vec<(usize, Dropped)>,
    /// Arms that are surely faster than the baseline and within [`LEAST_GAIN`] of the fastest, the fastest first.
    pub leaders: Vec<usize>,
    /// Whether more rounds would change nothing that matters.
    pub is_decided: bool,
}

/// The numbers of rounds after which they are judged, rising; the last is `most`.
pub fn looks(most: usize) -> Vec<usize> {
    let grow = |rounds: &usize| Some(((*rounds as f64 * LOOK_GROWTH).ceil() as usize).max(rounds + 1));
    let before = std::iter::successors(Some(FIRST_LOOK_ROUNDS), grow).take_while(|rounds| *rounds < most);
    before.chain([most]).collect()
}

/// Judges rounds of a comparison that has at most `most`. `running`: by arm, whether it ran in the last of them.
pub fn judge(rounds: &[Round], running: &[bool], most: usize) -> Judgement {
    let arms = running.len();
    // The looks before the last, and one more, for a comparison may end between two looks.
    let looks = if rounds.len() >= most { LAST_LOOK } else { (1.0 - LAST_LOOK) / looks(most).len() as f64 };
    let probability = FALSE_ALARM * looks / arms.saturating_sub(1).max(1) as f64 / 2.0;
    let spread = Spread::of(rounds, arms);
    let compare = |arm, with| compared(rounds, arm, with, &spread, probability);
    let gains: Vec<Option<Gain>> = (0..arms).map(|arm| if arm == 0 { None } else { compare(arm, 0) }).collect();
    let share = |arm: usize| gains[arm].map_or(f64::NEG_INFINITY, |gain| gain.share);
    let mut racing: Vec<usize> = (1..arms).filter(|arm| running[*arm] && gains[*arm].is_some()).collect();
    racing.sort_by(|one, other| share(*other).total_cmp(&share(*one)));
    let fastest = racing.first().copied();
    let why_drop = |arm: usize| {
        let gain = gains[arm]?;
        let ahead =
            fastest.filter(|fastest| *fastest != arm).and_then(|fastest| Some((fastest, compare(fastest, arm)?)));
        match ahead {
            _ if gain.high < 0.0 => Some(Dropped::SlowerThan(0)),
            Some((fastest, ahead)) if ahead.low > 0.0 => Some(Dropped::SlowerThan(fastest)),
            _ if gain.high < LEAST_GAIN => Some(Dropped::GainsNothing),
            _ => None,
        }
    };
    let dropped: Vec<(usize, Dropped)> = racing.iter().filter_map(|arm| Some((*arm, why_drop(*arm)?))).collect();
    racing.retain(|arm| dropped.iter().all(|(gone, _)| gone != arm));
    let is_faster = |arm: &usize| gains[*arm].is_some_and(|gain| gain.low > 0.0);
    let leaders = match racing.first().filter(|arm| is_faster(arm)) {
        Some(first) => {
            racing.iter().copied().filter(|arm| is_faster(arm) && share(*first) - share(*arm) <= LEAST_GAIN).collect()
        }
        None => Vec::new(),
    };
    let is_decided = match leaders.first() {
        _ if racing.is_empty() => rounds.len() >= FIRST_LOOK_ROUNDS,
        None => false,
        Some(first) => {
            let is_narrow = gains[*first]
                .is_some_and(|gain| (gain.high - gain.low) / 2.0 <= LEAST_GAIN.max(gain.share * PRECISION));
            let is_same =
                |arm: &usize| arm == first || compare(*first, *arm).is_some_and(|ahead| ahead.high < LEAST_GAIN);
            is_narrow && racing.iter().all(is_same)
        }
    };
    Judgement { gains, dropped, leaders, is_decided }
}

/// How far rounds differ, all arms together.
struct Spread {
    variance: f64,
    degrees: usize,
}

impl Spread {
    fn of(rounds: &[Round], arms: usize) -> Spread {
        let each = (1..arms).filter_map(|arm| Differences::of(rounds, arm, 0));
        let (sum, degrees) = each.fold((0.0, 0), |(sum, degrees), found| {
            (sum + found.variance * found.degrees as f64, degrees + found.degrees)
        });
        Spread { variance: if degrees > 0 { sum / degrees as f64 } else { 0.0 }, degrees }
    }
}

/// Logarithms of how much longer one arm took than another in the same round.
struct Differences {
    /// Of those that are not trimmed.
    mean: f64,
    /// Of the mean, times the number of rounds.
    variance: f64,
    rounds: usize,
    degrees: usize,
}

impl Differences {
    /// `None`: fewer than two rounds have both.
    fn of(rounds: &[Round], arm: usize, with: usize) -> Option<Differences> {
        let both =
            |round: &Round| Some((round.get(with).copied()??.max(1e-9) / round.get(arm).copied()??.max(1e-9)).ln());
        let mut found: Vec<f64> = rounds.iter().filter_map(both).collect();
        found.sort_unstable_by(f64::total_cmp);
        let (rounds, trimmed) = (found.len(), found.len() / TRIMMED_OF_ROUNDS);
        let kept = &found[trimmed..rounds - trimmed];
        let degrees = kept.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        let (least, most) = (kept[0], kept[degrees]);
        let winsorized = || found.iter().map(|one| one.clamp(least, most));
        let centre = winsorized().sum::<f64>() / rounds as f64;
        let variance = winsorized().map(|one| (one - centre).powi(2)).sum::<f64>() / (rounds - 1) as f64;
        let share_kept = kept.len() as f64 / rounds as f64;
        Some(Differences { mean, variance: variance / share_kept.powi(2), rounds, degrees })
    }
}

/// What one arm gains against another.
fn compared(rounds: &[Round], arm: usize, with: usize, spread: &Spread, probability: f64) -> Option<Gain> {
    let Differences { mean, variance, rounds, degrees } = Differences::of(rounds, arm, with)?;
    let borrowed = spread.degrees.saturating_sub(degrees).min(MOST_BORROWED);
    let error = (variance.max(spread.variance) / rounds as f64).sqrt();
    let half = exceeded_with(probability, degrees + borrowed) * error;
    let share = |log: f64| 1.0 - (-log).exp();
    Some(Gain { share: share(mean), low: share(mean - half), high: share(mean + half) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 12;

    /// SplitMix64: the same in each run.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let radius = (-2.0 * self.uniform().max(1e-300).ln()).sqrt();
            radius * (std::f64::consts::TAU * self.uniform()).cos()
        }
    }

    /// A comparison as it is driven: rounds until it is decided, without the arms that are dropped. The last judgement, and the rounds.
    fn compare(arms: usize, mut seconds: impl FnMut(usize, usize) -> f64) -> (Judgement, usize) {
        let (mut rounds, mut running) = (Vec::new(), vec![true; arms]);
        let looks = looks(MOST);
        loop {
            let number = rounds.len();
            rounds.push((0..arms).map(|arm| running[arm].then(|| seconds(number, arm))).collect());
            if !looks.contains(&rounds.len()) {
                continue;
            }
            let judged = judge(&rounds, &running, MOST);
            judged.dropped.iter().for_each(|(arm, _)| running[*arm] = false);
            if judged.is_decided || rounds.len() == MOST {
                return (judged, rounds.len());
            }
        }
    }

    /// Of 100 comparisons, those in which this is true of the judgement.
    fn of_100(
        arms: usize,
        mut seconds: impl FnMut(&mut Random, usize) -> f64,
        is_so: impl Fn(&Judgement) -> bool,
    ) -> usize {
        let mut random = Random(46);
        (0..100).filter(|_| is_so(&compare(arms, |_, arm| seconds(&mut random, arm)).0)).count()
    }

    #[test]
    fn equal_arms_have_no_leader() {
        for arms in [2, 9] {
            let none = of_100(arms, |random, _| (0.02 * random.normal()).exp(), |judged| judged.leaders.is_empty());
            assert!(none >= 95, "{none} of 100 with {arms} arms");
        }
    }

    #[test]
    fn equal_arms_have_no_leader_where_one_of_ten_runs_is_disturbed() {
        let disturbed = |random: &mut Random, _| {
            let by = if random.uniform() < 0.1 { 1.3 } else { 1.0 };
            by * (0.01 * random.normal()).exp()
        };
        let none = of_100(9, disturbed, |judged| judged.leaders.is_empty());
        assert!(none >= 95, "{none} of 100");
    }

    #[test]
    fn an_arm_that_varies_more_than_the_others_is_no_leader_by_chance() {
        let noise = |random: &mut Random, arm| (if arm == 3 { 0.1 } else { 0.01 } * random.normal()).exp();
        let none = of_100(9, noise, |judged| judged.leaders.is_empty());
        assert!(none >= 95, "{none} of 100");
    }

    #[test]
    fn a_gain_of_5_percent_is_named_where_runs_differ_by_2() {
        for arms in [2, 9] {
            let seconds = |random: &mut Random, arm| if arm == 1 { 0.95 } else { 1.0 } * (0.02 * random.normal()).exp();
            let named = of_100(arms, seconds, |judged| judged.leaders == [1]);
            assert!(named >= 95, "{named} of 100 with {arms} arms");
        }
    }

    #[test]
    fn the_interval_holds_the_true_gain() {
        let seconds = |random: &mut Random, arm| if arm == 1 { 0.9 } else { 1.0 } * (0.03 * random.normal()).exp();
        let held = of_100(9, seconds, |judged| {
            let Some(gain) = judged.gains[1] else { return false };
            gain.low <= 0.1 && 0.1 <= gain.high
        });
        assert!(held >= 95, "{held} of 100");
    }

    /// Of 100 runs five take a third longer, as on a machine that others use, too.
    fn disturbed(random: &mut Random, gain: f64) -> f64 {
        let by = if random.uniform() < 0.05 { 1.35 } else { 1.0 };
        by * (1.0 - gain) * (0.01 * random.normal()).exp()
    }

    #[test]
    fn the_interval_holds_the_true_gain_where_runs_are_disturbed() {
        let held = of_100(
            9,
            |random, arm| disturbed(random, if arm == 1 { 0.05 } else { 0.0 }),
            |judged| judged.gains[1].is_some_and(|gain| gain.low <= 0.05 && 0.05 <= gain.high),
        );
        assert!(held >= 95, "{held} of 100");
    }

    #[test]
    fn a_gain_of_5_percent_is_named_where_runs_are_disturbed() {
        for arms in [2, 7] {
            let seconds = |random: &mut Random, arm| disturbed(random, if arm == 1 { 0.05 } else { 0.0 });
            let named = of_100(arms, seconds, |judged| judged.leaders == [1]);
            assert!(named >= 90, "{named} of 100 with {arms} arms");
        }
    }

    #[test]
    fn one_slow_run_widens_no_interval() {
        let rounds: Vec<Round> = (0..MOST)
            .map(|round| vec![Some(1.0 + 0.001 * (round % 5) as f64), Some(if round == 7 { 1.5 } else { 0.95 })])
            .collect();
        let gain = judge(&rounds, &[true, true], MOST).gains[1].unwrap();
        assert!((gain.share - 0.05).abs() < 0.003 && gain.high - gain.low < 0.01, "{gain:?}");
    }

    #[test]
    fn what_is_surely_slower_runs_no_more_and_a_large_gain_ends_it_early() {
        // Each a little other in each round, all by the same share: the machine's, not the arms'.
        let of = [1.0, 0.6, 0.9, 1.5];
        let (judged, rounds) =
            compare(4, |round, arm| of[arm] * (1.0 + 0.1 * round as f64 + 1e-3 * ((round * 7 + arm * 3) % 5) as f64));
        assert_eq!((judged.leaders.as_slice(), judged.is_decided, rounds), ([1].as_slice(), true, FIRST_LOOK_ROUNDS));
        let why = [(2, Dropped::SlowerThan(1)), (3, Dropped::SlowerThan(0))];
        assert_eq!(judged.dropped, why);
    }

    #[test]
    fn arms_that_gain_nothing_end_it() {
        let (judged, rounds) = compare(3, |round, arm| 1.0 + 1e-4 * ((round * 5 + arm * 3) % 7) as f64);
        assert!(judged.is_decided && judged.leaders.is_empty() && rounds == FIRST_LOOK_ROUNDS);
        assert_eq!(judged.dropped.len(), 2);
    }

    #[test]
    fn arms_that_gain_alike_lead_together() {
        let (judged, _) =
            compare(3, |round, arm| if arm == 0 { 1.0 } else { 0.8 } + 1e-4 * ((round * 5 + arm * 3) % 7) as f64);
        assert!(judged.is_decided, "{judged:?}");
        assert_eq!(judged.leaders.len(), 2);
    }

    #[test]
    fn too_few_rounds_show_nothing() {
        let none = judge(&[], &[true, true], MOST);
        assert_eq!(none, Judgement { gains: vec![None, None], ..Judgement::default() });
        let one = judge(&[vec![Some(2.0), Some(1.0)]], &[true, true], MOST);
        assert!(!one.is_decided && one.leaders.is_empty());
        // An arm that failed is not there any more.
        let gone = judge(&[vec![Some(1.0), None], vec![Some(1.0), None]], &[true, false], MOST);
        assert_eq!(gone.gains, [None, None]);
    }

    #[test]
    fn looks_grow_to_the_most() {
        assert_eq!(looks(12), [4, 6, 9, 12]);
        assert_eq!(looks(3), [3]);
        assert_eq!(looks(1), [1]);
    }
}
