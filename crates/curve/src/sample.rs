//! Which keys stand for all (SHARDS; Waldspurger et al., FAST '15): those whose hash is under a threshold.

use crate::item::Item;
use crate::table::mix;

/// When there are too many, one in so many goes.
const LET_GO: usize = 8;

/// Items are sifted by so many; most of so many next to each other are let through or none is.
pub const SIFTED: usize = 1024;
const NEXT: usize = 16;

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
        hash(key) <= self.threshold
    }

    /// Which of at most [`SIFTED`] items are of the sample, by their positions. Where one may be, no branch depends on which, since
    /// it would be predicted wrongly each time.
    pub fn sift<'a, I: Item>(&self, items: &[I], positions: &'a mut [u32; SIFTED]) -> &'a [u32] {
        let upper = (self.threshold >> 32) as u32;
        let mut count = 0;
        for (first, items) in (0..).step_by(NEXT).zip(items.chunks(NEXT)) {
            let may_be = |may: bool, item: &I| may | (upper_hash(item.key()) <= upper);
            let may = match items.first_chunk::<NEXT>() {
                Some(items) => items.iter().fold(false, may_be),
                None => true,
            };
            if may {
                for (position, item) in (first..).zip(items) {
                    positions[count % SIFTED] = position;
                    count += usize::from(self.has(item.key()));
                }
            }
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
        let mut hashes: Vec<u64> = keys.map(hash).collect();
        let kept = self.most - self.most / LET_GO;
        if kept < hashes.len() {
            let (_, first_gone, _) = hashes.select_nth_unstable(kept);
            self.threshold = first_gone.saturating_sub(1);
        }
    }
}

fn hash(key: u64) -> u64 {
    u64::from(upper_hash(key)) << 32 | mix(key) & LOWER
}

const LOWER: u64 = u32::MAX as u64;

/// Spreads keys over 32 bits. Products of 32 bits by 32 are what every processor has for vectors, so many keys are hashed at once.
fn upper_hash(key: u64) -> u32 {
    let fold = |product: u64| product ^ product >> 32;
    let both = ((key & LOWER) * 0x9e37_79b1).wrapping_add((key >> 32) * 0x85eb_ca77);
    fold((fold(both) & LOWER) * 0xc2b2_ae3d) as u32
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
        let keys: Vec<u64> = (0..SIFTED as u64).collect();
        for length in [SIFTED, SIFTED - 1, 5, 0] {
            let expected: Vec<u32> = (0..length as u32).filter(|key| sample.has(*key as u64)).collect();
            assert_eq!(sample.sift(&keys[..length], &mut [0; SIFTED]), expected);
        }
        let all = Sample::new(1.0, 1000);
        assert_eq!(all.sift(&keys, &mut [0; SIFTED]).len(), SIFTED);
    }

    #[test]
    fn a_share_of_the_keys_is_of_the_sample_whatever_the_stride() {
        let sample = Sample::new(0.05, 1000);
        for stride in [1, 2, 3, 55, 377, 512, 4096, 10_946, 1 << 21, 1 << 32, (1 << 40) + 1, u64::MAX / 3] {
            let sampled = (0..100_000u64).filter(|i| sample.has(i.wrapping_mul(stride))).count();
            assert!((4600..5400).contains(&sampled), "{sampled} of stride {stride}");
        }
    }

    #[test]
    fn all_keys_are_a_sample() {
        let sample = Sample::new(1.0, 1000);
        assert!((0..10_000).all(|key| sample.has(key)));
        assert_eq!(sample.share(), 1.0);
    }
}
