//! Which pages are tracked: the same share of every 256 neighbours, spread evenly. A sequential scan is then sampled
//! with hardly any error, and the pages between two tracked ones cost nothing.

use crate::table::mix;

/// Neighbours sampled together: 1 MiB of 4 KiB pages.
const BLOCK: usize = 256;
/// Multiples of this, about 256 divided by the golden ratio, fall evenly over the block, and so do those of every
/// stride (a Weyl sequence).
const STEP: usize = 159;

/// The tracked share of the pages: one in 2^`halvings`, first within each block, then of the blocks. Each halving keeps
/// a subset.
pub struct Stratified {
    halvings: u32,
    /// By place in an unrotated block: number of pages from there to the next tracked one.
    until: [u8; BLOCK],
}

impl Stratified {
    /// All pages.
    pub fn all() -> Stratified {
        Stratified { halvings: 0, until: [0; BLOCK] }
    }

    /// Halves the tracked share.
    pub fn halve(&mut self) {
        self.halvings += 1;
        let is_tracked = |place: usize| place * STEP % BLOCK < (BLOCK >> self.halvings).max(1);
        // From the end on, twice around.
        let mut next = 0;
        for place in (0..2 * BLOCK).rev() {
            if is_tracked(place % BLOCK) {
                next = place;
            }
            if place < BLOCK {
                self.until[place] = (next - place) as u8;
            }
        }
    }

    /// One page in 2^this is tracked.
    pub fn halvings(&self) -> u32 {
        self.halvings
    }

    /// Whether the page is tracked; neighbours have neighbouring keys.
    pub fn has(&self, key: u64) -> bool {
        let (is_in, turn) = self.block(key);
        is_in && self.until[(key as usize).wrapping_add(turn) % BLOCK] == 0
    }

    /// Calls `see` for the tracked ones of `pages` neighbours from `first` on, in order.
    pub fn of_run(&self, first: u64, pages: u64, mut see: impl FnMut(u64)) {
        let end = first.saturating_add(pages);
        let mut key = first;
        while key < end {
            let (is_in, turn) = self.block(key);
            let block_end = (key | (BLOCK as u64 - 1)).saturating_add(1).min(end);
            while is_in && key < block_end {
                match self.until[(key as usize).wrapping_add(turn) % BLOCK] {
                    0 => {
                        see(key);
                        key += 1;
                    }
                    pages => key = key.saturating_add(pages.into()),
                }
            }
            key = block_end;
        }
    }

    /// Whether pages of its block are tracked, and by how much the block is rotated.
    fn block(&self, key: u64) -> (bool, usize) {
        let hash = mix(key / BLOCK as u64);
        let halvings = self.halvings.saturating_sub(BLOCK.trailing_zeros());
        (halvings == 0 || hash >> (64 - halvings) == 0, hash as usize % BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halved(times: u32) -> Stratified {
        let mut pages = Stratified::all();
        (0..times).for_each(|_| pages.halve());
        pages
    }

    fn tracked(pages: &Stratified, first: u64, count: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        pages.of_run(first, count, |key| seen.push(key));
        seen
    }

    #[test]
    fn a_run_yields_its_tracked_pages() {
        for halvings in 0..12 {
            let pages = halved(halvings);
            for (first, count) in [(0, 5000), (77, 1), (250, 12), (1000, 3000), (u64::MAX - 700, 700)] {
                let truth: Vec<u64> = (first..first + count).filter(|key| pages.has(*key)).collect();
                assert_eq!(tracked(&pages, first, count), truth, "{halvings} {first} {count}");
            }
        }
    }

    #[test]
    fn blocks_and_strides_are_tracked_in_proportion() {
        for halvings in 0..=8u32 {
            let share = BLOCK >> halvings;
            let pages = halved(halvings);
            assert!((0..100).all(|block| tracked(&pages, block * 256, 256).len() == share));
            for stride in [2, 3, 4, 5, 8, 13, 16, 21, 32, 34, 55, 64, 89] {
                let truth = 100_000.0 / f64::from(1u32 << halvings);
                let seen = (0..100_000).filter(|i| pages.has(i * stride)).count() as f64;
                assert!((seen - truth).abs() <= 4.0 * truth.sqrt(), "{halvings} {stride}: {seen} of {truth}");
            }
        }
    }

    #[test]
    fn each_halving_keeps_half_of_the_pages() {
        for halvings in 0..14 {
            let (before, after) = (halved(halvings), halved(halvings + 1));
            let (was, is) = (tracked(&before, 0, 1 << 22), tracked(&after, 0, 1 << 22));
            assert!(is.iter().all(|key| before.has(*key)));
            let off = is.len() as f64 / was.len() as f64 / 0.5 - 1.0;
            assert!(off.abs() < 0.2, "{halvings}: {off}");
        }
    }
}
