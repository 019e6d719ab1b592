//! Beyond the sizes seen: the trend that would best have predicted the sizes nearest to the one that is asked for from the others, and how
//! far off it may be.

use crate::confidence::{Confidence, normal_quantile};
use crate::predictor::Predictor;
use crate::run::Completed;

/// Trends that were off by no more than so many times what the best one was, and this, are as likely: the one that leads to the largest
/// need counts, for too little costs a whole run.
const PLAUSIBLE_ERRORS: f64 = 1.5;
const PLAUSIBLE_ERROR: f64 = 0.002;
/// Sizes whose ratio is less are one.
const SAME_SIZE_RATIO: f64 = 1.001;
/// Standard deviation of the logarithm of need ÷ prediction at e times the largest size, where the trend was exact within the sizes seen:
/// buffers double, and small inputs do not show each of them. Of programs that `bench/predict own` lists.
const DRIFT: f64 = 0.05;
/// Beyond the range of the sizes seen, errors are taken for larger, at most so many times.
const MOST_WIDENED: f64 = 4.0;
/// Trends are compared on so many splits of the sizes, and on so many runs behind each: the time of an answer is bounded.
const MOST_SPLITS: usize = 8;
const MOST_TESTED: usize = 8;
/// The last sizes are a plateau where their needs differ by no more than this share, and the sizes by this ratio; from the smallest size to
/// the first one of it the need grew by this share.
const PLATEAU_SHARE: f64 = 0.03;
const PLATEAU_SIZE_RATIO: f64 = 1.5;
const PLATEAU_GROWTH: f64 = 0.25;

/// What a trend leads to.
pub struct Extrapolation {
    pub predictor: Predictor,
    pub predicted: f64,
    pub interval: (f64, f64),
    pub ask: f64,
    pub retry: f64,
}

impl Extrapolation {
    /// Of runs, at least one, and features of which the one at `main` is outside of the range seen. Time: the number of runs.
    pub fn of(runs: &[Completed], features: &[f64], main: usize, confidence: Confidence) -> Self {
        let asked = features[main].max(1.0).ln();
        let sizes = Sizes::of(runs, main, asked);
        let distance = sizes.distance(sizes.ends.len());
        if sizes.ends.len() == 1 {
            return unknown_growth(runs, distance);
        }
        let plateau = sizes.plateau().filter(|_| asked > sizes.last());
        let goes_on = |predictor: &Predictor| plateau.is_none() || *predictor != Predictor::Largest;
        let trends = Predictor::TRENDS.into_iter().filter(goes_on);
        let trends: Vec<Tested> = trends.map(|predictor| Tested::of(predictor, &sizes)).collect();
        let exact = trends.iter().map(|tested| tested.error).fold(f64::INFINITY, f64::min);
        let plausible = trends.iter().filter(|tested| tested.error <= exact * PLAUSIBLE_ERRORS + PLAUSIBLE_ERROR);
        let predicted = |tested: &Tested| tested.predictor.predict(&sizes.runs, features);
        let mut led_to: Vec<(f64, &Tested)> = plausible.map(|tested| (predicted(tested), tested)).collect();
        led_to.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (least, (predicted, trend)) = (led_to[0].0, led_to[led_to.len() - 1]);
        // Fitted to all sizes, it is off by no more than what it was off by when it was fitted to some: as far beyond as they range.
        let tested = trend.error * (distance / sizes.range()).clamp(1.0, MOST_WIDENED);
        let deviation = (tested.powi(2) + (DRIFT * distance * sizes.doubt()).powi(2)).sqrt();
        let beyond = |probability: f64| (normal_quantile(probability) * deviation).exp();
        let two_sided = beyond((1.0 + confidence.probability()) / 2.0);
        let ask = predicted * beyond(confidence.probability());
        let trend = Self {
            predictor: trend.predictor,
            predicted,
            interval: (least / two_sided, predicted * two_sided),
            ask,
            retry: ask * 1.5,
        };
        match plateau.filter(|plateau| *plateau < predicted) {
            Some(plateau) => trend.beside_plateau(plateau, beyond(confidence.probability())),
            None => trend,
        }
    }

    /// The need no longer grows with the input. That it grows again is within the interval, and what the trend asks for is the first retry.
    fn beside_plateau(self, plateau: f64, margin: f64) -> Self {
        let ask = plateau * margin.min(1.0 + PLATEAU_SHARE * 5.0);
        Self {
            predictor: Predictor::Plateau,
            predicted: plateau,
            interval: (plateau * (1.0 - PLATEAU_SHARE), self.interval.1),
            ask,
            retry: self.ask.max(ask * 1.05),
        }
    }
}

/// All runs had one size: the need may be the same for all sizes, or in proportion to them.
fn unknown_growth(runs: &[Completed], distance: f64) -> Extrapolation {
    let needs = runs.iter().map(|run| run.bytes);
    let (least, most) = (needs.clone().fold(f64::INFINITY, f64::min), needs.fold(0.0, f64::max));
    let in_proportion = most * distance.exp();
    Extrapolation {
        predictor: Predictor::Proportional,
        predicted: in_proportion,
        interval: (least / distance.exp(), in_proportion),
        ask: in_proportion,
        retry: in_proportion * 1.5,
    }
}

/// Runs by size, the farthest from the size that is asked for first.
struct Sizes {
    runs: Vec<Completed>,
    /// Logarithm of each run's size.
    logs: Vec<f64>,
    /// Behind the last run of each size.
    ends: Vec<usize>,
    asked: f64,
}

impl Sizes {
    fn of(runs: &[Completed], main: usize, asked: f64) -> Self {
        let mut runs = runs.to_vec();
        let far = |run: &Completed| (run.logs[main] - asked).abs();
        runs.sort_by(|a, b| far(b).total_cmp(&far(a)));
        let logs: Vec<f64> = runs.iter().map(|run| run.logs[main]).collect();
        let mut ends = Vec::new();
        let mut first = logs[0];
        for (index, log) in logs.iter().enumerate() {
            if (log - first).abs() > SAME_SIZE_RATIO.ln() {
                ends.push(index);
                first = *log;
            }
        }
        ends.push(logs.len());
        Self { runs, logs, ends, asked }
    }

    /// Logarithm of the ratio between the asked size and the last of the first so many sizes.
    fn distance(&self, sizes: usize) -> f64 {
        (self.asked - self.logs[self.ends[sizes - 1] - 1]).abs()
    }

    fn last(&self) -> f64 {
        self.logs[self.logs.len() - 1]
    }

    /// Logarithm of the ratio between the sizes that are farthest apart.
    fn range(&self) -> f64 {
        (self.last() - self.logs[0]).abs()
    }

    /// Two sizes lie on a line whatever the trend is, and three on many curves.
    fn doubt(&self) -> f64 {
        match self.ends.len() {
            2 => 4.0,
            3 => 2.0,
            _ => 1.0,
        }
    }

    /// The largest need of the nearest sizes, where it did not grow from one to the other and did before.
    fn plateau(&self) -> Option<f64> {
        let at_last = self.runs.len() - 1;
        let near = |bytes: f64| (bytes / self.runs[at_last].bytes - 1.0).abs() <= PLATEAU_SHARE;
        let first = (0..=at_last).rev().find(|index| !near(self.runs[*index].bytes))? + 1;
        let is_wide = (self.logs[at_last] - self.logs[first]).abs() >= PLATEAU_SIZE_RATIO.ln();
        let most = self.runs[first..].iter().map(|run| run.bytes).fold(0.0, f64::max);
        (is_wide && self.runs[0].bytes * (1.0 + PLATEAU_GROWTH) <= most).then_some(most)
    }
}

/// A trend with its error on sizes nearer to the asked one than those it was fitted to.
struct Tested {
    predictor: Predictor,
    /// Root mean square of logarithms of need ÷ prediction.
    error: f64,
}

impl Tested {
    fn of(predictor: Predictor, sizes: &Sizes) -> Self {
        let (mut errors, mut count) = (0.0, 0.0);
        let mut test = |known: &[Completed], tested: &Completed| {
            let predicted = predictor.predict(known, &tested.features).max(1.0);
            errors += (tested.log_bytes - predicted.ln()).powi(2);
            count += 1.0;
        };
        // From two sizes, or half of them, to all but one.
        let first = (sizes.ends.len() / 2).max(2);
        for split in spread(sizes.ends.len().saturating_sub(first), MOST_SPLITS) {
            let (known, nearer) = sizes.runs.split_at(sizes.ends[first - 1 + split]);
            spread(nearer.len(), MOST_TESTED).for_each(|run| test(known, &nearer[run]));
        }
        if sizes.ends.len() == 2 {
            // Of two sizes nothing but the fit can be seen.
            sizes.runs.iter().for_each(|run| test(&sizes.runs, run));
        }
        Self { predictor, error: (errors / count).sqrt() }
    }
}

/// At most so many of the first `count` numbers, the first and the last among them.
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most);
    (0..taken).map(move |index| if taken == 1 { count - 1 } else { index * (count - 1) / (taken - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(needs: &[(f64, f64)], size: f64) -> Extrapolation {
        let runs: Vec<Completed> = needs.iter().map(|&(size, need)| Completed::new(vec![size], need)).collect();
        Extrapolation::of(&runs, &[size], 0, Confidence::default())
    }

    #[test]
    fn a_line_goes_on_with_a_margin() {
        let line = |size: f64| 2e8 + 3.0 * size;
        let found = beyond(&[1e9, 1.7e9, 2.6e9, 4.3e9].map(|size| (size, line(size))), 18e9);
        let need = line(18e9);
        assert!((found.predicted / need - 1.0).abs() < 1e-6, "{}", found.predicted);
        assert!((1.05..1.2).contains(&(found.ask / need)), "{}", found.ask / need);
        assert!(found.interval.0 < need * 0.95 && found.interval.1 > need * 1.1, "{:?}", found.interval);
    }

    #[test]
    fn the_trend_is_the_one_that_the_larger_sizes_follow() {
        let root = beyond(&[1e9, 2e9, 4e9, 8e9].map(|size| (size, 1e5 * f64::sqrt(size))), 32e9);
        assert_eq!(root.predictor, Predictor::Power);
        let constant = beyond(&[1e9, 2e9, 4e9, 8e9].map(|size| (size, 1e9)), 32e9);
        assert!((0.99..1.01).contains(&(constant.predicted / 1e9)) && constant.ask < 1.2e9, "{}", constant.ask);
    }

    #[test]
    fn a_plateau_is_asked_for_first_and_the_trend_next() {
        let needs = [(1e9, 1e9), (2e9, 2e9), (4e9, 4e9), (6e9, 4.02e9), (9e9, 4.01e9)];
        let found = beyond(&needs, 36e9);
        assert_eq!(found.predictor, Predictor::Plateau);
        assert!((4.02e9..5e9).contains(&found.ask) && found.retry > 10e9, "{} {}", found.ask, found.retry);
        assert!(found.interval.1 > 10e9, "{:?}", found.interval);
        // One size does not show it.
        assert_ne!(beyond(&needs[..4], 36e9).predictor, Predictor::Plateau);
    }

    #[test]
    fn the_growth_of_one_size_is_unknown() {
        let found = beyond(&[(1e9, 1e9), (1e9, 1.01e9), (1e9, 0.99e9)], 4e9);
        assert_eq!(found.predictor, Predictor::Proportional);
        assert!((found.ask / 4.04e9 - 1.0).abs() < 1e-6 && found.interval.0 <= 0.99e9, "{}", found.ask);
    }

    #[test]
    fn fewer_sizes_leave_more_doubt() {
        let margin = |sizes: &[f64]| {
            let needs: Vec<_> = sizes.iter().map(|&size| (size, 3.0 * size)).collect();
            let found = beyond(&needs, 16e9);
            found.ask / found.predicted
        };
        let margins = [margin(&[2e9, 4e9]), margin(&[1e9, 2e9, 4e9]), margin(&[1e9, 2e9, 3e9, 4e9])];
        assert!(margins[0] > margins[1] && margins[1] > margins[2], "{margins:?}");
    }
}
