//! Whether figures of two sets of runs differ, up or down.

use crate::hochberg::levels;
use crate::sample::{Sample, error};
use crate::student::above;

/// Share of comparisons of equal runs in which any figure may be called different, at most.
const LEVEL: f64 = 0.01;

/// Few runs may be equal by chance, and counters go by pages: the spread of a figure is this part of it at least.
const RESOLUTION: f64 = 0.001;

/// One figure of two sets of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Means. `None`: no run knows it.
    pub a: Option<f64>,
    /// Of the second set.
    pub b: Option<f64>,
    /// Whether they differ beyond the noise of repeated runs. `None`: the noise is unknown, for each set has one run.
    pub significant: Option<bool>,
}

/// Compares figures, each given by its values in the first and in the second set. All together call equal runs different in at most 1 %
/// of comparisons.
pub fn differ(figures: &[(Vec<f64>, Vec<f64>)]) -> Vec<Difference> {
    let samples: Vec<_> = figures.iter().map(|(a, b)| (Sample::of(a), Sample::of(b))).collect();
    let p_value = |(a, b): &(Option<Sample>, Option<Sample>)| {
        let (a, b) = (a.as_ref()?, b.as_ref()?);
        let (error, degrees) = error(a, b, 1.0)?;
        let apart = (b.mean - a.mean).abs();
        let error = error.max(RESOLUTION * a.mean.abs());
        Some(if error > 0.0 { 2.0 * above(apart / error, degrees) } else { f64::from(u8::from(apart == 0.0)) })
    };
    let p_values: Vec<Option<f64>> = samples.iter().map(p_value).collect();
    let known: Vec<f64> = p_values.iter().copied().flatten().collect();
    let mut levels = levels(&known, LEVEL).into_iter();
    let mut difference = |((a, b), p_value): (&(Option<Sample>, Option<Sample>), &Option<f64>)| Difference {
        a: a.map(|a| a.mean),
        b: b.map(|b| b.mean),
        significant: p_value.map(|p_value| levels.next().is_some_and(|level| p_value <= level)),
    };
    samples.iter().zip(&p_values).map(&mut difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_significant_beyond_the_spread_alone() {
        let near = (vec![100.0, 101.0, 99.0], vec![100.5, 101.5, 99.5]);
        let far = (vec![100.0, 101.0, 99.0], vec![80.0, 81.0, 79.5]);
        let found = differ(&[near, far, (vec![1.0], vec![2.0]), (vec![], vec![2.0])]);
        let significant: Vec<Option<bool>> = found.iter().map(|found| found.significant).collect();
        assert_eq!(significant, [Some(false), Some(true), None, None]);
        assert_eq!((found[3].a, found[3].b), (None, Some(2.0)));
        // A page more than runs that were equal by chance.
        let equal = vec![21032960.0; 3];
        let found = differ(&[(equal.clone(), vec![21037056.0]), (equal, vec![23000000.0])]);
        assert_eq!([found[0].significant, found[1].significant], [Some(false), Some(true)]);
    }
}
