//! Whether figures have grown: after which runs to look, and what a look shows.

use crate::hochberg::levels;
use crate::sample::{Sample, error};
use crate::student::{above, exceeded_with};

/// Share of checks of an unchanged program that may fail, at most.
pub const FALSE_ALARMS: f64 = 0.0075;
/// A check goes on until it can exclude growth of more than this share, or has no runs left.
pub const SENSITIVITY: f64 = 0.02;
/// A check that could not see growth of this share does not pass, unless the tolerance is larger.
pub const RESOLUTION: f64 = 0.05;
/// The first look is after so many runs.
const FIRST_LOOK: u32 = 2;
/// No look but the last is after more than this share of the runs: it would show little that the last does not.
const LAST_BUT_ONE: f64 = 0.75;

/// Values of one figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Of the runs to compare with.
    pub baseline: Vec<f64>,
    /// Of the new runs.
    pub runs: Vec<f64>,
    /// Growth that is allowed, as a share of the baseline.
    pub tolerance: f64,
    /// Growth of less than this does not count, whatever the noise, in the figure's unit: what differs between equal machines and days.
    pub least: f64,
}

/// What a check says of a figure, and of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not above the bound beyond noise, and growth that matters would have been seen.
    Passed,
    /// Above the bound beyond noise.
    Failed,
    /// The noise is unknown, or so large that growth that matters would not have been seen.
    Undecided,
}

/// What is known of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// Mean of the new runs, or the largest of them where they are compared with a limit.
    pub value: f64,
    /// What it is compared with.
    pub bound: f64,
    /// By how much the value must exceed the bound before the figure fails. `None`: unknown.
    pub noise: Option<f64>,
    /// `None`: more runs are needed.
    pub verdict: Option<Verdict>,
}

/// What all runs until now show.
#[derive(Clone, Debug)]
pub struct Look {
    /// Of each figure, in their order.
    pub findings: Vec<Finding>,
    /// The number of runs until the next look; `None`: the check is decided.
    pub next: Option<u32>,
}

/// A check of at most so many runs.
#[derive(Clone, Debug)]
pub struct Check {
    looks: Vec<u32>,
}

impl Check {
    /// A check that looks after 2, 3, 5, 8, 12, 18 … runs, and after `most_runs` (at least 1).
    pub fn of(most_runs: u32) -> Check {
        let most = most_runs.max(1);
        let after = |runs: &u32| Some((runs + 1).max((runs * 3).div_ceil(2)));
        let looks = std::iter::successors(Some(FIRST_LOOK), after)
            .take_while(|runs| f64::from(*runs) <= LAST_BUT_ONE * f64::from(most));
        Check { looks: looks.chain([most]).collect() }
    }

    /// A check of runs that are there already: one look.
    pub fn of_all(runs: u32) -> Check {
        Check { looks: vec![runs.max(1)] }
    }

    /// How many runs to make before the first look.
    pub fn first(&self) -> u32 {
        self.looks[0]
    }

    /// Looks at the figures after so many runs, one of [`Check::first`] and [`Look::next`]. O(n) of n values.
    pub fn look(&self, runs: u32, figures: &[Figure]) -> Look {
        let next = self.looks.iter().copied().find(|look| *look > runs);
        let level = self.level(runs);
        let tests: Vec<Option<Test>> = figures.iter().map(Test::of).collect();
        let p_values: Vec<f64> = tests.iter().flatten().map(Test::p_value).collect();
        let mut levels = levels(&p_values, level).into_iter();
        let judge = |(figure, test): (&Figure, &Option<Test>)| match test {
            Some(test) => test.judge(figure, levels.next().unwrap_or(level), next.is_none()),
            None => Finding::unknown(figure, next.is_none()),
        };
        let findings: Vec<Finding> = figures.iter().zip(&tests).map(judge).collect();
        let has_failed = findings.iter().any(|finding| finding.verdict == Some(Verdict::Failed));
        let is_open = findings.iter().any(|finding| finding.verdict.is_none());
        Look { findings, next: next.filter(|_| is_open && !has_failed) }
    }

    /// What a look may use of [`FALSE_ALARMS`]: in all, (runs / most runs)³: clear growth is seen at once all the same.
    fn level(&self, runs: u32) -> f64 {
        let most = f64::from(self.looks[self.looks.len() - 1]);
        let used = |runs: u32| (f64::from(runs) / most).powi(3).min(1.0);
        let before = self.looks.iter().copied().filter(|look| *look < runs).max().unwrap_or(0);
        FALSE_ALARMS * (used(runs) - used(before))
    }
}

/// A figure that has a noise.
struct Test {
    baseline: f64,
    value: f64,
    bound: f64,
    error: f64,
    degrees: usize,
}

impl Test {
    fn of(figure: &Figure) -> Option<Test> {
        let (baseline, runs) = (Sample::of(&figure.baseline)?, Sample::of(&figure.runs)?);
        let factor = 1.0 + figure.tolerance;
        let (error, degrees) = error(&baseline, &runs, factor)?;
        Some(Test { baseline: baseline.mean, value: runs.mean, bound: baseline.mean * factor, error, degrees })
    }

    /// How likely so large a value is if the figure has not grown beyond the tolerance.
    fn p_value(&self) -> f64 {
        match self.value - self.bound {
            beyond if self.error > 0.0 => above(beyond / self.error, self.degrees),
            beyond => f64::from(u8::from(beyond <= 0.0)),
        }
    }

    fn judge(&self, figure: &Figure, level: f64, is_last: bool) -> Finding {
        let noise = if self.error > 0.0 { exceeded_with(level, self.degrees) * self.error } else { 0.0 };
        let beyond = self.value - self.bound;
        let share = |share: f64| (share * self.baseline.abs()).max(figure.least);
        let allowed = figure.tolerance * self.baseline.abs();
        let excluded = (share(SENSITIVITY) - allowed).max(0.0);
        let can_see = noise <= share(RESOLUTION.max(figure.tolerance));
        let verdict = match is_last {
            _ if beyond > noise && self.value - self.baseline > figure.least => Some(Verdict::Failed),
            _ if beyond + noise <= excluded => Some(Verdict::Passed),
            true if can_see => Some(Verdict::Passed),
            true => Some(Verdict::Undecided),
            false => None,
        };
        Finding { value: self.value, bound: self.bound, noise: Some(noise), verdict }
    }
}

impl Finding {
    fn unknown(figure: &Figure, is_last: bool) -> Finding {
        let mean = |values: &[f64]| Sample::of(values).map_or(f64::NAN, |sample| sample.mean);
        let bound = mean(&figure.baseline) * (1.0 + figure.tolerance);
        let verdict = is_last.then_some(Verdict::Undecided);
        Finding { value: mean(&figure.runs), bound, noise: None, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(baseline: &[f64], runs: &[f64], tolerance: f64) -> Figure {
        Figure { baseline: baseline.to_vec(), runs: runs.to_vec(), tolerance, least: 0.5 }
    }

    #[test]
    fn looks_come_at_growing_distances_and_the_last_after_all_runs() {
        assert_eq!(Check::of(20).looks, [2, 3, 5, 8, 12, 20]);
        assert_eq!(Check::of(1).looks, [1]);
        let check = Check::of(20);
        let used: f64 = check.looks.iter().map(|runs| check.level(*runs)).sum();
        assert!((used - FALSE_ALARMS).abs() < 1e-12, "{used}");
    }

    #[test]
    fn equal_runs_without_spread_pass_at_once() {
        let look = Check::of(20).look(2, &[figure(&[100.0; 3], &[100.0; 2], 0.0)]);
        assert_eq!((look.next, look.findings[0].verdict), (None, Some(Verdict::Passed)));
    }

    #[test]
    fn growth_within_the_tolerance_passes_and_beyond_it_fails() {
        let base = [100.0, 100.2, 99.8];
        let verdict = |value: f64| {
            let runs = [value, value + 0.2, value - 0.2];
            Check::of_all(3).look(3, &[figure(&base, &runs, 0.05)]).findings[0].verdict
        };
        assert_eq!(verdict(103.0), Some(Verdict::Passed));
        assert_eq!(verdict(104.9), Some(Verdict::Passed));
        assert_eq!(verdict(107.0), Some(Verdict::Failed));
    }

    #[test]
    fn growth_that_does_not_count_is_none() {
        let look = Check::of(20).look(2, &[figure(&[100.0; 3], &[100.4; 2], 0.0)]);
        assert_eq!(look.findings[0].verdict, Some(Verdict::Passed));
    }

    #[test]
    fn a_baseline_of_one_run_takes_the_spread_of_the_new_runs() {
        let look = Check::of_all(4).look(4, &[figure(&[100.0], &[110.0, 110.5, 109.5, 110.2], 0.0)]);
        assert_eq!(look.findings[0].verdict, Some(Verdict::Failed));
    }

    #[test]
    fn one_run_against_one_cannot_be_decided() {
        let look = Check::of_all(1).look(1, &[figure(&[100.0], &[150.0], 0.0)]);
        assert_eq!((look.next, look.findings[0].noise), (None, None));
        assert_eq!(look.findings[0].verdict, Some(Verdict::Undecided));
    }

    #[test]
    fn noise_that_hides_growth_cannot_be_decided() {
        let (base, runs) = ([80.0, 120.0, 100.0], [90.0, 110.0, 100.0]);
        let look = Check::of_all(3).look(3, &[figure(&base, &runs, 0.0)]);
        assert_eq!(look.findings[0].verdict, Some(Verdict::Undecided));
    }
}
