//! Finds the keys that hash above a threshold: sixteen at a time if the processor has AVX2.

use crate::item::Item;

/// Number of items sifted at a time: the items found stay in the first-level cache until they are processed.
pub const SIFTED: usize = 1024;

/// Odd, and near 2^32 divided by the golden ratio: of neighbouring keys as many are above any threshold as of others
/// (Fibonacci hashing; Knuth, The Art of Computer Programming, 6.4). The other, by the square root of 2, does the same
/// for keys that differ in their upper halves.
const LOWER: u32 = 0x9e37_79b1;
const UPPER: u32 = 0xb504_f333;

/// A key's hash: the cheapest that spreads both halves of keys.
#[inline]
pub fn hash(key: u64) -> u32 {
    (key as u32).wrapping_mul(LOWER).wrapping_add(((key >> 32) as u32).wrapping_mul(UPPER))
}

/// Positions of the items found last.
pub struct Sift {
    /// One more place than items: every position is written, and counted only if found, so that there is no branch to
    /// mispredict.
    positions: Box<[u32; SIFTED + 1]>,
    #[cfg(target_arch = "x86_64")]
    simd: Option<pulp::x86::V3>,
}

impl Sift {
    /// With room for [`SIFTED`] items.
    pub fn new() -> Sift {
        Sift {
            positions: Box::new([0; SIFTED + 1]),
            #[cfg(target_arch = "x86_64")]
            simd: pulp::x86::V3::try_new(),
        }
    }

    /// Positions, rising, of the items whose keys hash to the threshold or above; at most [`SIFTED`] items. With AVX2,
    /// numbers of which few are found take some 0.3 ns each.
    #[inline]
    pub fn sift<I: Item>(&mut self, items: &[I], threshold: u32) -> &[u32] {
        let items = &items[..items.len().min(SIFTED)];
        let found = Found { positions: &mut self.positions, count: 0 };
        #[cfg(target_arch = "x86_64")]
        let found = match self.simd {
            Some(simd) => simd.vectorize(avx2::Groups { simd, items, threshold, found }),
            None => found.one_by_one(0, items, threshold),
        };
        #[cfg(not(target_arch = "x86_64"))]
        let found = found.one_by_one(0, items, threshold);
        let count = found.count;
        &self.positions[..count]
    }
}

/// Positions found so far.
pub struct Found<'a> {
    positions: &'a mut [u32; SIFTED + 1],
    count: usize,
}

impl<'a> Found<'a> {
    /// The next position overwrites one that is not found.
    #[inline(always)]
    fn note(&mut self, position: u32, is_found: bool) {
        self.positions[self.count] = position;
        self.count += usize::from(is_found);
    }

    #[inline(always)]
    fn one_by_one<I: Item>(mut self, first: u32, items: &[I], threshold: u32) -> Found<'a> {
        for (position, item) in (first..).zip(items) {
            self.note(position, hash(item.key()) >= threshold);
        }
        self
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::__m256i;

    use pulp::x86::V3;
    use pulp::{NullaryFnOnce, cast};

    use super::{Found, LOWER, UPPER};
    use crate::item::Item;

    const GROUP: usize = 16;

    /// Processes all groups of items, compiled for AVX2. There are no closures and iterators around the vectors,
    /// because those would be compiled for any processor.
    pub struct Groups<'a, 'b, I> {
        pub simd: V3,
        pub items: &'a [I],
        pub threshold: u32,
        pub found: Found<'b>,
    }

    impl<'b, I: Item> NullaryFnOnce for Groups<'_, 'b, I> {
        type Output = Found<'b>;

        #[inline(always)]
        fn call(self) -> Found<'b> {
            let Groups { simd, items, threshold, mut found } = self;
            let mut rest = items;
            let threshold_of = as_compared(threshold);
            let mut first = 0;
            while let Some((group, others)) = rest.split_first_chunk::<GROUP>() {
                let below_all = below(simd, &group[0..4], threshold_of)
                    | below(simd, &group[4..8], threshold_of) << 4
                    | below(simd, &group[8..12], threshold_of) << 8
                    | below(simd, &group[12..16], threshold_of) << 12;
                let mut left = u32::from(!(below_all as u16));
                found.note(first + left.trailing_zeros(), left != 0);
                left &= left.wrapping_sub(1);
                while left != 0 {
                    found.note(first + left.trailing_zeros(), true);
                    left &= left - 1;
                }
                first += GROUP as u32;
                rest = others;
            }
            found.one_by_one(first, rest, threshold)
        }
    }

    /// As a signed number, which the processor compares, in the upper half of 64 bits.
    #[inline(always)]
    fn as_compared(threshold: u32) -> i64 {
        (u64::from(threshold ^ 1 << 31) << 32) as i64
    }

    /// A bit for each of four items whose key hashes below this.
    #[inline(always)]
    fn below(simd: V3, items: &[impl Item], threshold: i64) -> u32 {
        let V3 { avx, avx2, .. } = simd;
        let keys: __m256i = cast([items[0].key(), items[1].key(), items[2].key(), items[3].key()]);
        let lower = avx2._mm256_mul_epu32(keys, avx._mm256_set1_epi64x(LOWER.into()));
        let upper = avx2._mm256_mul_epu32(avx2._mm256_srli_epi64::<32>(keys), avx._mm256_set1_epi64x(UPPER.into()));
        let hashes = avx2._mm256_slli_epi64::<32>(avx2._mm256_add_epi64(lower, upper));
        let signed = avx2._mm256_xor_si256(hashes, avx._mm256_set1_epi64x(i64::MIN));
        let below = avx2._mm256_cmpgt_epi64(avx._mm256_set1_epi64x(threshold), signed);
        avx._mm256_movemask_pd(cast(below)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Object;

    #[test]
    fn items_at_or_above_the_threshold_are_found() {
        let mut sift = Sift::new();
        let mut key = 1u64;
        let mut next = || {
            key = key.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            key
        };
        for length in [0, 1, 15, 16, 17, 100, SIFTED] {
            let keys: Vec<u64> = (0..length).map(|_| next() >> (next() % 64)).collect();
            let objects: Vec<Object> = keys.iter().map(|key| Object { key: *key, bytes: 7 }).collect();
            let own = keys.first().map_or(0, |key| hash(*key));
            for threshold in [0, 1, own, own.saturating_add(1), 1 << 31, (1 << 31) - 1, u32::MAX / 100 * 99, u32::MAX] {
                let expected: Vec<u32> =
                    (0..).zip(&keys).filter(|(_, key)| hash(**key) >= threshold).map(|(at, _)| at).collect();
                assert_eq!(sift.sift(&keys, threshold), expected, "{length} {threshold}");
                assert_eq!(sift.sift(&objects, threshold), expected, "{length} {threshold}");
            }
        }
    }
}
