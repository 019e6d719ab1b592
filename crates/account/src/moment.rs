//! Series read across: all lines at one moment.

use model::{Observation, names};

/// The job's figures at one moment, in bytes.
pub struct Moment<'a> {
    run: &'a Observation,
    t_ns: u64,
}

impl<'a> Moment<'a> {
    /// The moment at which `measure` is largest, among the samples of the series named; the first of equals.
    pub fn of_the_largest(
        run: &'a Observation,
        sampled_with: &str,
        measure: impl Fn(&Moment) -> Option<u64>,
    ) -> Option<(Moment<'a>, u64)> {
        let points = &run.job_series(sampled_with)?.points;
        let mut largest: Option<(u64, u64)> = None;
        for (t_ns, _) in points {
            if let Some(value) = measure(&Moment { run, t_ns: *t_ns })
                && largest.is_none_or(|(_, peak)| value > peak)
            {
                largest = Some((*t_ns, value));
            }
        }
        largest.map(|(t_ns, value)| (Moment { run, t_ns }, value))
    }

    /// The value in force.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.run.job_series(name)?.at(self.t_ns).map(|v| v.max(0.0) as u64)
    }

    /// The kernel's line: what the kernel names as such, and whatever else is charged beyond heap, file and shared
    /// (per-processor stocks, objects without a line of their own).
    pub fn kernel(&self) -> Option<u64> {
        let rest = || {
            let others = self.get(names::HEAP)? + self.get(names::FILE)? + self.get(names::SHARED)?;
            Some(self.get(names::CHARGE)?.saturating_sub(others))
        };
        self.get(names::KERNEL).max(rest())
    }
}

/// The largest value of one series, in bytes.
pub fn peak(run: &Observation, name: &str) -> Option<u64> {
    run.job_series(name)?.peak().map(|v| v.max(0.0) as u64)
}
