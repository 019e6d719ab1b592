//! Weights by needed size: exact up to a chosen size, rounded up slightly beyond it.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Sizes up to 2048 are exact; beyond, precise to 1 part in 1024.
const FINENESS: u32 = 10;

/// Weights by needed size. Adding takes O(1); memory is bounded: 440 KiB with 8 bytes each.
#[derive(Default)]
pub struct Histogram<W = u64> {
    buckets: Vec<W>,
}

impl<W: Copy + Default + PartialEq + AddAssign> Histogram<W> {
    /// Adds `weight` that needs a size (at least 1).
    #[inline]
    pub fn add(&mut self, size: u64, weight: W) {
        *at(&mut self.buckets, bucket(size, FINENESS)) += weight;
    }

    /// Rising: (largest size that is too small, smallest size that is enough, weight that needs it), at the histogram's
    /// precision.
    pub fn needs(&self) -> impl Iterator<Item = (u64, u64, W)> {
        let used = self.buckets.iter().enumerate().filter(|(_, weight)| **weight != W::default());
        used.map(|(bucket, weight)| {
            let (too_little, enough) = bounds(bucket, FINENESS);
            (too_little, enough, *weight)
        })
    }
}

/// A histogram of unit weights with a chosen precision. Adding takes O(1) and touches only 2 bytes per size, so that
/// more of them stay in the caches. Memory grows with the largest size.
pub struct Counts {
    fineness: u32,
    buckets: Vec<u16>,
    /// Overflow of the buckets.
    carried: BTreeMap<usize, u64>,
}

impl Counts {
    /// Sizes up to 2^(fineness + 1) are exact; above, precise to one part in 2^fineness.
    pub fn with_fineness(fineness: u32) -> Counts {
        Counts { fineness, buckets: Vec::new(), carried: BTreeMap::new() }
    }

    /// Adds one that needs a size (at least 1).
    #[inline]
    pub fn add(&mut self, size: u64) {
        let bucket = bucket(size, self.fineness);
        let count = at(&mut self.buckets, bucket);
        *count = count.wrapping_add(1);
        if *count == 0 {
            *self.carried.entry(bucket).or_default() += 1 << u16::BITS;
        }
    }

    /// Same as [`Histogram::needs`].
    pub fn needs(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let counts = self.buckets.iter().enumerate().map(|(bucket, count)| {
            let (too_little, enough) = bounds(bucket, self.fineness);
            (too_little, enough, u64::from(*count) + self.carried.get(&bucket).unwrap_or(&0))
        });
        counts.filter(|(_, _, count)| *count > 0)
    }
}

#[inline]
fn at<W: Copy + Default>(buckets: &mut Vec<W>, bucket: usize) -> &mut W {
    if bucket >= buckets.len() {
        append(buckets, bucket);
    }
    &mut buckets[bucket]
}

#[cold]
fn append<W: Copy + Default>(buckets: &mut Vec<W>, bucket: usize) {
    buckets.resize(bucket + 1, W::default());
}

#[inline]
fn bucket(size: u64, fineness: u32) -> usize {
    let below = size.saturating_sub(1);
    let shift = (u64::BITS - below.leading_zeros()).saturating_sub(fineness + 1);
    ((shift as usize) << fineness) + (below >> shift) as usize
}

/// The bounds of a bucket: too small, enough.
fn bounds(bucket: usize, fineness: u32) -> (u64, u64) {
    let shift = (bucket >> fineness).saturating_sub(1);
    let below = (bucket - (shift << fineness)) as u64;
    // The last bucket's upper bound does not fit into 64 bits.
    (below << shift, (((below + 1) as u128) << shift).min(u64::MAX as u128) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_by_less_than_a_thousandth() {
        for size in (1..100_000).chain((1..64).map(|bits| (1u64 << bits) + 1)).chain([u64::MAX]) {
            let (too_little, kept) = bounds(bucket(size, FINENESS), FINENESS);
            assert!(kept >= size && (kept - size) as f64 <= size as f64 / 1024.0, "{size} kept as {kept}");
            assert!(size > 2048 || kept == size);
            assert!(too_little < size);
        }
    }

    #[test]
    fn fine_counts_are_exact() {
        let mut counts = Counts::with_fineness(30);
        for size in [1, 77_777, 1_000_000, 1, 77_777, 1_000_000] {
            counts.add(size);
        }
        assert_eq!(counts.needs().collect::<Vec<_>>(), [(0, 1, 2), (77_776, 77_777, 2), (999_999, 1_000_000, 2)]);
    }

    #[test]
    fn counts_do_not_overflow() {
        let (mut counts, mut histogram) = (Counts::with_fineness(FINENESS), Histogram::default());
        for (size, times) in [(1, 3 << 16), (3, (1 << 16) + 1), (5000, (1 << 16) - 1), (u64::MAX, 1)] {
            (0..times).for_each(|_| counts.add(size));
            histogram.add(size, times);
        }
        assert!(counts.needs().eq(histogram.needs()));
    }
}
