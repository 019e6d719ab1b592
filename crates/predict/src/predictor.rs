//! The predictors.

use crate::least_squares::Fit;
use crate::run::{Completed, logs};

/// A way to predict the need of a run from earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Predictor {
    /// The largest need so far.
    Largest,
    /// The median need.
    Median,
    /// Least squares on the features.
    Linear,
    /// The same with no negative slope or intercept.
    NonNegativeLinear,
    /// Least squares on logarithms of features and need.
    Power,
    /// The mean of the three runs with the most similar features.
    Nearest3,
    /// The largest of the eight runs with the most similar features.
    LargestOfNearest8,
    /// The mean of the last eight runs.
    Last8,
    /// Least squares on the twenty runs with the most similar features, nearer ones weighing more.
    LocalLinear,
    /// In proportion to the size of the input: beyond the sizes seen, where all runs had one.
    Proportional,
    /// The largest need, which no longer grows with the input: beyond the sizes seen.
    Plateau,
}

/// How many predictors learn each run.
pub const PREDICTORS: usize = 9;

impl Predictor {
    /// Those that learn each run, in the order of [`predictions`].
    pub const ALL: [Self; PREDICTORS] = [
        Self::Largest,
        Self::Median,
        Self::Linear,
        Self::NonNegativeLinear,
        Self::Power,
        Self::Nearest3,
        Self::LargestOfNearest8,
        Self::Last8,
        Self::LocalLinear,
    ];

    /// Those that say something of inputs beyond those seen.
    pub const TRENDS: [Self; 4] = [Self::Largest, Self::Linear, Self::NonNegativeLinear, Self::Power];

    /// Its name in plain words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Largest => "largest so far",
            Self::Median => "median",
            Self::Linear => "linear",
            Self::NonNegativeLinear => "non-negative linear",
            Self::Power => "power law",
            Self::Nearest3 => "3 nearest",
            Self::LargestOfNearest8 => "largest of 8 nearest",
            Self::Last8 => "last 8",
            Self::LocalLinear => "local linear",
            Self::Proportional => "in proportion to the input",
            Self::Plateau => "a plateau",
        }
    }

    /// What it predicts, in bytes, from runs in the order of time; there is at least one. Time: runs × features².
    pub fn predict(self, runs: &[Completed], features: &[f64]) -> f64 {
        match self {
            Self::Nearest3 | Self::LargestOfNearest8 | Self::LocalLinear => {
                self.of_near(&Near::of(runs, features), features)
            }
            _ => self.of_all(&Range::of(runs), runs, features),
        }
    }

    fn of_all(self, range: &Range, runs: &[Completed], features: &[f64]) -> f64 {
        match self {
            Self::Median => {
                let mut bytes: Vec<f64> = runs.iter().map(|run| run.bytes).collect();
                let middle = bytes.len() / 2;
                *bytes.select_nth_unstable_by(middle, f64::total_cmp).1
            }
            Self::Linear => range.sane(linear(runs).plane().at(features)),
            Self::NonNegativeLinear => match linear(runs).non_negative() {
                Some(plane) => plane.at(features),
                None => through_the_origin(runs, features),
            },
            Self::Power => {
                let points = runs.iter().map(|run| (1.0, &run.logs[..], run.log_bytes));
                range.sane(Fit::of(points, features.len()).plane().at(&logs(features)).exp())
            }
            Self::Proportional => through_the_origin(runs, features),
            Self::Last8 => {
                let last = &runs[runs.len().saturating_sub(8)..];
                last.iter().map(|run| run.bytes).sum::<f64>() / last.len() as f64
            }
            _ => range.most,
        }
    }

    fn of_near(self, near: &Near, features: &[f64]) -> f64 {
        match self {
            Self::Nearest3 => {
                let nearest = &near.runs[..near.runs.len().min(3)];
                nearest.iter().map(|(_, run)| run.bytes).sum::<f64>() / nearest.len() as f64
            }
            Self::LocalLinear => {
                let farthest = near.runs.last().map_or(0.0, |(distance, _)| *distance).max(1e-9) * 1.0001;
                let points = near.runs.iter().map(|(distance, run)| {
                    let tricube = (1.0 - (distance / farthest).powi(3)).max(0.01).powi(3);
                    (tricube, &run.features[..], run.bytes)
                });
                Fit::of(points, features.len()).plane().at(features).clamp(near.least / 2.0, near.most * 2.0)
            }
            _ => near.runs.iter().take(8).map(|(_, run)| run.bytes).fold(0.0, f64::max),
        }
    }
}

/// What each predictor predicts, in the order of [`Predictor::ALL`].
pub fn predictions(runs: &[Completed], features: &[f64]) -> [f64; PREDICTORS] {
    let (near, range) = (Near::of(runs, features), Range::of(runs));
    Predictor::ALL.map(|predictor| match predictor {
        Predictor::Nearest3 | Predictor::LargestOfNearest8 | Predictor::LocalLinear => {
            predictor.of_near(&near, features)
        }
        _ => predictor.of_all(&range, runs, features),
    })
}

fn linear(runs: &[Completed]) -> Fit {
    let count = runs.first().map_or(0, |run| run.features.len());
    Fit::of(runs.iter().map(|run| (1.0, &run.features[..], run.bytes)), count)
}

/// A plane needs a negative intercept: in proportion to the first feature, the size of the input.
fn through_the_origin(runs: &[Completed], features: &[f64]) -> f64 {
    let product: f64 = runs.iter().map(|run| run.features[0] * run.bytes).sum();
    let square: f64 = runs.iter().map(|run| run.features[0] * run.features[0]).sum();
    product / square.max(1.0) * features[0]
}

/// The least and the largest need.
struct Range {
    least: f64,
    most: f64,
}

impl Range {
    fn of(runs: &[Completed]) -> Self {
        let bytes = runs.iter().map(|run| run.bytes);
        Self { least: bytes.clone().fold(f64::INFINITY, f64::min), most: bytes.fold(0.0, f64::max) }
    }

    /// A trend may lead to nothing or to infinity, a need does not.
    fn sane(&self, bytes: f64) -> f64 {
        if bytes.is_finite() { bytes.max(self.least / 4.0) } else { self.most }
    }
}

/// The twenty runs with the most similar features, the most similar first; of equal ones the latest.
struct Near<'a> {
    runs: Vec<(f64, &'a Completed)>,
    least: f64,
    most: f64,
}

impl<'a> Near<'a> {
    fn of(runs: &'a [Completed], features: &[f64]) -> Self {
        let logs = logs(features);
        let scales: Vec<f64> =
            if logs.len() == 1 { vec![1.0] } else { (0..logs.len()).map(|feature| scale(runs, feature)).collect() };
        let distance = |run: &Completed| -> f64 {
            run.logs.iter().zip(&logs).zip(&scales).map(|((past, now), scale)| (past - now).abs() * scale).sum()
        };
        let mut near: Vec<(f64, usize)> =
            runs.iter().enumerate().map(|(index, run)| (distance(run), runs.len() - 1 - index)).collect();
        let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if near.len() > 20 {
            near.select_nth_unstable_by(19, order);
            near.truncate(20);
        }
        near.sort_unstable_by(order);
        let range = Range::of(runs);
        let runs = near.into_iter().map(|(distance, age)| (distance, &runs[runs.len() - 1 - age])).collect();
        Self { runs, least: range.least, most: range.most }
    }
}

/// Makes features comparable: the inverse of how far the feature's logarithm ranges. 0 for one that is always the same.
fn scale(runs: &[Completed], feature: usize) -> f64 {
    let values = runs.iter().map(|run| run.logs[feature]);
    let range = values.clone().fold(f64::NEG_INFINITY, f64::max) - values.fold(f64::INFINITY, f64::min);
    if range > 1e-9 { 1.0 / range } else { 0.0 }
}
