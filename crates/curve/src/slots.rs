//! A row of bits, for keys that all weigh 1. A Fenwick tree over blocks of 512 bits counts them; the block being filled is
//! not in it yet, so that an access costs one update, not two.

use crate::fenwick::Fenwick;
use crate::row::Row;

const BLOCK_BITS: usize = 512;
const BLOCK_WORDS: usize = BLOCK_BITS / 64;

/// Room for this many accesses per key before compaction: about a byte per key.
const SLOTS_PER_KEY: usize = 8;

/// Slots are numbered with 32 bits, of which the last number is kept free.
const MOST_BLOCKS: usize = (u32::MAX as usize) / BLOCK_BITS;

/// A block of slots.
type Block = [u64; BLOCK_WORDS];

/// The slots.
pub struct Slots {
    blocks: Vec<Block>,
    /// Filled slots of the finished blocks.
    tree: Fenwick,
    next: usize,
    filled: u64,
}

impl Row for Slots {
    fn with_capacity(keys: usize) -> Slots {
        let count = (keys.max(BLOCK_BITS) * SLOTS_PER_KEY).div_ceil(BLOCK_BITS).min(MOST_BLOCKS);
        Slots { blocks: vec![[0; BLOCK_WORDS]; count], tree: Fenwick::new(count), next: 0, filled: 0 }
    }

    fn is_full(&self) -> bool {
        self.next == self.blocks.len() * BLOCK_BITS
    }

    fn next(&self) -> u32 {
        self.next as u32
    }

    fn push(&mut self, _weight: u64) {
        let block = self.next / BLOCK_BITS;
        self.blocks[block][self.next % BLOCK_BITS / 64] |= 1 << (self.next % 64);
        self.next += 1;
        self.filled += 1;
        if self.next.is_multiple_of(BLOCK_BITS) {
            self.tree.add(block, self.blocks[block].iter().map(|w| w.count_ones() as u64).sum());
        }
    }

    fn clear(&mut self, slot: u32) {
        let slot = slot as usize;
        let block = slot / BLOCK_BITS;
        self.blocks[block][slot % BLOCK_BITS / 64] &= !(1 << (slot % 64));
        self.filled -= 1;
        if block < self.next / BLOCK_BITS {
            self.tree.subtract(block, 1);
        }
    }

    fn behind(&self, slot: u32) -> u64 {
        self.filled - 1 - self.before(slot)
    }

    fn compact<'a>(&mut self, filled: impl Iterator<Item = &'a mut u32>) {
        for slot in filled {
            *slot = self.before(*slot) as u32;
        }
        let keys = self.filled as usize;
        *self = Slots::with_capacity(keys);
        for _ in 0..keys {
            self.push(1);
        }
    }
}

impl Slots {
    /// How many slots before this one are filled.
    fn before(&self, slot: u32) -> u64 {
        let slot = slot as usize;
        let block = slot / BLOCK_BITS;
        set_before(&self.blocks[block], slot % BLOCK_BITS) as u64 + self.tree.before(block)
    }
}

/// Set bits of a block before a bit. All words are counted, those behind it masked to nothing: no branch depends on data.
fn set_before(block: &Block, bit: usize) -> u32 {
    let mut count = 0;
    for (i, word) in block.iter().enumerate() {
        let bits = bit.saturating_sub(i * 64).min(64);
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        count += (word & mask).count_ones();
    }
    count
}
