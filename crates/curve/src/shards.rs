//! Stack distances of a sample (SHARDS; Waldspurger et al., FAST '15).

use crate::batch::MAX_ACCESSES;
use crate::engine::Engine;
use crate::histogram::Histogram;
use crate::item::Item;
use crate::lru::Lru;
use crate::miss_ratio::MissRatioCurve;
use crate::sample::{SIFTED, Sample};

/// With a fixed rate memory is bounded too: with more items the rate is lowered.
const MAX_ITEMS: usize = 1 << 22;

/// Estimates from the stack distances of sampled items alone. Each item stands for the inverse of the sampled share:
/// distances are divided by the share, and a reference counts for its inverse.
///
/// The sample never has exactly its share of the references: a very hot item is in it or not. The paper's adjustment
/// adds the difference at the smallest size, where such an item's references are. That is the same as dividing misses
/// by the number of all references, not by the number that the sample stands for.
///
/// A reference outside the sample takes O(1) and touches no memory; one inside takes O(log n) for n sampled items.
/// Memory is at most 60 bytes per sampled item (112 for objects) plus 2 MiB; some 1 MiB in all for 8192 items.
pub struct Shards<I: Item> {
    sample: Sample,
    stack: Lru<I::Row>,
    /// Sampled references buffered to be processed together; few compared with the items.
    waiting: Vec<I>,
    together: usize,
    /// In references of the whole trace, not of the sample.
    counts: Histogram<f64>,
    references: u64,
    first: f64,
}

impl<I: Item> Shards<I> {
    /// Fixed rate: this share of all items, above 0 and up to 1; lowered only beyond 4 194 304 items. A fixed rate
    /// fails on a trace of few items, of which it samples next to none.
    pub fn with_rate(share: f64) -> Shards<I> {
        Shards::new(share, MAX_ITEMS)
    }

    /// Fixed size: first all items, then a share that keeps at most `most` (8 or more), so that memory is constant.
    pub fn with_size(most: usize) -> Shards<I> {
        Shards::new(1.0, most)
    }

    fn new(share: f64, most: usize) -> Shards<I> {
        let together = (most / 8).min(MAX_ACCESSES - SIFTED);
        let (sample, counts) = (Sample::new(share, most), Histogram::default());
        Shards { sample, stack: Lru::new(), waiting: Vec::new(), together, counts, references: 0, first: 0.0 }
    }

    /// Processes the buffered references.
    fn flush(&mut self) {
        let Shards { sample, stack, waiting, counts, first, .. } = self;
        let stands_for = 1.0 / sample.share();
        stack.touch_all(waiting, |item, distance| match distance {
            Some(distance) => {
                let need = (distance as f64 + item.weight() as f64) * stands_for;
                counts.add(need.round() as u64, stands_for);
            }
            None => *first += stands_for,
        });
        waiting.clear();
        if sample.is_full(stack.len()) {
            sample.thin_out(stack.keys());
            stack.retain(|key| sample.has(key));
        }
    }
}

impl<I: Item> Engine<I> for Shards<I> {
    fn reference(&mut self, items: &[I]) {
        self.references += items.len() as u64;
        for items in items.chunks(SIFTED) {
            let Shards { sample, waiting, .. } = self;
            waiting.extend(sample.sift(items).iter().map(|at| items[*at as usize]));
            if self.waiting.len() >= self.together {
                self.flush();
            }
        }
    }

    fn curve(&mut self) -> MissRatioCurve {
        self.flush();
        let distinct = (self.stack.since_mark() as f64 / self.sample.share()).round() as u64;
        let needs = self.counts.needs().map(|(_, enough, references)| (enough, references));
        MissRatioCurve::new(self.references, distinct, needs, self.first)
    }

    fn restart(&mut self) {
        self.flush();
        self.counts = Histogram::default();
        (self.references, self.first) = (0, 0.0);
        self.stack.mark();
    }

    fn sampled_share(&self) -> f64 {
        self.sample.share()
    }
}
