//! Learning runs, and asking for the next one.

use std::error::Error;
use std::fmt;

use crate::confidence::Confidence;
use crate::extrapolation::Extrapolation;
use crate::forecast::Forecast;
use crate::interval::Validated;
use crate::predictor::{PREDICTORS, Predictor, predictions};
use crate::residuals::{ABOVE_EXACT, Residuals, Scale};
use crate::run::{Completed, Need, Run};

/// Fewest completed runs of which a prediction is made.
pub const MIN_RUNS: usize = 3;
/// The least request, bytes: no program starts in less.
pub const LEAST_ASK_BYTES: f64 = 1_048_576.0;
/// Predictors see the last so many runs. The largest need of all runs is kept apart.
const PREDICTOR_RUNS: usize = 512;
/// Waste of a run counts so much less than that of the next one: a predictor that has become wrong loses its weight in some ten runs.
const WASTE_DECAY: f64 = 0.9;
/// The weight of a candidate that wasted x times what the best one wasted is exp(−4 (x − 1)).
const WEIGHT_DECAY: f64 = 4.0;
/// A feature so much beyond the range seen is extrapolated: only predictors with a trend are asked.
const EXTRAPOLATION_RATIO: f64 = 1.5;
/// Candidates of less weight are left out.
const MIN_WEIGHT: f64 = 0.01;
/// Where runs were killed at a limit and none says how much more they need: so much more.
const ABOVE_KILLED: f64 = 1.25;

/// Why there is no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskError {
    /// So many completed runs, which are fewer than [`MIN_RUNS`].
    TooFewRuns(usize),
    /// The past runs have another number of features.
    OtherFeatures,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewRuns(runs) => write!(f, "a prediction needs {MIN_RUNS} completed runs, and there are {runs}"),
            Self::OtherFeatures => write!(f, "the past runs have other features"),
        }
    }
}

impl Error for AskError {}

/// A predictor with offsets on one scale, and what its requests have wasted.
#[derive(Clone, Debug)]
struct Candidate {
    predictor: usize,
    residuals: Residuals,
    waste: f64,
}

impl Candidate {
    fn learn(&mut self, predicted: &[f64; PREDICTORS], need: f64, seconds: f64, largest: f64, confidence: Confidence) {
        let prediction = predicted[self.predictor];
        let (first, retry) = self.residuals.request(prediction, largest);
        let mut wasted = first - need;
        if wasted < 0.0 {
            let mut tried = first;
            let mut next = retry;
            wasted = tried;
            while next < need {
                tried = next;
                wasted += tried;
                next = tried * 2.0;
            }
            wasted += next - need;
        }
        self.waste = self.waste * WASTE_DECAY + wasted * seconds;
        self.residuals.learn(prediction, need, seconds, confidence);
    }
}

/// Past runs of one kind.
#[derive(Clone, Debug)]
pub struct History {
    confidence: Confidence,
    runs: Vec<Completed>,
    /// Features and limits of runs that were killed.
    killed: Vec<(Vec<f64>, f64)>,
    candidates: Vec<Candidate>,
    largest: f64,
    count: usize,
    /// The least and the largest value of each feature.
    seen: Vec<(f64, f64)>,
}

impl History {
    /// Without a run.
    pub fn new(confidence: Confidence) -> Self {
        let candidate = |predictor, scale| Candidate { predictor, residuals: Residuals::new(scale), waste: 0.0 };
        let candidates = (0..PREDICTORS)
            .flat_map(|predictor| [Scale::Ratio, Scale::Difference].map(|scale| candidate(predictor, scale)))
            .collect();
        Self { confidence, runs: Vec::new(), killed: Vec::new(), candidates, largest: 0.0, count: 0, seen: Vec::new() }
    }

    /// Adds a run; runs are learnt in the order in which they ended. A run that is not finite, or has another number of features than the
    /// first one, is ignored. Time: that of 512 runs, however many there are.
    pub fn learn(&mut self, run: Run) {
        let (Need::Exactly(bytes) | Need::MoreThan(bytes)) = run.need;
        let of_this_kind = self.runs.first().is_none_or(|first| first.features.len() == run.features.len());
        let numbers = run.features.iter().chain([&bytes, &run.seconds]);
        if !of_this_kind
            || run.features.is_empty()
            || numbers.into_iter().any(|number| !number.is_finite() || *number < 0.0)
        {
            return;
        }
        if let Need::MoreThan(limit) = run.need {
            self.killed.push((run.features, limit));
            return;
        }
        if self.runs.len() >= 2 {
            let predicted = predictions(self.recent(), &run.features);
            for candidate in &mut self.candidates {
                // A run of no time at all would teach nothing.
                candidate.learn(&predicted, bytes, run.seconds.max(1e-3), self.largest, self.confidence);
            }
        }
        self.largest = self.largest.max(bytes);
        self.count += 1;
        if self.seen.is_empty() {
            self.seen = run.features.iter().map(|&feature| (feature, feature)).collect();
        }
        for (seen, &feature) in self.seen.iter_mut().zip(&run.features) {
            *seen = (seen.0.min(feature), seen.1.max(feature));
        }
        if self.runs.len() == 2 * PREDICTOR_RUNS {
            self.runs.drain(..PREDICTOR_RUNS);
        }
        self.runs.push(Completed::new(run.features, bytes));
    }

    /// Completed runs.
    pub fn completed(&self) -> usize {
        self.count
    }

    /// The largest need of a completed run, in bytes; 0 if there is none.
    pub fn largest_bytes(&self) -> f64 {
        self.largest
    }

    /// What a run with these features needs. `requested` is what the user would ask for without a prediction, in bytes: the last retry.
    /// Time: that of 512 runs with 100 of them left out in turn, however many there are (`bench/predict` measures it).
    ///
    /// # Errors
    /// If fewer than [`MIN_RUNS`] runs were completed, or they have another number of features.
    pub fn ask(&self, features: &[f64], requested: Option<f64>) -> Result<Forecast, AskError> {
        if self.count < MIN_RUNS {
            return Err(AskError::TooFewRuns(self.count));
        }
        if features.len() != self.seen.len() || features.iter().any(|feature| !feature.is_finite()) {
            return Err(AskError::OtherFeatures);
        }
        let beyond = features.iter().zip(&self.seen).map(|(&feature, &(least, most))| {
            (feature.max(1.0) / most.max(1.0)).max(least.max(1.0) / feature.max(1.0))
        });
        let farthest = beyond.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        let mut forecast = match farthest.filter(|(_, ratio)| *ratio > EXTRAPOLATION_RATIO) {
            Some((main, _)) => self.extrapolate(features, main),
            None => self.interpolate(features),
        };
        // Errors to one side alone leave the interval beside the prediction, which may still be right.
        let (least, most) = forecast.interval_bytes;
        forecast.interval_bytes = (least.min(forecast.predicted_bytes), most.max(forecast.predicted_bytes));
        let killed = self.killed_below(features);
        if forecast.ask_bytes <= killed {
            forecast.ask_bytes = killed * ABOVE_KILLED;
            forecast.interval_bytes.1 = forecast.interval_bytes.1.max(forecast.ask_bytes);
            forecast.retry_bytes[0] = forecast.retry_bytes[0].max(forecast.ask_bytes * ABOVE_KILLED);
        }
        let retry = forecast.retry_bytes[0];
        let last = requested.unwrap_or(0.0).max(self.largest * 1.1);
        forecast.retry_bytes.push(if last > retry { last } else { retry * 2.0 });
        Ok(forecast)
    }

    fn interpolate(&self, features: &[f64]) -> Forecast {
        let predicted = predictions(self.recent(), features);
        let by_waste = |a: &&Candidate, b: &&Candidate| a.waste.total_cmp(&b.waste);
        let Some(best) = self.candidates.iter().min_by(by_waste) else { unreachable!("the candidates are fixed") };
        let (mut weights, mut ask, mut retry) = (0.0, 0.0, 0.0);
        for candidate in &self.candidates {
            let weight = (-WEIGHT_DECAY * (candidate.waste / best.waste.max(f64::MIN_POSITIVE) - 1.0)).exp();
            if weight > MIN_WEIGHT {
                let request = candidate.residuals.request(predicted[candidate.predictor], self.largest);
                weights += weight;
                ask += weight * request.0;
                retry += weight * request.1;
            }
        }
        let by_error =
            |a: &&Candidate, b: &&Candidate| a.residuals.relative_error().total_cmp(&b.residuals.relative_error());
        let exact = self.candidates.iter().min_by(by_error).map_or(0, |candidate| candidate.predictor);
        // The candidates that waste least may ask for less than the most exact one predicts.
        let ask = (ask / weights).max(predicted[exact] * ABOVE_EXACT).max(LEAST_ASK_BYTES);
        let retry = (retry / weights).max(ask * 1.05);
        let prediction = predicted[best.predictor];
        let covered = best.residuals.covered(prediction, ask);
        Forecast {
            predicted_bytes: predicted[exact],
            interval_bytes: Validated::of(Predictor::ALL[exact], self.recent())
                .interval(predicted[exact], self.confidence),
            ask_bytes: ask,
            retry_bytes: vec![retry],
            // One more run, that it would not cover, is assumed.
            probability: covered.0 as f64 / (covered.1 + 1) as f64,
            covered: Some(covered),
            predictor: Predictor::ALL[best.predictor],
            runs: self.count,
            seen: self.seen.clone(),
            extrapolation: features[0].max(1.0) / self.seen[0].1.max(1.0),
            waste_byte_seconds: best.residuals.expected_waste(prediction, ask, retry),
            largest_waste_byte_seconds: best.residuals.expected_waste(
                prediction,
                self.largest * 1.1,
                self.largest * 2.2,
            ),
        }
    }

    /// Beyond the range seen of the feature at `main`.
    fn extrapolate(&self, features: &[f64], main: usize) -> Forecast {
        let beyond = Extrapolation::of(self.recent(), features, main, self.confidence);
        let residuals = self
            .candidates
            .iter()
            .find(|candidate| Predictor::ALL[candidate.predictor] == beyond.predictor)
            .unwrap_or(&self.candidates[0]);
        let waste =
            |first: f64, retry: f64| residuals.residuals.expected_waste(beyond.predicted, first, first.max(retry));
        let ask = (beyond.ask.max(beyond.predicted) * ABOVE_EXACT).max(LEAST_ASK_BYTES);
        let retry = beyond.retry.max(ask * 1.05);
        let largest = self.largest.max(ask);
        Forecast {
            predicted_bytes: beyond.predicted,
            interval_bytes: beyond.interval,
            ask_bytes: ask,
            retry_bytes: vec![retry],
            probability: self.confidence.probability().min(self.count as f64 / (self.count + 1) as f64),
            covered: None,
            predictor: beyond.predictor,
            runs: self.count,
            seen: self.seen.clone(),
            extrapolation: features[0].max(1.0) / self.seen[0].1.max(1.0),
            waste_byte_seconds: waste(ask, retry),
            largest_waste_byte_seconds: waste(largest * 1.1, largest * 2.2),
        }
    }

    /// The largest limit at which a run was killed that had no larger features than these; 0 if there is none. A limit that a run with no
    /// smaller features stayed within says nothing.
    fn killed_below(&self, features: &[f64]) -> f64 {
        let no_larger = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a <= b);
        let stayed_within = |killed: &[f64], limit: f64| {
            self.runs.iter().any(|run| no_larger(killed, &run.features) && run.bytes <= limit)
        };
        let limits =
            self.killed.iter().filter(|(killed, limit)| no_larger(killed, features) && !stayed_within(killed, *limit));
        limits.map(|(_, limit)| *limit).fold(0.0, f64::max)
    }

    fn recent(&self) -> &[Completed] {
        &self.runs[self.runs.len().saturating_sub(PREDICTOR_RUNS)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(needs: impl IntoIterator<Item = (f64, f64)>) -> History {
        let mut history = History::new(Confidence::default());
        for (size, need) in needs {
            history.learn(Run { features: vec![size], need: Need::Exactly(need), seconds: 10.0 });
        }
        history
    }

    #[test]
    fn two_runs_are_too_few() {
        assert_eq!(history([(1e9, 1e9), (2e9, 2e9)]).ask(&[1e9], None), Err(AskError::TooFewRuns(2)));
    }

    #[test]
    fn killed_runs_are_no_needs() {
        let mut history = history([(1e9, 1e9), (2e9, 2e9)]);
        history.learn(Run { features: vec![2e9], need: Need::MoreThan(1e9), seconds: 10.0 });
        assert_eq!(history.ask(&[1e9], None), Err(AskError::TooFewRuns(2)));
    }

    #[test]
    fn asks_for_more_than_the_limit_of_a_smaller_run_that_was_killed() {
        let mut history = history((0..30).map(|run| (1e9 + 1e6 * f64::from(run), 1e9)));
        assert!(history.ask(&[2e9], None).unwrap().ask_bytes < 1.1e9);
        history.learn(Run { features: vec![1.5e9], need: Need::MoreThan(4e9), seconds: 10.0 });
        assert!(history.ask(&[2e9], None).unwrap().ask_bytes > 4e9);
        assert!(history.ask(&[1.02e9], None).unwrap().ask_bytes < 1.1e9);
    }

    #[test]
    fn says_how_far_it_extrapolates_and_widens_the_interval() {
        let history = history((1..=20).map(|run| {
            let size = 1e9 * f64::from(run);
            (size, 2.0 * size * if run % 2 == 0 { 1.02 } else { 0.98 })
        }));
        let (inside, outside) = (history.ask(&[15e9], None).unwrap(), history.ask(&[80e9], None).unwrap());
        assert_eq!((inside.extrapolation, outside.extrapolation), (0.75, 4.0));
        let width =
            |forecast: &Forecast| (forecast.interval_bytes.1 - forecast.interval_bytes.0) / forecast.predicted_bytes;
        assert!(width(&outside) > 1.5 * width(&inside), "{inside:?} {outside:?}");
        assert!(outside.ask_bytes > 160e9 && outside.ask_bytes < 200e9, "{outside:?}");
    }

    #[test]
    fn the_interval_of_a_predictor_that_errs_to_one_side_holds_the_prediction() {
        let forecast = history((0..20).map(|run| (1e9, 1e6 * f64::from(1 << run)))).ask(&[1e9], None).unwrap();
        let (least, most) = forecast.interval_bytes;
        assert!((least..=most).contains(&forecast.predicted_bytes), "{forecast:?}");
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut history = history([(1e9, 1e9), (f64::NAN, 1e9), (1e9, -1.0), (1e9, f64::INFINITY)]);
        history.learn(Run { features: vec![1.0, 2.0], need: Need::Exactly(1.0), seconds: 1.0 });
        history.learn(Run { features: Vec::new(), need: Need::Exactly(1.0), seconds: 1.0 });
        assert_eq!(history.completed(), 1);
    }

    #[test]
    fn runs_that_needed_nothing_have_an_answer() {
        let history = history((0..10).map(|run| (0.0, if run == 9 { 1e9 } else { 0.0 })));
        assert!(history.ask(&[0.0], None).unwrap().ask_bytes >= LEAST_ASK_BYTES);
    }

    #[test]
    fn asks_for_no_less_than_it_predicts_nor_than_a_program_starts_in() {
        let needs = [248.0, 244.0, 256.0, 244.0, 252.0].map(|pages| (40e3, pages * 4096.0 * 20.0));
        let forecast = history(needs).ask(&[40e3], None).unwrap();
        assert!(forecast.ask_bytes >= forecast.predicted_bytes, "{forecast:?}");
        let forecast = history((1..=5).map(|run| (1e3, 4096.0 * f64::from(run)))).ask(&[1e3], None).unwrap();
        assert_eq!(forecast.ask_bytes, LEAST_ASK_BYTES);
        assert!(forecast.retry_bytes[0] > LEAST_ASK_BYTES, "{forecast:?}");
    }

    #[test]
    fn the_last_retry_is_what_was_requested() {
        let history = history((1..=20).map(|run| (1e9 * f64::from(run), 2e9)));
        assert_eq!(history.ask(&[10e9], Some(64e9)).unwrap().retry_bytes.last(), Some(&64e9));
    }
}
