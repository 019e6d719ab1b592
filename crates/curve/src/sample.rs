//! Which keys stand for all (SHARDS; Waldspurger et al., FAST '15): those whose hash is above a threshold.

use crate::item::Item;
pub use crate::sift::SIFTED;
use crate::sift::{Sift, hash};

/// When there are too many, one in so many goes.
const LET_GO: usize = 8;

/// A sample of the keys: every reference to a key of it is looked at, no reference to another.
pub struct Sample {
    /// The smallest hash in the sample. The largest are, because that of key 0, often the hottest, would be in any other sample.
    threshold: u32,
    most: usize,
    sift: Sift,
}

impl Sample {
    /// Begins with this share of the keys (0 to 1), of which there may be `most`.
    pub fn new(share: f64, most: usize) -> Sample {
        Sample { threshold: ((1.0 - share) * 2f64.powi(32)) as u32, most: most.max(LET_GO), sift: Sift::new() }
    }

    /// Whether a key is of the sample.
    pub fn has(&self, key: u64) -> bool {
        hash(key) >= self.threshold
    }

    /// The positions of the items whose keys are of the sample, rising, of [`SIFTED`] items at most.
    #[inline]
    pub fn sift<I: Item>(&mut self, items: &[I]) -> &[u32] {
        self.sift.sift(items, self.threshold)
    }

    /// The share of all keys that are.
    pub fn share(&self) -> f64 {
        (f64::from(u32::MAX - self.threshold) + 1.0) / 2f64.powi(32)
    }

    /// Whether so many keys are too many.
    pub fn is_full(&self, keys: usize) -> bool {
        keys > self.most
    }

    /// Raises the threshold, so that an eighth of these keys are of the sample no more.
    pub fn thin_out(&mut self, keys: impl Iterator<Item = u64>) {
        let mut hashes: Vec<u32> = keys.map(hash).collect();
        let kept = self.most - self.most / LET_GO;
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
    fn a_higher_threshold_keeps_a_part_of_what_was_kept_before() {
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
    fn sifting_finds_what_is_of_the_sample() {
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
    fn of_any_stride_the_sample_has_its_share() {
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
