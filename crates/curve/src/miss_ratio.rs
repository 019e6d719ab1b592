//! The share of references that miss, by cache size.

use crate::miss_rate::MissRateCurve;
use crate::staircase::Staircase;

/// A miss ratio curve: for each size of an LRU cache, the share of all references that miss. First references to an
/// item miss at any size. Sizes are in the engine's unit: numbers of items, or bytes.
///
/// Not to be confused with [`MissRateCurve`], which counts misses per second and has no number of references.
/// Converting one to the other needs a measured time.
///
/// ```compile_fail
/// fn rate(_: curve::MissRateCurve) {}
/// fn wants_no_ratio(ratio: curve::MissRatioCurve) { rate(ratio) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MissRatioCurve {
    references: u64,
    distinct: u64,
    misses: Staircase,
}

impl MissRatioCurve {
    /// `references` to `distinct` items. `needs`: (size that avoids a miss, references), sizes rising. `always`:
    /// references that miss at any size. Takes O(n) for n sizes, and 16 bytes each.
    pub fn new(
        references: u64,
        distinct: u64,
        needs: impl IntoIterator<Item = (u64, f64)>,
        always: f64,
    ) -> MissRatioCurve {
        MissRatioCurve { references, distinct, misses: Staircase::new(needs, always) }
    }

    /// Number of references, including those that sampling left out.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Number of distinct items; estimated if the engine samples.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The share of references that miss in a cache of this size, 0 to 1. Takes O(log n).
    pub fn miss_ratio_at(&self, size: u64) -> f64 {
        if size == 0 { 1.0 } else { self.ratio(self.misses.at(size)) }
    }

    /// The working set: the smallest size at which the miss ratio is at most `tolerance`. `None`: first references
    /// alone exceed that. Takes O(log n).
    pub fn working_set(&self, tolerance: f64) -> Option<u64> {
        self.misses.first_within(tolerance * self.references as f64)
    }

    /// The smallest size whose misses beyond the first references are at most `tolerance` times the first references. Takes O(log n).
    pub fn working_set_beyond_first(&self, tolerance: f64) -> Option<u64> {
        let first = self.misses.at(u64::MAX);
        self.misses.first_within(first * (1.0 + tolerance))
    }

    /// The largest size at which the curve still falls; 0 if nothing is referenced twice.
    pub fn largest_size(&self) -> u64 {
        self.misses.last_step()
    }

    /// `points` sizes, evenly up to the largest that matters; fewer if that is smaller.
    pub fn even_sizes(&self, points: u64) -> Vec<u64> {
        let largest = self.largest_size().max(1);
        let mut sizes: Vec<u64> =
            (1..=points as u128).map(|i| (largest as u128 * i).div_ceil(points as u128) as u64).collect();
        sizes.dedup();
        sizes
    }

    /// The curve as points for drawing, sizes rising: straight lines between them are off by a thousandth at most, and
    /// cliffs are vertical.
    pub fn outline(&self) -> Vec<(u64, f64)> {
        self.misses.outline().into_iter().map(|(size, misses)| (size, self.ratio(misses))).collect()
    }

    /// Mean absolute difference of the miss ratios at `points` sizes, evenly up to the larger of the curves' largest
    /// sizes.
    pub fn mean_absolute_error(&self, other: &MissRatioCurve, points: u64) -> f64 {
        let larger = if self.largest_size() < other.largest_size() { other } else { self };
        let sizes = larger.even_sizes(points);
        let off = |size: &u64| (self.miss_ratio_at(*size) - other.miss_ratio_at(*size)).abs();
        sizes.iter().map(off).sum::<f64>() / sizes.len().max(1) as f64
    }

    /// Misses per second, for references that took this many seconds.
    pub fn over(self, seconds: f64) -> MissRateCurve {
        MissRateCurve::of(self.misses, seconds)
    }

    /// Capped at 1, because a sample may hold more than its share of the references.
    fn ratio(&self, misses: f64) -> f64 {
        if self.references == 0 { 0.0 } else { (misses / self.references as f64).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> MissRatioCurve {
        MissRatioCurve::new(10, 2, [(1, 4.0), (2, 4.0)], 2.0)
    }

    #[test]
    fn working_set_is_the_least_size_within_tolerance() {
        assert_eq!(
            [0.6, 0.59, 0.2, 0.19].map(|tolerance| curve().working_set(tolerance)),
            [Some(1), Some(2), Some(2), None]
        );
    }

    #[test]
    fn tolerance_may_be_relative_to_first_references() {
        // 2 first references; 4 more misses below size 2, 4 more below size 1.
        assert_eq!(
            [0.0, 1.9, 2.0, 4.0].map(|share| curve().working_set_beyond_first(share)),
            [Some(2), Some(2), Some(1), Some(1)]
        );
    }

    #[test]
    fn a_rate_needs_a_time() {
        let rate = curve().over(4.0);
        assert_eq!([1, 2].map(|size| rate.misses_per_second_at(size)), [1.5, 0.5]);
    }

    #[test]
    fn even_sizes_end_with_the_largest_and_never_repeat() {
        let of = |largest| MissRatioCurve::new(1, 1, [(largest, 1.0)], 0.0);
        assert_eq!(of(1000).even_sizes(4), [250, 500, 750, 1000]);
        assert_eq!(of(3).even_sizes(20), [1, 2, 3]);
        assert_eq!(MissRatioCurve::new(1, 1, [], 1.0).even_sizes(20), [1]);
        assert_eq!(of(u64::MAX).even_sizes(2).last(), Some(&u64::MAX));
    }

    #[test]
    fn curves_are_compared_up_to_the_larger_size() {
        let cliff = MissRatioCurve::new(10, 2, [(100, 10.0)], 0.0);
        let none = MissRatioCurve::new(10, 2, [(50, 10.0)], 0.0);
        assert_eq!(cliff.mean_absolute_error(&none, 100), 0.5);
        assert_eq!(none.mean_absolute_error(&cliff, 100), 0.5);
    }
}
