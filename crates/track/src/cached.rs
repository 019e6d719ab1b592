//! Which pages the job referenced, and which of them its own references added to the page cache.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// Pages per entry: 1 MiB of a file.
const PAGES: u64 = 256;
/// Entries before the sample is halved: some 8 MiB of memory.
const MAX_CHUNKS: usize = 1 << 16;

/// Sets of pages by file, exact up to 64 GiB of distinct pages, then a sample of whole MiBs.
#[derive(Debug)]
pub(crate) struct Cached {
    /// ScanResult up for every reference, hence the fast hasher.
    chunks: HashMap<(u32, u32), Chunk, RandomState>,
    max_chunks: usize,
    /// Only chunks whose hash has this many trailing zero bits are kept.
    halvings: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    referenced: [u64; 4],
    added: [u64; 4],
}

impl Cached {
    pub(crate) fn new() -> Cached {
        Cached { chunks: HashMap::default(), max_chunks: MAX_CHUNKS, halvings: 0 }
    }

    pub(crate) fn referenced(&mut self, file: u32, first: u64, pages: u32) {
        self.mark(file, first, pages, |chunk| &mut chunk.referenced);
    }

    pub(crate) fn added(&mut self, file: u32, first: u64, pages: u32) {
        self.mark(file, first, pages, |chunk| &mut chunk.added);
    }

    /// Pages by file that were referenced and not added.
    pub(crate) fn foreign(&self) -> HashMap<u32, u64> {
        let mut pages = HashMap::new();
        for ((file, _), chunk) in &self.chunks {
            let foreign: u32 = chunk.referenced.iter().zip(&chunk.added).map(|(r, a)| (r & !a).count_ones()).sum();
            if foreign > 0 {
                *pages.entry(*file).or_default() += u64::from(foreign) << self.halvings;
            }
        }
        pages
    }

    /// Distinct pages that were added.
    pub(crate) fn added_pages(&self) -> u64 {
        let pages: u64 =
            self.chunks.values().flat_map(|chunk| chunk.added).map(|word| u64::from(word.count_ones())).sum();
        pages << self.halvings
    }

    fn mark(&mut self, file: u32, first: u64, pages: u32, set: impl Fn(&mut Chunk) -> &mut [u64; 4]) {
        let end = first.saturating_add(u64::from(pages));
        let mut page = first;
        while page < end {
            let chunk = page / PAGES;
            let chunk_end = (chunk + 1).saturating_mul(PAGES).min(end);
            let key = (file, chunk as u32);
            if self.keeps(key) {
                let words = set(self.chunks.entry(key).or_default());
                let mut page = page;
                while page < chunk_end {
                    let word_end = (page / 64 + 1).saturating_mul(64).min(chunk_end);
                    words[(page % PAGES / 64) as usize] |= u64::MAX >> (64 - (word_end - page)) << (page % 64);
                    page = word_end;
                }
                if self.chunks.len() > self.max_chunks {
                    self.halvings += 1;
                    let halvings = self.halvings;
                    self.chunks.retain(|key, _| hash(*key).trailing_zeros() >= halvings);
                }
            }
            page = chunk_end;
        }
    }

    fn keeps(&self, key: (u32, u32)) -> bool {
        hash(key).trailing_zeros() >= self.halvings
    }
}

/// Fibonacci hashing; takes the high bits, which mix best.
fn hash((file, chunk): (u32, u32)) -> u32 {
    let key = u64::from(file) << 32 | u64::from(chunk);
    ((key ^ key >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_pages_are_referenced_and_never_added() {
        let mut cached = Cached::new();
        cached.added(0, 0, 100);
        cached.referenced(0, 50, 1000);
        cached.added(0, 900, 1000);
        cached.referenced(1, 255, 2);
        cached.added(2, 0, 5);
        assert_eq!(cached.foreign(), HashMap::from([(0, 800), (1, 2)]));
        assert_eq!(cached.added_pages(), 100 + 1000 + 5);
    }

    #[test]
    fn becomes_a_sample_beyond_its_bound() {
        let mut cached = Cached { max_chunks: 1000, ..Cached::new() };
        for file in 0..10 {
            cached.referenced(file, 0, 256 * 4000);
        }
        assert!(cached.chunks.len() <= 1000);
        let sum: u64 = cached.foreign().values().sum();
        assert!((8_000_000..12_500_000).contains(&sum), "{sum}");
    }
}
