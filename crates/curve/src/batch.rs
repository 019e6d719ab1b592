//! Ranks many accesses to a row of bits together.
//!
//! Only the slots that a batch itself frees change what stands behind its accesses; the rest of the row does not
//! change. So the old slots are sorted and copied into a small row that fits the first-level cache, followed by the
//! batch's own slots. Each access is ranked there in turn. What stands behind it elsewhere is one sum in the large row,
//! whose counts are updated once for the whole batch. Cost per access of a batch of n, with w words in the large row:
//! O(1 + w / n).

use crate::bits::{Bits, Block, WORD};
use crate::table::FREE;

/// Maximum number of accesses, so that the small row is one block.
pub const MAX_ACCESSES: usize = Block::BITS / 2 - WORD;

/// With fewer accesses, or with a larger row per access, ranking one by one is faster.
const MIN_ACCESSES: usize = 1 << 13;
const BITS_PER_ACCESS: usize = 4096;

/// Bits of a slot number sorted by in one pass.
const DIGIT: usize = 12;

/// Accesses in order. At most 28 bytes each.
#[derive(Default)]
pub struct Batch {
    /// For each access, the slot of the key's last access (or [`FREE`]).
    pub lasts: Vec<u32>,
    /// The slot of the first access; each later access takes the next one.
    first: u32,
    /// Accesses to keys that were in the row before: (slot << 32 | number of the access), sorted.
    old: Vec<u64>,
    spare: Vec<u64>,
    ranks: Vec<Rank>,
}

/// The rank of an access while it is computed.
#[derive(Clone, Copy, Default)]
struct Rank {
    /// Place in the small row.
    place: u32,
    /// Number of filled slots behind it in the large row that the batch does not free; in the end, in both rows.
    behind: u32,
}

impl Batch {
    /// Whether ranking this many accesses together is faster.
    pub fn is_worth_it(accesses: usize, row: &Bits) -> bool {
        (MIN_ACCESSES..=MAX_ACCESSES).contains(&accesses) && row.len() <= accesses * BITS_PER_ACCESS
    }

    /// Prepares what does not depend on the row.
    pub fn sort(&mut self, first: u32) {
        self.first = first;
        self.take_old();
        let bits = u32::BITS - first.leading_zeros();
        self.sort_old(bits);
    }

    /// Makes the accesses of a sorted batch. Calls `see` for each with its number and the count of filled slots that
    /// stood behind it. `filled`: filled slots of the row before; returns the number after.
    pub fn renew(&mut self, row: &mut Bits, filled: u32, mut see: impl FnMut(usize, Option<u64>)) -> u32 {
        let own = self.own();
        let place = |last: &u32| last.wrapping_sub(self.first).wrapping_add(own as u32);
        self.ranks.clear();
        self.ranks.extend(self.lasts.iter().map(|last| Rank { place: place(last), behind: 0 }));
        let elsewhere = filled - self.old.len() as u32;
        // From the last to the first, so that cleared slots do not stand before the remaining ones.
        for (place, old) in (own - self.old.len()..own).zip(&self.old).rev() {
            let before = row.before(slot(*old)) - (place + self.old.len() - own) as u32;
            self.ranks[access(*old)] = Rank { place: place as u32, behind: elsewhere - before };
            row.clear(slot(*old));
        }
        row.recount();
        let small = self.rank();
        let slots = self.first as usize..self.first as usize + self.lasts.len();
        for (at, word) in slots.step_by(WORD).zip(&small.words()[own / WORD..]) {
            row.clear_as(at, *word);
        }
        for (number, (rank, last)) in self.ranks.iter().zip(&self.lasts).enumerate() {
            see(number, (*last != FREE).then_some(u64::from(rank.behind)));
        }
        filled + self.lasts.iter().filter(|last| **last == FREE).count() as u32
    }

    /// Finds the accesses to old slots without branches, which would be mispredicted.
    fn take_old(&mut self) {
        let (lasts, first) = (&self.lasts, self.first);
        let mut count = 0;
        self.old.resize(lasts.len(), 0);
        for (number, last) in (0..).zip(lasts) {
            self.old[count] = u64::from(*last) << 32 | number;
            count += usize::from(*last < first);
        }
        self.old.truncate(count);
    }

    /// Radix sort of the old slots, whose numbers have `bits` bits, from the last digit to the first.
    fn sort_old(&mut self, bits: u32) {
        self.spare.resize(self.old.len(), 0);
        for shift in (32..32 + bits).step_by(DIGIT) {
            let digit = |old: u64| (old >> shift) as usize % (1 << DIGIT);
            // 16 bits are enough for MAX_ACCESSES, and leave room in the first-level cache.
            let mut starts = [0u16; 1 << DIGIT];
            self.old.iter().for_each(|old| starts[digit(*old)] += 1);
            let mut next = 0;
            for start in &mut starts {
                next += std::mem::replace(start, next);
            }
            for old in &self.old {
                let start = &mut starts[digit(*old)];
                self.spare[*start as usize] = *old;
                *start += 1;
            }
            std::mem::swap(&mut self.old, &mut self.spare);
        }
    }

    /// Start of the batch's own slots in the small row.
    fn own(&self) -> usize {
        self.old.len().next_multiple_of(WORD)
    }

    /// Ranks the accesses in a small row, and returns the row after them. Padding before the old slots stands behind
    /// nothing.
    fn rank(&mut self) -> Block {
        let mut row = Block::new();
        let mut filled = self.own() as u32;
        for (last, rank) in self.lasts.iter().zip(&mut self.ranks) {
            if *last == FREE {
                filled += 1;
                continue;
            }
            let place = rank.place as usize;
            rank.behind += filled - 1 - row.before(place);
            row.clear(place);
            row.subtract(place / WORD, 1);
        }
        row
    }
}

fn slot(old: u64) -> usize {
    (old >> 32) as usize
}

fn access(old: u64) -> usize {
    old as u32 as usize
}
