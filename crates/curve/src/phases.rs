//! Phases: whether a signal has stayed what it was (IMT, "Fixed-Threshold Phase Detection").

use std::collections::VecDeque;

/// What a new sample says of a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Too few samples of this phase to tell.
    Filling,
    /// As before.
    Stable {
        /// How far the smoothed signal is from its mean, as a share of the mean.
        deviation: f64,
    },
    /// Not as before: a new phase has begun, and what came before is forgotten.
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

/// Tells the phases of one signal: a moving average f of the last k samples is compared with the mean of the last k averages.
/// O(k) a sample.
#[derive(Clone, Debug)]
pub struct Detector {
    width: usize,
    unit: f64,
    samples: VecDeque<f64>,
    averages: VecDeque<f64>,
}

impl Detector {
    /// A detector that averages `width` samples (k; at least 1). A deviation below `unit`, in the signal's own unit, is none: what is
    /// tracked by the megabyte cannot be told better.
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
        // An average alone is its own mean.
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

    /// Forgets the phase.
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
    fn what_is_below_the_unit_is_no_change() {
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
