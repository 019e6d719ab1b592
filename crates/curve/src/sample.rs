//! Which keys stand for all (SHARDS; Waldspurger et al., FAST '15): those whose hash is under a threshold.

use crate::table::mix;

/// When there are too many, one in so many goes.
const LET_GO: usize = 8;

/// Keys are sifted by so many.
pub const SIFTED: usize = 1024;

/// A sample of the keys: every reference to a key of it is looked at, no reference to another.
pub struct Sample {
    /// The largest hash in the sample.
    threshold: u64,
    most: usize,
}

impl Sample {
    /// Begins with this share of the keys (0 to 1), of which there may be `most`.
    pub fn new(share: f64, most: usize) -> Sample {
        Sample { threshold: (share * 2f64.powi(64)) as u64, most: most.max(LET_GO) }
    }

    /// Whether a key is of the sample.
    pub fn has(&self, key: u64) -> bool {
        mix(key) <= self.threshold
    }

    /// Which of at most [`SIFTED`] keys are of the sample, by their positions. No branch depends on a key, since it would be
    /// predicted wrongly each time one is.
    pub fn sift<'a>(&self, keys: impl Iterator<Item = u64>, positions: &'a mut [u32; SIFTED]) -> &'a [u32] {
        let mut count = 0;
        for (position, key) in (0..).zip(keys) {
            positions[count % SIFTED] = position;
            count += usize::from(self.has(key));
        }
        &positions[..count]
    }

    /// The share of all keys that are.
    pub fn share(&self) -> f64 {
        (self.threshold as f64 + 1.0) / 2f64.powi(64)
    }

    /// Whether so many keys are too many.
    pub fn is_full(&self, keys: usize) -> bool {
        keys > self.most
    }

    /// Lowers the threshold, so that an eighth of these keys are of the sample no more.
    pub fn lower(&mut self, keys: impl Iterator<Item = u64>) {
        let mut hashes: Vec<u64> = keys.map(mix).collect();
        let kept = self.most - self.most / LET_GO;
        if kept < hashes.len() {
            let (_, first_gone, _) = hashes.select_nth_unstable(kept);
            self.threshold = first_gone.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_threshold_keeps_a_part_of_what_was_kept_before() {
        let mut sample = Sample::new(0.5, 1000);
        let before: Vec<u64> = (0..4000).filter(|key| sample.has(*key)).collect();
        assert!((1850..2150).contains(&before.len()) && sample.is_full(before.len()));
        sample.lower(before.iter().copied());
        let after: Vec<u64> = (0..4000).filter(|key| sample.has(*key)).collect();
        assert_eq!(after.len(), 875);
        assert!(after.iter().all(|key| before.contains(key)));
        assert!((sample.share() - 875.0 / 4000.0).abs() < 0.02, "{}", sample.share());
    }

    #[test]
    fn sifting_finds_what_is_of_the_sample() {
        let sample = Sample::new(0.3, 1000);
        let expected: Vec<u32> = (0..SIFTED as u32).filter(|key| sample.has(*key as u64)).collect();
        assert_eq!(sample.sift(0..SIFTED as u64, &mut [0; SIFTED]), expected);
        let all = Sample::new(1.0, 1000);
        assert_eq!(all.sift(0..SIFTED as u64, &mut [0; SIFTED]).len(), SIFTED);
    }

    #[test]
    fn all_keys_are_a_sample() {
        let sample = Sample::new(1.0, 1000);
        assert!((0..10_000).all(|key| sample.has(key)));
        assert_eq!(sample.share(), 1.0);
    }
}
