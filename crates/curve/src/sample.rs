//! Which keys are in the sample (SHARDS; Waldspurger et al., FAST '15): those whose hash is above a threshold.

use crate::item::Item;
pub use crate::sift::SIFTED;
use crate::sift::{Sift, hash};

/// When there are too many keys, one in this many is dropped.
const DROP_PART: usize = 8;

/// A sample of the keys: every reference to a sampled key counts, no reference to another.
pub struct Sample {
    /// The smallest hash in the sample. The sample has the largest hashes, because a sample of the smallest would
    /// always include key 0, which is often the hottest.
    threshold: u32,
    most: usize,
    sift: Sift,
}

impl Sample {
    /// Starts with this share of the keys (0 to 1), and at most `most` of them.
    pub fn new(share: f64, most: usize) -> Sample {
        Sample { threshold: ((1.0 - share) * 2f64.powi(32)) as u32, most: most.max(DROP_PART), sift: Sift::new() }
    }

    /// Whether a key is in the sample.
    pub fn has(&self, key: u64) -> bool {
        hash(key) >= self.threshold
    }

    /// Positions of the items whose keys are in the sample, rising; at most [`SIFTED`] items.
    #[inline]
    pub fn sift<I: Item>(&mut self, items: &[I]) -> &[u32] {
        self.sift.sift(items, self.threshold)
    }

    /// The share of all keys in the sample.
    pub fn share(&self) -> f64 {
        (f64::from(u32::MAX - self.threshold) + 1.0) / 2f64.powi(32)
    }

    /// Whether this many keys are too many.
    pub fn is_full(&self, keys: usize) -> bool {
        keys > self.most
    }

    /// Raises the threshold so that an eighth of these keys leave the sample.
    pub fn thin_out(&mut self, keys: impl Iterator<Item = u64>) {
        let mut hashes: Vec<u32> = keys.map(hash).collect();
        let kept = self.most - self.most / DROP_PART;
        if kept < hashes.len() {
            let last_gone = hashes.len() - kept - 1;
            self.threshold = hashes.select_nth_unstable(last_gone).1.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_threshold_keeps_a_subset() {
        let mut sample = Sample::new(0.5, 1000);
        let before: Vec<u64> = (0..4000).filter(|key| sample.has(*key)).collect();
        assert!((1850..2150).contains(&before.len()) && sample.is_full(before.len()));
        sample.thin_out(before.iter().copied());
        let after: Vec<u64> = (0..4000).filter(|key| sample.has(*key)).collect();
        assert_eq!(after.len(), 875);
        assert!(after.iter().all(|key| before.contains(key)));
        assert!((sample.share() - 875.0 / 4000.0).abs() < 0.02, "{}", sample.share());
    }

    #[test]
    fn sifting_finds_the_sampled_items() {
        for share in [0.01, 0.3, 1.0] {
            let mut sample = Sample::new(share, 1000);
            for length in [0, 7, 1000] {
                let keys: Vec<u64> = (0..length).collect();
                let found: Vec<u64> = sample.sift(&keys).iter().map(|at| keys[*at as usize]).collect();
                assert_eq!(found, (0..length).filter(|key| sample.has(*key)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_first_key_is_in_no_small_sample() {
        assert!([0.9, 0.5, 0.01].iter().all(|share| !Sample::new(*share, 1 << 20).has(0)));
    }

    #[test]
    fn every_stride_is_sampled_in_proportion() {
        let sample = Sample::new(0.01, 1 << 20);
        for stride in [1, 2, 3, 8, 89, 512, 610, 4096, 10_000, 1 << 20, (1 << 32) + 1, 1 << 40, (1 << 40) + 4096] {
            let found = (0..100_000u64).filter(|at| sample.has(at.wrapping_mul(stride))).count();
            assert!((900..=1100).contains(&found), "{found} of 100 000, {stride} apart");
        }
    }

    #[test]
    fn all_keys_are_a_sample() {
        let sample = Sample::new(1.0, 1000);
        assert!((0..10_000).all(|key| sample.has(key)));
        assert_eq!(sample.share(), 1.0);
    }
}
