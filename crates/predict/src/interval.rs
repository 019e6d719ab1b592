//! Intervals from the errors that a predictor makes on each run when it is fitted to all others (the jackknife+, simplified).

use crate::confidence::{Confidence, student_quantile};
use crate::predictor::Predictor;
use crate::residuals::Scale;
use crate::run::Completed;

/// Runs of which one is left out at a time: the last so many.
const MAX_LEFT_OUT: usize = 100;

/// A predictor with its errors on runs that it did not know.
pub struct Validated {
    /// (prediction, need), bytes.
    pairs: Vec<(f64, f64)>,
}

impl Validated {
    /// There are at least two runs. Time: runs².
    pub fn of(predictor: Predictor, runs: &[Completed]) -> Self {
        let mut others = runs[..runs.len() - 1].to_vec();
        let mut pairs = Vec::new();
        for index in (runs.len().saturating_sub(MAX_LEFT_OUT)..runs.len()).rev() {
            pairs.push((predictor.predict(&others, &runs[index].features), runs[index].bytes));
            if index > 0 {
                others[index - 1] = runs[index].clone();
            }
        }
        Self { pairs }
    }

    /// The interval about a prediction, on the scale on which it is the narrower over past runs.
    pub fn interval(&self, prediction: f64, confidence: Confidence) -> (f64, f64) {
        let mean = self.pairs.iter().map(|pair| pair.0).sum::<f64>() / self.pairs.len() as f64;
        let [ratio, difference] = [Scale::Ratio, Scale::Difference].map(|scale| {
            let errors = self.pairs.iter().map(|&(prediction, need)| scale.error(prediction, need)).collect();
            (scale, bounds(errors, confidence))
        });
        let (scale, bounds) =
            if (ratio.1.1 - ratio.1.0) * mean < difference.1.1 - difference.1.0 { ratio } else { difference };
        (scale.apply(prediction, bounds.0).max(0.0), scale.apply(prediction, bounds.1))
    }
}

/// Errors between which the next one lies with the confidence. Of n errors, one in n + 1 is beyond each end.
fn bounds(mut errors: Vec<f64>, confidence: Confidence) -> (f64, f64) {
    errors.sort_unstable_by(f64::total_cmp);
    let count = errors.len();
    let beyond = (1.0 - confidence.probability()) / 2.0 * (count + 1) as f64;
    if beyond >= 1.0 {
        let at = |rank: f64| {
            let low = rank.floor() as usize;
            let share = rank - rank.floor();
            errors[low] * (1.0 - share) + errors[(low + 1).min(count - 1)] * share
        };
        return (at(beyond - 1.0), at(count as f64 - beyond));
    }
    let mean = errors.iter().sum::<f64>() / count as f64;
    let square: f64 = errors.iter().map(|error| (error - mean).powi(2)).sum();
    // An error of a run left out holds the uncertainty of the fit already.
    let deviation = (square / (count - 1).max(1) as f64).sqrt();
    let half = student_quantile((1.0 + confidence.probability()) / 2.0, count - 1) * deviation;
    (mean - half, mean + half)
}
