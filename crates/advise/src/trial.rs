//! Predicted savings of huge pages, and the savings measured when the same memory was made huge and split again in
//! turns.

use std::f64::consts::{PI, SQRT_2};

/// Below this many deviations under zero, the first terms of a series give the mean to 1e-5; the densities would
/// underflow.
const SERIES_BELOW: f64 = 30.0;
/// If a trial saved nothing, this part of the prediction stays, so that regions can still be ranked.
const MIN_FACTOR: f64 = 0.01;
/// Minimum standard error: few pairs may agree by chance.
const MIN_ERROR: f64 = 0.005;
/// Ratio of the standard deviation to the median deviation of a normal distribution.
const DEVIATION_PER_MEDIAN: f64 = 1.4826;

/// A trial of some memory, made while the program ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// Bytes made huge.
    pub bytes: u64,
    /// Predicted share of the program's time that huge pages save there.
    pub predicted: f64,
    /// Measured share, by pair of turns.
    pub saved: Vec<f64>,
}

impl Trial {
    /// Median of the measured savings, so that one disturbed pair does not matter; 0 without pairs.
    pub fn middle(&self) -> f64 {
        median(self.saved.clone())
    }

    /// Standard error of the median, from the median deviation; infinite for fewer than two pairs.
    pub fn error(&self) -> f64 {
        let (count, middle) = (self.saved.len() as f64, self.middle());
        if count < 2.0 {
            return f64::INFINITY;
        }
        let off = median(self.saved.iter().map(|saved| (saved - middle).abs()).collect());
        (DEVIATION_PER_MEDIAN * off * (PI / 2.0 / count).sqrt()).max(MIN_ERROR)
    }

    /// The factor by which to correct the prediction after the trial; 1 if nothing was measured.
    ///
    /// Huge pages do not slow accesses down. Where it is unknown how many accesses wait for each other, or where caches
    /// are shared, they saved up to three times the prediction. So the prior of the saving is an exponential
    /// distribution with the prediction as its mean. With a normal measurement error, the posterior is a normal
    /// distribution cut off at zero, whose mean is returned.
    pub fn factor(&self) -> f64 {
        let error = self.error();
        let believed = error * mean_above_zero(self.middle() / error - error / self.predicted);
        Some(believed / self.predicted).filter(|factor| factor.is_finite()).map_or(1.0, |factor| factor.max(MIN_FACTOR))
    }
}

/// Mean of a normal distribution of deviation 1 around `mean`, restricted to values above zero.
fn mean_above_zero(mean: f64) -> f64 {
    if mean < -SERIES_BELOW {
        return (1.0 - 2.0 / (mean * mean)) / -mean;
    }
    let density = (-mean * mean / 2.0).exp() / (2.0 * PI).sqrt();
    mean + density / (libm::erfc(-mean / SQRT_2) / 2.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (above, below) = (values.get(values.len() / 2), values.get(values.len().saturating_sub(1) / 2));
    above.zip(below).map_or(0.0, |(above, below)| (above + below) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(predicted: f64, saved: &[f64]) -> Trial {
        Trial { bytes: 0, predicted, saved: saved.to_vec() }
    }

    #[test]
    fn precise_measurements_replace_the_prediction() {
        let value = trial(0.05, &[0.101, 0.099, 0.1, 0.1]).factor();
        assert!((1.95..2.0).contains(&value), "{value}");
    }

    #[test]
    fn imprecise_measurements_change_little() {
        let value = trial(0.05, &[0.9, -0.85, 0.8, -0.8]).factor();
        assert!((0.9..1.1).contains(&value), "{value}");
    }

    #[test]
    fn no_saving_leaves_a_small_positive_factor() {
        for nothing in [trial(0.1, &[0.001, -0.001, 0.0]), trial(0.01, &[-0.101, -0.1, -0.099])] {
            assert!((MIN_FACTOR..0.05).contains(&nothing.factor()), "{nothing:?}");
        }
        assert_eq!(trial(1.0, &[-0.101, -0.1, -0.099]).factor(), MIN_FACTOR);
    }

    #[test]
    fn a_loss_within_the_error_keeps_some_saving() {
        // 16 GiB, with nine of ten accesses to every tenth region.
        let lost = trial(0.126, &[-0.083, 0.041, -0.021, -0.083, 0.041, -0.091, 0.05, -0.021]);
        assert!((0.02..0.06).contains(&lost.error()), "{}", lost.error());
        assert!((0.1..0.4).contains(&lost.factor()), "{}", lost.factor());
    }

    #[test]
    fn the_mean_above_zero_matches_the_density() {
        // Sums over the density itself.
        for mean in [-29.0, -12.0, -3.0, -0.5, 0.0, 0.5, 4.0] {
            let step = 1e-5;
            let at = |x: f64| (-(x - mean) * (x - mean) / 2.0 + f64::min(mean, 0.0).powi(2) / 2.0).exp();
            let points = (0..1_200_000).map(|number| (f64::from(number) + 0.5) * step);
            let (all, weighted) = points.fold((0.0, 0.0), |(all, weighted), x| (all + at(x), weighted + x * at(x)));
            let value = mean_above_zero(mean);
            assert!((value / (weighted / all) - 1.0).abs() < 1e-3, "{mean}: {value} of {}", weighted / all);
        }
        let (near, far) = (mean_above_zero(1e-6 - SERIES_BELOW), mean_above_zero(-1e-6 - SERIES_BELOW));
        assert!((near / far - 1.0).abs() < 1e-4, "{near} {far}");
        assert_eq!(mean_above_zero(f64::NEG_INFINITY), 0.0);
    }

    #[test]
    fn one_disturbed_pair_changes_little() {
        let trial = trial(0.05, &[0.1, 0.11, -0.9, 0.09, 0.1, 0.105]);
        assert!((0.09..0.11).contains(&trial.middle()) && trial.error() < 0.01, "{} {}", trial.middle(), trial.error());
    }

    #[test]
    fn with_fewer_than_two_turns_the_prediction_stays() {
        for none in [trial(0.1, &[]), trial(0.1, &[0.3]), trial(0.0, &[0.1, 0.2])] {
            assert!((none.factor() - 1.0).abs() < 1e-9, "{none:?}");
        }
    }
}
