//! What was foretold of huge pages, and what they were seen to save when the same memory was made huge and split again in turns.

use std::f64::consts::PI;

/// How far what is foretold is off, as a share of itself: where it is not known how many accesses wait for each other, or where the
/// caches are shared, three times as much was saved.
const FORETOLD_ERROR: f64 = 2.0;
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

    /// How many times what was foretold is to be believed: what was seen and what was foretold, each by how sure it is (by the inverse
    /// of its variance). 1 where nothing was seen.
    pub fn factor(&self) -> f64 {
        let foretold = (FORETOLD_ERROR * self.foretold).powi(-2);
        let seen = self.error().powi(-2);
        let believed = (foretold * self.foretold + seen * self.middle()) / (foretold + seen);
        Some(believed / self.foretold).filter(|factor| factor.is_finite()).map_or(1.0, |factor| factor.max(LEAST))
    }
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
            assert_eq!(nothing.factor(), LEAST, "{nothing:?}");
        }
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
