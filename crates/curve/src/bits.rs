//! A row of bits that counts how many bits are set before a place.
//!
//! Bits are counted by a tree of fixed depth: each child of a node stores how many bits are set in its elder siblings.
//! The count before a place is one sum along its path. A change updates the younger siblings of each node on the path,
//! in a few vector instructions. No loop depends on data, so no branch is mispredicted. A block's counts are small
//! numbers, so that a vector holds more of them, and are stored together.

/// Bits in a word.
pub const WORD: usize = 64;

/// Words below a lowest node of a block, lowest nodes below a middle node, and middle nodes below the top node.
const LOW: usize = 8;
const MIDDLE: usize = 8;
const TOP: usize = 16;
const WORDS: usize = LOW * MIDDLE * TOP;

/// Blocks below a node of the upper levels.
const FAR: usize = 16;

/// All bits cleared, then all bits set. The start of a read selects the siblings younger than a child ([`younger`]).
/// With a mask from memory the compiler updates a node by whole vectors; with comparisons it splits the node unevenly.
static STEP: [u16; 2 * TOP] = {
    let mut step = [0; 2 * TOP];
    let mut at = TOP;
    while at < step.len() {
        step[at] = u16::MAX;
        at += 1;
    }
    step
};
static FAR_STEP: [u32; 2 * FAR] = {
    let mut step = [0; 2 * FAR];
    let mut at = FAR;
    while at < step.len() {
        step[at] = u32::MAX;
        at += 1;
    }
    step
};

/// For each of N siblings, whether it is younger than a child: all bits set, or none.
#[inline(always)]
fn younger<T: Copy, const N: usize>(step: &[T], child: usize) -> [T; N] {
    let from = step.len() / 2 - 1 - child % N;
    std::array::from_fn(|sibling| step[from + sibling])
}

/// As many bits as counts of 16 bits allow. Clearing bits does not update the tree; call [`Block::subtract`]. Aligned
/// so that no vector spans two cache lines, which made one in six processes a third slower.
#[derive(Clone)]
#[repr(align(64))]
pub struct Block {
    words: [u64; WORDS],
    /// Bits set in the elder siblings: of each word, of each lowest node, and so on.
    low: [[u16; LOW]; MIDDLE * TOP],
    middle: [[u16; MIDDLE]; TOP],
    top: [u16; TOP],
}

impl Block {
    /// Number of bits.
    pub const BITS: usize = WORDS * WORD;

    /// All bits set.
    pub fn new() -> Block {
        let (low, middle, top) = ([[0; LOW]; MIDDLE * TOP], [[0; MIDDLE]; TOP], [0; TOP]);
        let mut block = Block { words: [u64::MAX; WORDS], low, middle, top };
        block.recount();
        block
    }

    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    #[inline(always)]
    pub fn clear(&mut self, at: usize) {
        self.words[at / WORD % WORDS] &= !(1 << (at % WORD));
    }

    /// Number of bits set before a place: in its own word as they are now, in earlier words as the tree counts them.
    #[inline(always)]
    pub fn before(&self, at: usize) -> u32 {
        let word = at / WORD % WORDS;
        let (low, middle) = (word / LOW, word / LOW / MIDDLE);
        (self.words[word] & ((1 << (at % WORD)) - 1)).count_ones()
            + u32::from(self.low[low][word % LOW])
            + u32::from(self.middle[middle][low % MIDDLE])
            + u32::from(self.top[middle])
    }

    /// Updates the tree after this many bits of a word were cleared.
    #[inline(always)]
    pub fn subtract(&mut self, word: usize, cleared: u16) {
        let word = word % WORDS;
        let (low, middle) = (word / LOW, word / LOW / MIDDLE);
        take(&mut self.low[low], word, cleared);
        take(&mut self.middle[middle], low, cleared);
        take(&mut self.top, middle, cleared);
    }

    /// Recounts the whole tree. Returns the number of set bits.
    fn recount(&mut self) -> u32 {
        let mut sums = [0; WORDS];
        for (sum, word) in sums.iter_mut().zip(&self.words) {
            *sum = word.count_ones() as u16;
        }
        sum_elders(&mut self.low, &mut sums);
        sum_elders(&mut self.middle, &mut sums);
        let last = u32::from(sums[TOP - 1]);
        sum_elders(std::slice::from_mut(&mut self.top), &mut sums);
        u32::from(self.top[TOP - 1]) + last
    }
}

/// Subtracts from the counts of the younger siblings. The whole node is read before it is written, as one vector.
#[inline(always)]
fn take<const N: usize>(node: &mut [u16; N], child: usize, cleared: u16) {
    let (before, younger) = (*node, younger::<u16, N>(&STEP, child));
    *node = std::array::from_fn(|child| before[child].wrapping_sub(cleared & younger[child]));
}

/// Fills a level from the sums of its children. Afterwards the first of `sums` are the sums of its nodes; that of a top
/// node may overflow.
fn sum_elders<const N: usize>(level: &mut [[u16; N]], sums: &mut [u16; WORDS]) {
    for (at, node) in level.iter_mut().enumerate() {
        let mut sum = 0u16;
        for (child, before) in node.iter_mut().enumerate() {
            *before = sum;
            sum = sum.wrapping_add(sums[at * N + child]);
        }
        sums[at] = sum;
    }
}

/// Any number of bits. Clearing bits does not update the tree; call [`Bits::subtract`].
pub struct Bits {
    blocks: Vec<Block>,
    /// Bits set in the elder siblings: of each block, of each node above blocks, and so on up to one node.
    far: Vec<Vec<[u32; FAR]>>,
}

impl Bits {
    /// At least this many bits, all set.
    pub fn new(bits: usize) -> Bits {
        let mut below = bits.div_ceil(Block::BITS).max(1);
        let blocks = vec![Block::new(); below];
        let mut far = Vec::new();
        while below > 1 {
            below = below.div_ceil(FAR);
            far.push(vec![[0; FAR]; below]);
        }
        let mut bits = Bits { blocks, far };
        bits.recount();
        bits
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.blocks.len() * Block::BITS
    }

    #[inline]
    pub fn clear(&mut self, at: usize) {
        self.blocks[at / Block::BITS].clear(at % Block::BITS);
    }

    /// Clears the bits from a place on that are cleared in `word`; they must have been set. Updates the tree.
    pub fn clear_as(&mut self, at: usize, word: u64) {
        let (first, rest) = (!word << (at % WORD), (!word >> 1) >> (WORD - 1 - at % WORD));
        for (word, cleared) in [(at / WORD, first), (at / WORD + 1, rest)] {
            if cleared > 0 {
                self.blocks[word / WORDS].words[word % WORDS] &= !cleared;
                self.subtract(word, cleared.count_ones());
            }
        }
    }

    /// Number of bits set before a place: in its own word as they are now, in earlier words as the tree counts them.
    #[inline]
    pub fn before(&self, at: usize) -> u32 {
        let mut child = at / Block::BITS;
        let mut before = self.blocks[child].before(at % Block::BITS);
        for level in &self.far {
            before += level[child / FAR][child % FAR];
            child /= FAR;
        }
        before
    }

    /// Updates the tree after this many bits of a word were cleared.
    #[inline]
    pub fn subtract(&mut self, word: usize, cleared: u32) {
        let mut child = word / WORDS;
        self.blocks[child].subtract(word % WORDS, cleared as u16);
        for level in &mut self.far {
            let (node, younger) = (&mut level[child / FAR], younger::<u32, FAR>(&FAR_STEP, child));
            let before = *node;
            *node = std::array::from_fn(|sibling| before[sibling].wrapping_sub(cleared & younger[sibling]));
            child /= FAR;
        }
    }

    /// Recounts the whole tree. O(bits).
    pub fn recount(&mut self) {
        let mut sums: Vec<u32> = self.blocks.iter_mut().map(Block::recount).collect();
        for level in &mut self.far {
            for (node, held) in level.iter_mut().zip(sums.chunks(FAR)) {
                let mut sum = 0;
                for (before, held) in node.iter_mut().zip(held) {
                    *before = sum;
                    sum += held;
                }
            }
            sums = sums.chunks(FAR).map(|held| held.iter().sum()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn before_counts_the_bits_set(
            words in 1usize..50_000,
            places in prop::collection::vec(any::<prop::sample::Index>(), 1..300),
        ) {
            let (mut one_by_one, mut by_word, mut recounted) = (Bits::new(words * WORD), Bits::new(words * WORD), Bits::new(words * WORD));
            let mut naive = vec![true; words * WORD];
            for place in &places {
                let at = place.index(naive.len());
                if std::mem::replace(&mut naive[at], false) {
                    one_by_one.clear(at);
                    one_by_one.subtract(at / WORD, 1);
                    let start = at.saturating_sub(WORD / 2);
                    by_word.clear_as(start, !(1 << (at - start)));
                    recounted.clear(at);
                }
            }
            recounted.recount();
            for place in &places {
                let at = place.index(naive.len());
                let before = naive[..at].iter().filter(|set| **set).count() as u32;
                prop_assert_eq!([one_by_one.before(at), by_word.before(at), recounted.before(at)], [before; 3]);
            }
        }
    }
}
