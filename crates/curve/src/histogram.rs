//! How much needs which size: exact up to a chosen size, rounded up by a small part beyond it.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Up to 2048, sizes are told apart; beyond, to 1 part in 1024.
const FINENESS: u32 = 10;

/// Weights by needed size. Adding takes O(1); memory is bounded: 440 KiB of 8 bytes each.
#[derive(Default)]
pub struct Histogram<W = u64> {
    buckets: Vec<W>,
}

impl<W: Copy + Default + PartialEq + AddAssign> Histogram<W> {
    /// `weight` more needs a size (at least 1).
    #[inline]
    pub fn add(&mut self, size: u64, weight: W) {
        *at(&mut self.buckets, bucket(size, FINENESS)) += weight;
    }

    /// Rising: a size that is too little, the next that was told apart from it and is enough, and the weight that needs it.
    pub fn needs(&self) -> impl Iterator<Item = (u64, u64, W)> {
        let used = self.buckets.iter().enumerate().filter(|(_, weight)| **weight != W::default());
        used.map(|(bucket, weight)| {
            let (too_little, enough) = bounds(bucket, FINENESS);
            (too_little, enough, *weight)
        })
    }
}

/// A histogram of what weighs 1, as fine as one likes. Adding takes O(1), and touches but 2 bytes for each size, so that more of them
/// stay in the caches; memory follows the largest size.
pub struct Counts {
    fineness: u32,
    buckets: Vec<u16>,
    /// What the buckets have no room for.
    carried: BTreeMap<usize, u64>,
}

impl Counts {
    /// Sizes up to 2^(fineness + 1) are told apart; above, to one part in 2^fineness.
    pub fn with_fineness(fineness: u32) -> Counts {
        Counts { fineness, buckets: Vec::new(), carried: BTreeMap::new() }
    }

    /// One more needs a size (at least 1).
    #[inline]
    pub fn add(&mut self, size: u64) {
        let bucket = bucket(size, self.fineness);
        let count = at(&mut self.buckets, bucket);
        *count = count.wrapping_add(1);
        if *count == 0 {
            *self.carried.entry(bucket).or_default() += 1 << u16::BITS;
        }
    }

    /// As [`Histogram::needs`].
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

/// The sizes between which a bucket lies: too little, enough.
fn bounds(bucket: usize, fineness: u32) -> (u64, u64) {
    let shift = (bucket >> fineness).saturating_sub(1);
    let below = (bucket - (shift << fineness)) as u64;
    // The last bucket's upper bound is one too large for 64 bits.
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
    fn fine_counts_tell_all_sizes_apart() {
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
