//! A row of bits, for keys that all weigh 1.
//!
//! Bits are counted by a tree of fixed depth: each child of a node knows how many bits are set in its elder siblings. To count
//! what stands before a slot is one sum along its path; to free one, the younger siblings of each node of the path lose one,
//! which is a few vector instructions. No loop depends on data, so nothing is predicted wrongly. Near the words counts are small,
//! so that more of them go into a vector. A word is counted when it is full, so that an access changes the tree once, not twice.
//!
//! Files are read in their order, again and again: neighbouring slots are then freed one after the other. They have one distance,
//! and the tree is told of a word's freed slots when the next word's turn comes.

use crate::row::Row;

const WORD: usize = 64;
/// Words below a near node, near nodes below a next one: so many slots that what stands before a child is told in 16 bits.
const NEAR: usize = 32;
const FAR: usize = 16;

/// Room for this many accesses per key before compaction: 1.3 bytes per key.
const SLOTS_PER_KEY: usize = 8;

/// Slots are numbered with 32 bits, of which the last number is kept free.
const MOST_WORDS: usize = u32::MAX as usize / WORD;

/// Which siblings of each child are younger: all bits set, or none. Read from memory, a node is changed by whole vectors; compared
/// on the way, the compiler leaves the eldest out and cuts the rest askew.
static YOUNGER_NEAR: [[u16; NEAR]; NEAR] = {
    let mut younger = [[0; NEAR]; NEAR];
    let mut child = 0;
    while child < NEAR * NEAR {
        younger[child / NEAR][child % NEAR] = if child % NEAR > child / NEAR { u16::MAX } else { 0 };
        child += 1;
    }
    younger
};
static YOUNGER_FAR: [[u32; FAR]; FAR] = {
    let mut younger = [[0; FAR]; FAR];
    let mut child = 0;
    while child < FAR * FAR {
        younger[child / FAR][child % FAR] = if child % FAR > child / FAR { u32::MAX } else { 0 };
        child += 1;
    }
    younger
};

/// The slots.
pub struct Slots {
    words: Vec<u64>,
    /// What the elder siblings hold: of each word below a node, of each of those nodes below the next ones.
    near: [Vec<[u16; NEAR]>; 2],
    /// The same above those, and so on up to one node.
    far: Vec<Vec<[u32; FAR]>>,
    next: usize,
    filled: u64,
    /// Slots of one word that were freed, and that the tree still counts.
    untold: Untold,
    /// The slot that was taken last; what was accessed after it is in the row by now.
    last: Option<Taken>,
}

#[derive(Default)]
struct Untold {
    word: usize,
    freed: u32,
}

struct Taken {
    slot: u32,
    next: usize,
    behind: u64,
}

impl Row for Slots {
    fn with_capacity(keys: usize) -> Slots {
        let words = (keys.max(WORD) * SLOTS_PER_KEY / WORD).min(MOST_WORDS);
        let first = words.div_ceil(NEAR);
        let mut below = first.div_ceil(NEAR);
        let near = [vec![[0; NEAR]; first], vec![[0; NEAR]; below]];
        let mut far = Vec::new();
        while below > 1 {
            below = below.div_ceil(FAR);
            far.push(vec![[0; FAR]; below]);
        }
        Slots { words: vec![0; words], near, far, next: 0, filled: 0, untold: Untold::default(), last: None }
    }

    fn room(&self) -> usize {
        self.words.len() * WORD - self.next
    }

    fn next(&self) -> u32 {
        self.next as u32
    }

    #[inline]
    fn push(&mut self, _weight: u64) {
        let word = self.next / WORD;
        self.words[word] |= 1 << (self.next % WORD);
        self.next += 1;
        self.filled += 1;
        if self.next.is_multiple_of(WORD) {
            self.change(word, self.words[word].count_ones());
        }
    }

    #[inline]
    fn clear(&mut self, slot: u32) {
        let slot = slot as usize;
        let word = slot / WORD;
        self.words[word] &= !(1 << (slot % WORD));
        self.filled -= 1;
        self.last = None;
        if word < self.next / WORD {
            if self.untold.word != word {
                let Untold { word, freed } = std::mem::replace(&mut self.untold, Untold { word, freed: 0 });
                self.change(word, freed.wrapping_neg());
            }
            self.untold.freed += 1;
        }
    }

    fn behind(&self, slot: u32) -> u64 {
        self.filled - 1 - self.before(slot)
    }

    #[inline]
    fn take(&mut self, slot: u32) -> u64 {
        // What was behind its elder neighbour is behind it, but for itself, and for that neighbour, which now is.
        let follows = |last: &&Taken| last.slot + 1 == slot && last.next + 1 == self.next;
        let behind = match self.last.as_ref().filter(follows) {
            Some(last) => last.behind,
            None => self.behind(slot),
        };
        self.clear(slot);
        self.last = Some(Taken { slot, next: self.next, behind });
        behind
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
    #[inline]
    fn before(&self, slot: u32) -> u64 {
        let mut child = slot as usize / WORD;
        let mut before = (self.words[child] & ((1 << (slot as usize % WORD)) - 1)).count_ones();
        for level in &self.near {
            before += u32::from(level[child / NEAR][child % NEAR]);
            child /= NEAR;
        }
        for level in &self.far {
            before += level[child / FAR][child % FAR];
            child /= FAR;
        }
        let is_after = slot as usize / WORD > self.untold.word;
        u64::from(before - if is_after { self.untold.freed } else { 0 })
    }

    /// A word holds so many more.
    fn change(&mut self, word: usize, by: u32) {
        let mut child = word;
        for level in &mut self.near {
            for (before, younger) in level[child / NEAR].iter_mut().zip(&YOUNGER_NEAR[child % NEAR]) {
                *before = before.wrapping_add(by as u16 & younger);
            }
            child /= NEAR;
        }
        for level in &mut self.far {
            for (before, younger) in level[child / FAR].iter_mut().zip(&YOUNGER_FAR[child % FAR]) {
                *before = before.wrapping_add(by & younger);
            }
            child /= FAR;
        }
    }
}
