//! A row of weights, for keys of any weight. As with bits, a Fenwick tree sums the finished blocks.

use crate::fenwick::Fenwick;
use crate::row::Row;
use crate::table::FREE;

const BLOCK: usize = 64;

/// Room for this many accesses per key before compaction: 32 bytes per key.
const SLOTS_PER_KEY: usize = 4;

/// Slots are numbered with 32 bits; the last number is reserved.
const MAX_SLOTS: usize = (u32::MAX as usize) / BLOCK * BLOCK;

/// The slots.
pub struct Weights {
    /// 0 is a free slot.
    weights: Vec<u64>,
    /// Sums of the finished blocks.
    tree: Fenwick,
    next: usize,
    total: u64,
}

impl Row for Weights {
    type Numbers = Vec<u32>;

    fn with_capacity(keys: usize) -> Weights {
        let slots = (keys.max(BLOCK) * SLOTS_PER_KEY).next_multiple_of(BLOCK).min(MAX_SLOTS);
        Weights { weights: vec![0; slots], tree: Fenwick::new(slots / BLOCK), next: 0, total: 0 }
    }

    fn room(&self) -> usize {
        self.weights.len() - self.next
    }

    fn next(&self) -> u32 {
        self.next as u32
    }

    fn push(&mut self, weight: u64) {
        self.weights[self.next] = weight;
        self.next += 1;
        self.total = self.total.wrapping_add(weight);
        if self.next % BLOCK == 0 {
            let block = self.next / BLOCK - 1;
            self.tree.add(block, sum(&self.weights[block * BLOCK..self.next]));
        }
    }

    fn clear(&mut self, slot: u32) {
        let slot = slot as usize;
        let weight = std::mem::take(&mut self.weights[slot]);
        self.total = self.total.wrapping_sub(weight);
        if slot / BLOCK < self.next / BLOCK {
            self.tree.subtract(slot / BLOCK, weight);
        }
    }

    fn behind(&self, slot: u32) -> u64 {
        let slot = slot as usize;
        let block = slot / BLOCK;
        let before = self.tree.before(block).wrapping_add(sum(&self.weights[block * BLOCK..=slot]));
        self.total.wrapping_sub(before)
    }

    fn compact(&mut self) -> Vec<u32> {
        let kept = self.weights.iter().map(|weight| u32::from(*weight > 0));
        let numbers: Vec<u32> = kept.scan(0, |next, is_kept| Some(std::mem::replace(next, *next + is_kept))).collect();
        let kept = self.weights.iter().filter(|weight| **weight > 0);
        let mut compact = Weights::with_capacity(kept.clone().count());
        kept.for_each(|weight| compact.push(*weight));
        *self = compact;
        numbers
    }

    #[inline]
    fn number(numbers: &Vec<u32>, slot: u32) -> u32 {
        numbers.get(slot as usize).copied().unwrap_or(FREE)
    }
}

/// A trace may have sizes whose sum overflows; then the sums are wrong, but nothing panics.
fn sum(weights: &[u64]) -> u64 {
    weights.iter().fold(0, |sum, weight| sum.wrapping_add(*weight))
}
