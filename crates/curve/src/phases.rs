//! Phases: whether a signal has stayed the same (IMT, "Fixed-Threshold Phase Detection").

use std::collections::VecDeque;

/// Result of a new sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Too few samples of this phase.
    Filling,
    /// The same as before.
    Stable {
        /// Distance of the smoothed signal from its mean, as a share of the mean.
        deviation: f64,
    },
    /// Changed: a new phase has begun, and earlier samples are discarded.
    Changed {
        /// The same.
        deviation: f64,
    },
}

impl Verdict {
    /// The deviation, if there is one.
    pub fn deviation(self) -> Option<f64> {
        match self {
            Verdict::Filling => None,
            Verdict::Stable { deviation } | Verdict::Changed { deviation } => Some(deviation),
        }
    }
}

/// Detects the phases of one signal: compares a moving average f of the last k samples with the mean of the last k
/// averages. O(k) per sample.
#[derive(Clone, Debug)]
pub struct Detector {
    width: usize,
    unit: f64,
    samples: VecDeque<f64>,
    averages: VecDeque<f64>,
}

impl Detector {
    /// A detector that averages `width` samples (k; at least 1). A deviation below `unit`, in the signal's own unit,
    /// does not count, as it is below the precision of the signal.
    pub fn new(width: usize, unit: f64) -> Detector {
        let width = width.max(1);
        Detector { width, unit, samples: VecDeque::with_capacity(width), averages: VecDeque::with_capacity(width) }
    }

    /// Takes a sample and judges it by a threshold (T): stable within [1 - T, 1 + T] of the mean.
    pub fn sample(&mut self, value: f64, threshold: f64) -> Verdict {
        push(&mut self.samples, value, self.width);
        if self.samples.len() < self.width {
            return Verdict::Filling;
        }
        let average = mean(&self.samples);
        push(&mut self.averages, average, self.width);
        // A single average is its own mean.
        if self.averages.len() < self.width {
            return Verdict::Filling;
        }
        let usual = mean(&self.averages);
        let off = (average - usual).abs();
        let deviation = if off == 0.0 { 0.0 } else { off / usual.abs() };
        if deviation <= threshold || off < self.unit {
            return Verdict::Stable { deviation };
        }
        self.forget();
        Verdict::Changed { deviation }
    }

    /// Discards the phase.
    pub fn forget(&mut self) {
        self.samples.clear();
        self.averages.clear();
    }
}

fn push(values: &mut VecDeque<f64>, value: f64, most: usize) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}

fn mean(values: &VecDeque<f64>) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(width: usize, values: &[f64]) -> Vec<char> {
        let mut detector = Detector::new(width, 0.0);
        let letter = |verdict| match verdict {
            Verdict::Filling => '.',
            Verdict::Stable { .. } => 's',
            Verdict::Changed { .. } => 'C',
        };
        values.iter().map(|value| letter(detector.sample(*value, 0.05))).collect()
    }

    #[test]
    fn a_step_is_a_change_and_the_new_phase_begins_from_nothing() {
        let found = verdicts(2, &[10.0, 10.1, 10.0, 20.0, 20.0, 20.1, 20.0]);
        assert_eq!(String::from_iter(found), "..sC..s");
    }

    #[test]
    fn noise_within_the_threshold_is_smoothed() {
        let noisy: Vec<f64> = (0..50).map(|i| 100.0 + if i % 2 == 0 { 8.0 } else { -8.0 }).collect();
        assert!(verdicts(2, &noisy)[2..].iter().all(|v| *v == 's'));
        assert!(verdicts(1, &noisy).iter().all(|v| *v == 's'), "one sample is its own mean");
    }

    #[test]
    fn deviations_below_the_unit_are_no_change() {
        let mut detector = Detector::new(2, 1e6);
        for value in [2e5, 2e5, 9e5, 3e5] {
            assert!(!matches!(detector.sample(value, 0.05), Verdict::Changed { .. }));
        }
        assert!(matches!(detector.sample(9e6, 0.05), Verdict::Changed { .. }));
    }

    #[test]
    fn a_signal_that_is_always_zero_is_stable() {
        assert_eq!(Detector::new(1, 0.0).sample(0.0, 0.05), Verdict::Stable { deviation: 0.0 });
    }
}
