//! Time as a row of bits: one slot per access, set while it is some key's last access. A Fenwick tree over blocks of 512
//! bits counts them; the block being filled is not in it yet, so that an access costs one update, not two.

const BLOCK_BITS: usize = 512;
const BLOCK_WORDS: usize = BLOCK_BITS / 64;

/// Room for this many accesses per key before compaction: about two bytes per key.
const SLOTS_PER_KEY: usize = 16;

/// A block of slots.
type Block = [u64; BLOCK_WORDS];

/// The slots.
pub struct Slots {
    blocks: Vec<Block>,
    /// Fenwick tree of the set bits of the finished blocks; element i covers the `i & -i` blocks that end with block i - 1.
    tree: Vec<u32>,
    next: usize,
    /// A finished block, and how many of its bits the tree still counts though they were cleared: those that are cleared one
    /// after the other are mostly in the same block.
    cleared: (usize, u32),
}

impl Slots {
    /// With room for `keys` keys that have been accessed already, in slots 0 to `keys - 1`.
    pub fn compacted(keys: usize) -> Slots {
        let count = (keys.max(BLOCK_BITS) * SLOTS_PER_KEY).div_ceil(BLOCK_BITS);
        let mut slots =
            Slots { blocks: vec![[0; BLOCK_WORDS]; count], tree: vec![0; count + 1], next: 0, cleared: (0, 0) };
        for _ in 0..keys {
            slots.push();
        }
        slots
    }

    /// No slot left: time to compact.
    pub fn is_full(&self) -> bool {
        self.next == self.blocks.len() * BLOCK_BITS
    }

    /// The slot of the next access.
    pub fn next(&self) -> u32 {
        self.next as u32
    }

    /// Takes the next slot.
    pub fn push(&mut self) {
        let block = self.next / BLOCK_BITS;
        self.blocks[block][self.next % BLOCK_BITS / 64] |= 1 << (self.next % 64);
        self.next += 1;
        if self.next.is_multiple_of(BLOCK_BITS) {
            let set = self.blocks[block].iter().map(|w| w.count_ones()).sum();
            self.add(block, set);
        }
    }

    /// Frees a slot whose key has been accessed anew or forgotten.
    pub fn clear(&mut self, slot: u32) {
        let slot = slot as usize;
        let block = slot / BLOCK_BITS;
        self.blocks[block][slot % BLOCK_BITS / 64] &= !(1 << (slot % 64));
        if block >= self.next / BLOCK_BITS {
            return;
        }
        if block != self.cleared.0 {
            let (before, count) = std::mem::replace(&mut self.cleared, (block, 0));
            self.add(before, count.wrapping_neg());
        }
        self.cleared.1 += 1;
    }

    /// How many slots before this one are set.
    pub fn rank(&self, slot: u32) -> u64 {
        let slot = slot as usize;
        let mut rank = 0u64;
        let mut i = slot / BLOCK_BITS;
        let within = set_before(&self.blocks[i], slot % BLOCK_BITS);
        let cleared = if self.cleared.0 < i { self.cleared.1 } else { 0 };
        while i > 0 {
            rank += self.tree[i] as u64;
            i &= i - 1;
        }
        rank + within as u64 - cleared as u64
    }

    fn add(&mut self, block: usize, by: u32) {
        let mut i = block + 1;
        while i < self.tree.len() {
            self.tree[i] = self.tree[i].wrapping_add(by);
            i += i & i.wrapping_neg();
        }
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
