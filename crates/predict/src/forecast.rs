//! The answer.

use crate::predictor::Predictor;

/// What the next run needs, and what to ask for. Sizes are bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The most likely need.
    pub predicted_bytes: f64,
    /// The interval that holds the need with the confidence, and the most likely need.
    pub interval_bytes: (f64, f64),
    /// What to ask for at first.
    pub ask_bytes: f64,
    /// What to ask for when that was too little: each more than the one before.
    pub retry_bytes: Vec<f64>,
    /// How likely `ask_bytes` suffices, by the errors of past predictions. Few runs cannot show a high probability: n errors at most
    /// n ÷ (n + 1).
    pub probability: f64,
    /// For how many of the past runs that were predicted from those before them `ask_bytes` would have been enough, and how many there
    /// are; `None`: the run is so far beyond them that only a trend was asked.
    pub covered: Option<(usize, usize)>,
    /// The predictor with the most weight in the answer.
    pub predictor: Predictor,
    /// Completed runs that the answer is from.
    pub runs: usize,
    /// The smallest and the largest value of each feature in those runs.
    pub seen: Vec<(f64, f64)>,
    /// The first feature ÷ its largest value seen.
    pub extrapolation: f64,
    /// Expected waste of asking for `ask_bytes`, then the retries, in byte-seconds.
    pub waste_byte_seconds: f64,
    /// The same for asking at once for the largest need seen or predicted.
    pub largest_waste_byte_seconds: f64,
}
