//! Misses per second, by memory size.

use crate::staircase::Staircase;

/// A miss rate curve: at each size, misses per second. It is what an unmodified process shows, whose references nobody
/// counts; so there is no way from it to a [`MissRatioCurve`](crate::MissRatioCurve).
#[derive(Clone, Debug, PartialEq)]
pub struct MissRateCurve {
    seconds: f64,
    misses: Staircase,
}

impl MissRateCurve {
    /// From what was seen in so many seconds (more than 0): how many misses need which size (rising) not to be, and how many
    /// are at any size. Takes O(n).
    pub fn new(seconds: f64, needs: impl IntoIterator<Item = (u64, f64)>, always: f64) -> MissRateCurve {
        MissRateCurve::of(Staircase::new(needs, always), seconds)
    }

    pub(crate) fn of(misses: Staircase, seconds: f64) -> MissRateCurve {
        MissRateCurve { seconds, misses }
    }

    /// The time it was seen in.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Misses per second at a size. Takes O(log n).
    pub fn misses_per_second_at(&self, size: u64) -> f64 {
        self.misses.at(size) / self.seconds
    }

    /// The working set: the least size at which there are at most so many misses per second; `None` if no size does. Takes
    /// O(log n).
    pub fn working_set(&self, misses_per_second: f64) -> Option<u64> {
        self.misses.first_within(misses_per_second * self.seconds)
    }

    /// The least size beyond which nothing is gained.
    pub fn largest_size(&self) -> u64 {
        self.misses.last_step()
    }

    /// The curve as points for drawing: (size, misses per second), sizes rising.
    pub fn outline(&self) -> Vec<(u64, f64)> {
        self.misses.outline().into_iter().map(|(size, misses)| (size, misses / self.seconds)).collect()
    }
}
