//! A row of bits, and how many of them are set before a place.
//!
//! Bits are counted by a tree of fixed depth: each child of a node knows how many bits are set in its elder siblings. What
//! stands before a place is one sum along its path; for a change, the younger siblings of each node of the path are changed,
//! which is a few vector instructions. No loop depends on data, so nothing is predicted wrongly. A block's counts are small, so that
//! more of them go into a vector, and it lies together.

/// Bits in a word.
pub const WORD: usize = 64;

/// Words below a node of a block, those below a next one, and those below the topmost.
const LOW: usize = 8;
const MIDDLE: usize = 8;
const TOP: usize = 16;
const WORDS: usize = LOW * MIDDLE * TOP;

/// Blocks below a node, and so on.
const FAR: usize = 16;

/// All bits are cleared, then set. Where one reads from tells which siblings of a child are younger ([`younger`]). Read from memory,
/// a node is changed by whole vectors; compared on the way, the compiler leaves the eldest out and cuts the rest askew.
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

/// So many bits that what stands before one is told in 16 bits. Clearing does not change the tree: it is told. No vector of it lies in
/// two cache lines, which by chance one did in every sixth process, and took it a third longer.
#[derive(Clone)]
#[repr(align(64))]
pub struct Block {
    words: [u64; WORDS],
    /// What the elder siblings hold: of each word, of each node above words, and so on.
    low: [[u16; LOW]; MIDDLE * TOP],
    middle: [[u16; MIDDLE]; TOP],
    top: [u16; TOP],
}

impl Block {
    /// How many there are.
    pub const BITS: usize = WORDS * WORD;

    /// All set.
    pub fn new() -> Block {
        let (low, middle, top) = ([[0; LOW]; MIDDLE * TOP], [[0; MIDDLE]; TOP], [0; TOP]);
        let mut block = Block { words: [u64::MAX; WORDS], low, middle, top };
        block.tell_all();
        block
    }

    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    #[inline(always)]
    pub fn clear(&mut self, at: usize) {
        self.words[at / WORD % WORDS] &= !(1 << (at % WORD));
    }

    /// How many bits are set before a place: in its word as they are, in the words before as the tree was told.
    #[inline(always)]
    pub fn before(&self, at: usize) -> u32 {
        let word = at / WORD % WORDS;
        let (low, middle) = (word / LOW, word / LOW / MIDDLE);
        (self.words[word] & ((1 << (at % WORD)) - 1)).count_ones()
            + u32::from(self.low[low][word % LOW])
            + u32::from(self.middle[middle][low % MIDDLE])
            + u32::from(self.top[middle])
    }

    /// Tells the tree that so many of a word's bits were cleared.
    #[inline(always)]
    pub fn tell(&mut self, word: usize, cleared: u16) {
        let word = word % WORDS;
        let (low, middle) = (word / LOW, word / LOW / MIDDLE);
        take(&mut self.low[low], word, cleared);
        take(&mut self.middle[middle], low, cleared);
        take(&mut self.top, middle, cleared);
    }

    /// Tells the tree all anew. Gives how many bits are set.
    fn tell_all(&mut self) -> u32 {
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

/// Takes away from what stands before the younger siblings. The whole node is read before it is written, as one vector.
#[inline(always)]
fn take<const N: usize>(node: &mut [u16; N], child: usize, cleared: u16) {
    let (before, younger) = (*node, younger::<u16, N>(&STEP, child));
    *node = std::array::from_fn(|child| before[child].wrapping_sub(cleared & younger[child]));
}

/// Fills a level from what its children hold. Then the first of `sums` are what its nodes hold; that of a topmost node may not fit.
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

/// Any number of bits. Clearing does not change the tree: it is [told](Bits::tell).
pub struct Bits {
    blocks: Vec<Block>,
    /// What the elder siblings hold: of each block, of each node above blocks, and so on up to one node.
    far: Vec<Vec<[u32; FAR]>>,
}

impl Bits {
    /// At least so many, all set.
    pub fn new(bits: usize) -> Bits {
        let mut below = bits.div_ceil(Block::BITS).max(1);
        let blocks = vec![Block::new(); below];
        let mut far = Vec::new();
        while below > 1 {
            below = below.div_ceil(FAR);
            far.push(vec![[0; FAR]; below]);
        }
        let mut bits = Bits { blocks, far };
        bits.tell_all();
        bits
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.blocks.len() * Block::BITS
    }

    #[inline]
    pub fn clear(&mut self, at: usize) {
        self.blocks[at / Block::BITS].clear(at % Block::BITS);
    }

    /// Clears, from a place on, the bits that are cleared in a word, which were set, and tells the tree.
    pub fn clear_as(&mut self, at: usize, word: u64) {
        let (first, rest) = (!word << (at % WORD), (!word >> 1) >> (WORD - 1 - at % WORD));
        for (word, cleared) in [(at / WORD, first), (at / WORD + 1, rest)] {
            if cleared > 0 {
                self.blocks[word / WORDS].words[word % WORDS] &= !cleared;
                self.tell(word, cleared.count_ones());
            }
        }
    }

    /// How many bits are set before a place: in its word as they are, in the words before as the tree was told.
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

    /// Tells the tree that so many of a word's bits were cleared.
    #[inline]
    pub fn tell(&mut self, word: usize, cleared: u32) {
        let mut child = word / WORDS;
        self.blocks[child].tell(word % WORDS, cleared as u16);
        for level in &mut self.far {
            let (node, younger) = (&mut level[child / FAR], younger::<u32, FAR>(&FAR_STEP, child));
            let before = *node;
            *node = std::array::from_fn(|sibling| before[sibling].wrapping_sub(cleared & younger[sibling]));
            child /= FAR;
        }
    }

    /// Tells the tree all anew. O(bits).
    pub fn tell_all(&mut self) {
        let mut sums: Vec<u32> = self.blocks.iter_mut().map(Block::tell_all).collect();
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
        fn what_stands_before_is_what_was_set(
            words in 1usize..50_000,
            places in prop::collection::vec(any::<prop::sample::Index>(), 1..300),
        ) {
            let (mut told, mut told_as, mut told_all) = (Bits::new(words * WORD), Bits::new(words * WORD), Bits::new(words * WORD));
            let mut naive = vec![true; words * WORD];
            for place in &places {
                let at = place.index(naive.len());
                if std::mem::replace(&mut naive[at], false) {
                    told.clear(at);
                    told.tell(at / WORD, 1);
                    let start = at.saturating_sub(WORD / 2);
                    told_as.clear_as(start, !(1 << (at - start)));
                    told_all.clear(at);
                }
            }
            told_all.tell_all();
            for place in &places {
                let at = place.index(naive.len());
                let before = naive[..at].iter().filter(|set| **set).count() as u32;
                prop_assert_eq!([told.before(at), told_as.before(at), told_all.before(at)], [before; 3]);
            }
        }
    }
}
