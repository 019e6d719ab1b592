//! A predictor's past errors, and the offset that would have wasted least.

use std::collections::VecDeque;

use crate::confidence::{Confidence, student_quantile};

/// Errors older than this many runs are forgotten.
pub const WINDOW: usize = 512;
/// Beyond the chosen offset: this share of the range of the errors, divided by the root of their number.
const MARGIN: f64 = 0.02;

/// Requests are so much more: where predictions are exact, rounding must not make them too little.
pub const ABOVE_EXACT: f64 = 1.001;

/// How an error is measured, and an offset applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Need ÷ prediction.
    Ratio,
    /// Need − prediction, in bytes.
    Difference,
}

impl Scale {
    pub fn error(self, prediction: f64, need: f64) -> f64 {
        match self {
            Self::Ratio => need / prediction.max(1.0),
            Self::Difference => need - prediction,
        }
    }

    pub fn apply(self, prediction: f64, offset: f64) -> f64 {
        match self {
            Self::Ratio => prediction * offset,
            Self::Difference => prediction + offset,
        }
    }
}

/// One error, and what was predicted for how long a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Error {
    error: f64,
    prediction: f64,
    seconds: f64,
}

/// What to add to a prediction, or to multiply it by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offsets {
    pub first: f64,
    pub retry: f64,
}

/// Past errors of one predictor on one scale, and the offsets that follow from them.
#[derive(Clone, Debug)]
pub struct Residuals {
    scale: Scale,
    in_time: VecDeque<Error>,
    sorted: Vec<Error>,
    offsets: Option<Offsets>,
}

impl Residuals {
    pub fn new(scale: Scale) -> Self {
        Self { scale, in_time: VecDeque::new(), sorted: Vec::new(), offsets: None }
    }

    /// Time: the window's length.
    pub fn learn(&mut self, prediction: f64, need: f64, seconds: f64, confidence: Confidence) {
        let error = Error { error: self.scale.error(prediction, need), prediction, seconds };
        if self.in_time.len() == WINDOW {
            if let Some(oldest) = self.in_time.pop_front() {
                let at = self.place(oldest.error);
                self.sorted.remove(at);
            }
        }
        self.sorted.insert(self.place(error.error), error);
        self.in_time.push_back(error);
        self.offsets = Some(self.least_waste(confidence));
    }

    fn place(&self, error: f64) -> usize {
        self.sorted.partition_point(|other| other.error < error)
    }

    /// What to ask for, and what to ask for if that is too little, in bytes.
    pub fn request(&self, prediction: f64, largest: f64) -> (f64, f64) {
        let Some(offsets) = self.offsets else {
            let first = (prediction * 1.3).max(1.0);
            return (first, (first * 1.5).max(largest * 1.1));
        };
        let first = self.scale.apply(prediction, offsets.first).max(prediction * 0.1).max(1.0) * ABOVE_EXACT;
        (first, self.scale.apply(prediction, offsets.retry).max(first * 1.05))
    }

    /// How many past errors this request would have covered, and how many there are.
    pub fn covered(&self, prediction: f64, request: f64) -> (usize, usize) {
        let error = self.scale.error(prediction, request);
        (self.sorted.partition_point(|past| past.error <= error), self.sorted.len())
    }

    /// Root mean square of the later half of the errors, each as the logarithm of need ÷ prediction.
    pub fn relative_error(&self) -> f64 {
        let later = self.in_time.iter().skip(self.in_time.len() / 2);
        let square = |error: &Error| {
            let need = self.scale.apply(error.prediction, error.error);
            (need.max(1.0) / error.prediction.max(1.0)).ln().powi(2)
        };
        (later.clone().map(square).sum::<f64>() / later.len().max(1) as f64).sqrt()
    }

    /// Mean waste in byte-seconds of a request with its retry, had each past error happened to this prediction.
    pub fn expected_waste(&self, prediction: f64, first: f64, retry: f64) -> f64 {
        let waste = |past: &Error| {
            let need = self.scale.apply(prediction, past.error);
            past.seconds * if need <= first { first - need } else { first + (retry - need).max(0.0) }
        };
        self.sorted.iter().map(waste).sum::<f64>() / self.sorted.len().max(1) as f64
    }

    /// The error that wastes least of all that suffice with the confidence. Time: the window's length.
    fn least_waste(&self, confidence: Confidence) -> Offsets {
        let errors = &self.sorted;
        let (least, most) = (errors[0].error, errors[errors.len() - 1].error);
        // Just above the largest error, for the largest may come again.
        let retry = most + (most - least) * MARGIN + most.abs() * 1e-3;
        // Byte-seconds for each unit of the error.
        let weight = |error: &Error| error.seconds * if self.scale == Scale::Ratio { error.prediction } else { 1.0 };
        let weights: f64 = errors.iter().map(weight).sum();
        let weighted: f64 = errors.iter().map(|error| weight(error) * error.error).sum();
        let predicted: f64 = errors.iter().map(|error| error.prediction * error.seconds).sum();
        let (mut below, mut weighted_below, mut predicted_below) = (0.0, 0.0, 0.0);
        let mut best = (f64::INFINITY, most);
        for error in errors {
            below += weight(error);
            weighted_below += weight(error) * error.error;
            predicted_below += error.prediction * error.seconds;
            let offset = error.error;
            let (above, weighted_above) = (weights - below, weighted - weighted_below);
            let unused = offset * below - weighted_below;
            let failed = match self.scale {
                Scale::Ratio => offset * above,
                Scale::Difference => predicted - predicted_below + offset * above,
            };
            let cost = unused + failed + (retry * above - weighted_above).max(0.0);
            if cost < best.0 {
                best = (cost, offset);
            }
        }
        let margin = MARGIN * (most - least) / (errors.len() as f64).sqrt();
        Offsets { first: best.1.max(self.sufficient(confidence)) + margin, retry }
    }

    /// The error that the next one stays below with the confidence. The largest of n errors is exceeded once in n + 1 times; with fewer
    /// errors than that takes, they are taken for normally distributed.
    fn sufficient(&self, confidence: Confidence) -> f64 {
        let count = self.sorted.len();
        let rank = (confidence.probability() * (count + 1) as f64).ceil() as usize;
        if rank <= count {
            return self.sorted[rank - 1].error;
        }
        let most = self.sorted[count - 1].error;
        if count < 3 {
            return most;
        }
        let mean = self.sorted.iter().map(|error| error.error).sum::<f64>() / count as f64;
        let square: f64 = self.sorted.iter().map(|error| (error.error - mean).powi(2)).sum();
        let deviation = (square / (count - 1) as f64 * (1.0 + 1.0 / count as f64)).sqrt();
        most.max(mean + student_quantile(confidence.probability(), count - 1) * deviation)
    }
}
