//! Which of several ways to run a program is the fastest, from paired rounds.
//!
//! In each round every remaining arm runs once, so that a slow phase of the machine slows all of them. Arm 0 is the
//! baseline. Times are compared as logarithms of ratios within a round, because gains and noise are shares of the run
//! time.
//!
//! Some runs are disturbed, short ones by a large part of their time. So a gain is a trimmed mean of these logarithms:
//! a fifth of the rounds at each end does not count. Its interval is Student's with the winsorized variance (Tukey and
//! McLaughlin), which replaces trimmed values by the farthest values kept. The variance is the arm's own, or that of
//! all arms if that is larger, since four rounds can be similar by chance.
//!
//! The rounds are judged several times ([`looks`]), each time for several arms. [`FALSE_ALARM`], the probability that
//! any arm is called faster although none is, is divided among arms and looks (Bonferroni). So the intervals hold
//! jointly, whenever the comparison ends. The last look gets most of it, because close decisions are made there.

use compare::exceeded_with;
use model::LEAST_GAIN;

/// Wall seconds of one round, by arm; `None`: the arm did not run.
pub type Round = Vec<Option<f64>>;

/// Probability that any arm is called faster or slower than the baseline although all are equal.
pub const FALSE_ALARM: f64 = 0.05;
/// Rounds before the first look; with fewer, the spread is unknown.
const FIRST_LOOK_ROUNDS: usize = 4;
/// Growth of the number of rounds from look to look: each look costs significance.
const LOOK_GROWTH: f64 = 1.5;
/// Maximum degrees of freedom that an arm borrows from the spread of the others.
const MAX_BORROWED: usize = 8;
/// Share of the false alarms that the last look may make.
const LAST_LOOK: f64 = 0.7;
/// One of this many rounds is trimmed at each end.
const TRIMMED_OF_ROUNDS: usize = 5;
/// An interval is narrow enough at this part of the gain.
const PRECISION: f64 = 0.2;

/// The share of the baseline's run time that an arm saves; negative if it takes longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Trimmed mean of the rounds.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Why an arm is not run any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It is significantly slower than this arm.
    SlowerThan(usize),
    /// It significantly gains less than [`LEAST_GAIN`].
    GainsNothing,
}

/// The judgement on rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// By arm; `None` for the baseline and for arms that ran in fewer than two rounds.
    pub gains: Vec<Option<Gain>>,
    /// Arms that need not run again.
    pub dropped: Vec<(usize, Dropped)>,
    /// Arms that are significantly faster than the baseline and within [`LEAST_GAIN`] of the fastest; the fastest
    /// first.
    pub leaders: Vec<usize>,
    /// Whether more rounds would change nothing that matters.
    pub is_decided: bool,
}

/// The numbers of rounds after which to judge, rising; the last is `most`.
pub fn looks(most: usize) -> Vec<usize> {
    let grow = |rounds: &usize| Some(((*rounds as f64 * LOOK_GROWTH).ceil() as usize).max(rounds + 1));
    let before = std::iter::successors(Some(FIRST_LOOK_ROUNDS), grow).take_while(|rounds| *rounds < most);
    before.chain([most]).collect()
}

/// Judges the rounds of a comparison with at most `most` rounds. `running`: by arm, whether it ran in the last round.
pub fn judge(rounds: &[Round], running: &[bool], most: usize) -> Judgement {
    let arms = running.len();
    // The looks before the last, and one more, because a comparison may end between two looks.
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

/// Pooled variance of rounds over all arms.
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

/// Logarithms of the ratio between the times of two arms in the same round.
struct Differences {
    /// Of the rounds that are not trimmed.
    mean: f64,
    /// Variance of the mean, times the number of rounds.
    variance: f64,
    rounds: usize,
    degrees: usize,
}

impl Differences {
    /// `None`: both arms ran in fewer than two rounds.
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

/// The gain of one arm over another.
fn compared(rounds: &[Round], arm: usize, with: usize, spread: &Spread, probability: f64) -> Option<Gain> {
    let Differences { mean, variance, rounds, degrees } = Differences::of(rounds, arm, with)?;
    let borrowed = spread.degrees.saturating_sub(degrees).min(MAX_BORROWED);
    let error = (variance.max(spread.variance) / rounds as f64).sqrt();
    let half = exceeded_with(probability, degrees + borrowed) * error;
    let share = |log: f64| 1.0 - (-log).exp();
    Some(Gain { share: share(mean), low: share(mean - half), high: share(mean + half) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 12;

    /// SplitMix64: the same numbers in each run.
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

    /// Runs a comparison as `advise try` does: rounds until it is decided, without dropped arms. Returns the last
    /// judgement, and the number of rounds.
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

    /// Number of 100 comparisons whose judgement satisfies this.
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
    fn equal_arms_have_no_leader_with_disturbed_runs() {
        let disturbed = |random: &mut Random, _| {
            let by = if random.uniform() < 0.1 { 1.3 } else { 1.0 };
            by * (0.01 * random.normal()).exp()
        };
        let none = of_100(9, disturbed, |judged| judged.leaders.is_empty());
        assert!(none >= 95, "{none} of 100");
    }

    #[test]
    fn a_noisier_arm_is_no_leader_by_chance() {
        let noise = |random: &mut Random, arm| (if arm == 3 { 0.1 } else { 0.01 } * random.normal()).exp();
        let none = of_100(9, noise, |judged| judged.leaders.is_empty());
        assert!(none >= 95, "{none} of 100");
    }

    #[test]
    fn a_5_percent_gain_is_found_with_2_percent_noise() {
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

    /// Five of 100 runs take a third longer, as on a shared machine.
    fn disturbed(random: &mut Random, gain: f64) -> f64 {
        let by = if random.uniform() < 0.05 { 1.35 } else { 1.0 };
        by * (1.0 - gain) * (0.01 * random.normal()).exp()
    }

    #[test]
    fn the_interval_holds_the_gain_of_disturbed_runs() {
        let held = of_100(
            9,
            |random, arm| disturbed(random, if arm == 1 { 0.05 } else { 0.0 }),
            |judged| judged.gains[1].is_some_and(|gain| gain.low <= 0.05 && 0.05 <= gain.high),
        );
        assert!(held >= 95, "{held} of 100");
    }

    #[test]
    fn a_5_percent_gain_is_found_with_disturbed_runs() {
        for arms in [2, 7] {
            let seconds = |random: &mut Random, arm| disturbed(random, if arm == 1 { 0.05 } else { 0.0 });
            let named = of_100(arms, seconds, |judged| judged.leaders == [1]);
            assert!(named >= 90, "{named} of 100 with {arms} arms");
        }
    }

    #[test]
    fn one_slow_run_does_not_widen_the_interval() {
        let rounds: Vec<Round> = (0..MOST)
            .map(|round| vec![Some(1.0 + 0.001 * (round % 5) as f64), Some(if round == 7 { 1.5 } else { 0.95 })])
            .collect();
        let gain = judge(&rounds, &[true, true], MOST).gains[1].unwrap();
        assert!((gain.share - 0.05).abs() < 0.003 && gain.high - gain.low < 0.01, "{gain:?}");
    }

    #[test]
    fn slower_arms_are_dropped_and_large_gains_end_early() {
        // Rounds differ by the same share for all arms: that is the machine's noise, not the arms'.
        let of = [1.0, 0.6, 0.9, 1.5];
        let (judged, rounds) =
            compare(4, |round, arm| of[arm] * (1.0 + 0.1 * round as f64 + 1e-3 * ((round * 7 + arm * 3) % 5) as f64));
        assert_eq!((judged.leaders.as_slice(), judged.is_decided, rounds), ([1].as_slice(), true, FIRST_LOOK_ROUNDS));
        let why = [(2, Dropped::SlowerThan(1)), (3, Dropped::SlowerThan(0))];
        assert_eq!(judged.dropped, why);
    }

    #[test]
    fn a_comparison_without_gains_ends() {
        let (judged, rounds) = compare(3, |round, arm| 1.0 + 1e-4 * ((round * 5 + arm * 3) % 7) as f64);
        assert!(judged.is_decided && judged.leaders.is_empty() && rounds == FIRST_LOOK_ROUNDS);
        assert_eq!(judged.dropped.len(), 2);
    }

    #[test]
    fn arms_with_equal_gains_lead_together() {
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
        // A failed arm takes no further part.
        let gone = judge(&[vec![Some(1.0), None], vec![Some(1.0), None]], &[true, false], MOST);
        assert_eq!(gone.gains, [None, None]);
    }

    #[test]
    fn looks_grow_to_the_maximum() {
        assert_eq!(looks(12), [4, 6, 9, 12]);
        assert_eq!(looks(3), [3]);
        assert_eq!(looks(1), [1]);
    }
}
