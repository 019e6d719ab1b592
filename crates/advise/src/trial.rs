//! What was foretold of huge pages, and what they were seen to save when the same memory was made huge and split again in turns.

use std::f64::consts::{PI, SQRT_2};

/// So many deviations below zero the series' first terms tell the mean to a hundred-thousandth, where densities are near the least number.
const FAR: f64 = 30.0;
/// Where nothing was saved so much of what was foretold stays, by which it is known what would save more than what.
const LEAST: f64 = 0.01;
/// Few pairs may agree by chance.
const LEAST_SEEN: f64 = 0.005;
/// The standard deviation is so many times the median deviation, if chance is normal.
const NORMAL: f64 = 1.4826;

/// A trial of some memory, while the program ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// How much memory was made huge.
    pub bytes: u64,
    /// The share of the program's time that huge pages were to save there.
    pub foretold: f64,
    /// The share that they saved, by pair of turns.
    pub saved: Vec<f64>,
}

impl Trial {
    /// What was saved in the middle: one pair during which something else has happened tells nothing. 0 of no pairs.
    pub fn middle(&self) -> f64 {
        median(self.saved.clone())
    }

    /// Its standard error, by how far the pairs are from it in the middle; infinite of fewer than two.
    pub fn error(&self) -> f64 {
        let (count, middle) = (self.saved.len() as f64, self.middle());
        if count < 2.0 {
            return f64::INFINITY;
        }
        let off = median(self.saved.iter().map(|saved| (saved - middle).abs()).collect());
        (NORMAL * off * (PI / 2.0 / count).sqrt()).max(LEAST_SEEN)
    }

    /// How many times what was foretold is to be believed, after what was seen; 1 where nothing was.
    ///
    /// Huge pages do not make accesses slower, and where it is not known how many of them wait for each other, or where caches are shared,
    /// they saved up to three times what was foretold. So the share that they save is taken to be exponentially distributed, with what
    /// was foretold as its mean, before it was seen with a normal error: it is then normal, cut off at zero, and its mean is believed.
    pub fn factor(&self) -> f64 {
        let error = self.error();
        let believed = error * mean_above_zero(self.middle() / error - error / self.foretold);
        Some(believed / self.foretold).filter(|factor| factor.is_finite()).map_or(1.0, |factor| factor.max(LEAST))
    }
}

/// The mean of what is above zero of a normal distribution of deviation 1 around this.
fn mean_above_zero(mean: f64) -> f64 {
    if mean < -FAR {
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

    fn trial(foretold: f64, saved: &[f64]) -> Trial {
        Trial { bytes: 0, foretold, saved: saved.to_vec() }
    }

    #[test]
    fn what_was_seen_surely_is_believed() {
        let told = trial(0.05, &[0.101, 0.099, 0.1, 0.1]).factor();
        assert!((1.95..2.0).contains(&told), "{told}");
    }

    #[test]
    fn what_chance_has_seen_changes_little() {
        let told = trial(0.05, &[0.9, -0.85, 0.8, -0.8]).factor();
        assert!((0.9..1.1).contains(&told), "{told}");
    }

    #[test]
    fn what_saves_nothing_is_worth_next_to_nothing_and_never_less() {
        for nothing in [trial(0.1, &[0.001, -0.001, 0.0]), trial(0.01, &[-0.101, -0.1, -0.099])] {
            assert!((LEAST..0.05).contains(&nothing.factor()), "{nothing:?}");
        }
        assert_eq!(trial(1.0, &[-0.101, -0.1, -0.099]).factor(), LEAST);
    }

    #[test]
    fn a_loss_that_chance_may_have_made_does_not_tell_that_nothing_is_saved() {
        // Of 16 GiB, nine of ten accesses to every tenth region.
        let lost = trial(0.126, &[-0.083, 0.041, -0.021, -0.083, 0.041, -0.091, 0.05, -0.021]);
        assert!((0.02..0.06).contains(&lost.error()), "{}", lost.error());
        assert!((0.1..0.4).contains(&lost.factor()), "{}", lost.factor());
    }

    #[test]
    fn the_mean_above_zero_is_that_of_what_is_drawn() {
        // By the sum over the density itself.
        for mean in [-29.0, -12.0, -3.0, -0.5, 0.0, 0.5, 4.0] {
            let step = 1e-5;
            let at = |x: f64| (-(x - mean) * (x - mean) / 2.0 + f64::min(mean, 0.0).powi(2) / 2.0).exp();
            let points = (0..1_200_000).map(|number| (f64::from(number) + 0.5) * step);
            let (all, weighted) = points.fold((0.0, 0.0), |(all, weighted), x| (all + at(x), weighted + x * at(x)));
            let told = mean_above_zero(mean);
            assert!((told / (weighted / all) - 1.0).abs() < 1e-3, "{mean}: {told} of {}", weighted / all);
        }
        let (near, far) = (mean_above_zero(1e-6 - FAR), mean_above_zero(-1e-6 - FAR));
        assert!((near / far - 1.0).abs() < 1e-4, "{near} {far}");
        assert_eq!(mean_above_zero(f64::NEG_INFINITY), 0.0);
    }

    #[test]
    fn a_pair_that_something_else_has_disturbed_changes_little() {
        let trial = trial(0.05, &[0.1, 0.11, -0.9, 0.09, 0.1, 0.105]);
        assert!((0.09..0.11).contains(&trial.middle()) && trial.error() < 0.01, "{} {}", trial.middle(), trial.error());
    }

    #[test]
    fn without_turns_and_of_one_what_was_foretold_stays() {
        for none in [trial(0.1, &[]), trial(0.1, &[0.3]), trial(0.0, &[0.1, 0.2])] {
            assert!((none.factor() - 1.0).abs() < 1e-9, "{none:?}");
        }
    }
}
