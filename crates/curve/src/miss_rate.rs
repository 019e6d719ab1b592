//! Misses per second, by memory size.

use crate::staircase::Staircase;

/// A miss rate curve: misses per second at each size. It is what can be measured of an unmodified process, whose
/// references nobody counts; so it cannot be converted to a [`MissRatioCurve`](crate::MissRatioCurve).
#[derive(Clone, Debug, PartialEq)]
pub struct MissRateCurve {
    seconds: f64,
    misses: Staircase,
}

impl MissRateCurve {
    /// `needs`: (size that avoids them, misses), sizes rising, measured over `seconds` (more than 0). `always`: misses
    /// at any size. Takes O(n).
    pub fn new(seconds: f64, needs: impl IntoIterator<Item = (u64, f64)>, always: f64) -> MissRateCurve {
        MissRateCurve::of(Staircase::new(needs, always), seconds)
    }

    pub(crate) fn of(misses: Staircase, seconds: f64) -> MissRateCurve {
        MissRateCurve { seconds, misses }
    }

    /// The measured time.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Misses per second at a size. Takes O(log n).
    pub fn misses_per_second_at(&self, size: u64) -> f64 {
        self.misses.at(size) / self.seconds
    }

    /// The working set: the smallest size with at most this many misses per second; `None` if there is none. Takes
    /// O(log n).
    pub fn working_set(&self, misses_per_second: f64) -> Option<u64> {
        self.misses.first_within(misses_per_second * self.seconds)
    }

    /// The largest size at which the curve still falls.
    pub fn largest_size(&self) -> u64 {
        self.misses.last_step()
    }

    /// The curve as points for drawing: (size, misses per second), sizes rising.
    pub fn outline(&self) -> Vec<(u64, f64)> {
        self.misses.outline().into_iter().map(|(size, misses)| (size, misses / self.seconds)).collect()
    }
}
