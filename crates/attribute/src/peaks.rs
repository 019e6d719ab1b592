//! The largest value of each line.

use model::KindBytes;

use crate::memory::{Lines, Measure};
use crate::replay::Moment;

/// The peak of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peak {
    pub bytes: u64,
    pub kinds: KindBytes,
    pub t_ns: u64,
}

/// The peaks of all lines by one measure.
pub struct Peaks {
    measure: Measure,
    peaks: Vec<Peak>,
}

impl Peaks {
    pub fn new(measure: Measure, lines: &Lines) -> Peaks {
        Peaks { measure, peaks: vec![Peak::default(); lines.total() + 1] }
    }

    pub fn see(&mut self, moment: &Moment) {
        for (line, row) in moment.rows.iter().enumerate() {
            let kinds = self.measure.by_kind(row);
            let bytes = kinds.iter().sum();
            if bytes > self.peaks[line].bytes {
                self.peaks[line] = Peak { bytes, kinds: KindBytes::of(kinds), t_ns: moment.t_ns };
            }
        }
    }

    pub fn of(&self, line: usize) -> Peak {
        self.peaks[line]
    }
}
