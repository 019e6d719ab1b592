//! What a program loses by misses, at each size of memory.

use model::MissPoint;

/// More than this share of its time waiting is not told apart from it: the little that is left is measured too badly.
const MOST_STALLED: f64 = 0.95;

/// How much a program is slowed down, by memory size.
///
/// Misses per second cannot be compared between programs: one that waits for memory misses no faster than the swap device
/// answers, and one that has all it needs would miss as fast as it runs. So both are related to a second of work: with r(m) misses per
/// second at the present pace, a share s of whose time is waiting, and c seconds a miss, a second of work at size m takes 1 + c * r(m) / (1 - s)
/// seconds. Its logarithm is what is lost: the least sum of it is the best geometric mean of the programs' speeds, the overall
/// speed-up of Li and others.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Size, and what is lost from there to the next; sizes rise and losses fall.
    steps: Vec<(u64, f64)>,
}

impl Demand {
    /// Of a curve that was seen while the program waited for memory `stalled` of the time; a miss takes it `miss_seconds`.
    pub fn of(misses: &[MissPoint], miss_seconds: f64, stalled: f64) -> Demand {
        let works = 1.0 - stalled.clamp(0.0, MOST_STALLED);
        let mut lost = f64::INFINITY;
        let mut steps: Vec<(u64, f64)> = Vec::with_capacity(misses.len());
        for point in misses {
            lost = (miss_seconds * point.misses_per_second.max(0.0) / works).ln_1p().min(lost);
            steps.push((point.bytes, lost));
        }
        Demand { steps }
    }

    /// What is lost with so much memory: the logarithm of the slow-down.
    pub fn lost_with(&self, bytes: u64) -> f64 {
        let after = self.steps.partition_point(|(size, _)| *size <= bytes);
        self.steps.get(after.saturating_sub(1)).map_or(0.0, |step| step.1)
    }

    /// What it takes as long with so much memory as it would without misses, times this.
    pub fn slow_down_with(&self, bytes: u64) -> f64 {
        self.lost_with(bytes).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_waits_most_of_its_time_is_told_from_one_that_misses_as_rarely() {
        let curve =
            [MissPoint { bytes: 0, misses_per_second: 1000.0 }, MissPoint { bytes: 100, misses_per_second: 0.0 }];
        let idle = Demand::of(&curve, 1e-4, 0.0);
        let waits = Demand::of(&curve, 1e-4, 0.8);
        assert!((idle.slow_down_with(99) - 1.1).abs() < 1e-9 && (waits.slow_down_with(99) - 1.5).abs() < 1e-9);
        assert_eq!((idle.lost_with(100), waits.lost_with(u64::MAX)), (0.0, 0.0));
    }

    #[test]
    fn nothing_known_is_nothing_lost() {
        assert_eq!(Demand::of(&[], 1e-4, 1.0).lost_with(7), 0.0);
    }
}
