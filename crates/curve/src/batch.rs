//! Many accesses to a row of bits, ranked together.
//!
//! Of the slots that a batch frees, only those change what stands behind another access of the batch; the rest of the row stays as it
//! is. So the old slots are sorted, and moved together into a small row that fits the first cache, with the batch's own slots after
//! them. There each access is ranked in its turn; what stood behind it elsewhere is one sum in the large row, which is told
//! once for all. Per access of a batch of n, with w words in the large row: O(1 + w / n).

use crate::bits::{Bits, Block, WORD};
use crate::table::FREE;

/// Accesses, so many that the small row is one block.
pub const MOST: usize = Block::BITS / 2 - WORD;

/// With fewer, or with a larger row than this for each, one by one is faster.
const LEAST: usize = 1 << 13;
const BITS_PER_ACCESS: usize = 4096;

/// Bits of a slot's number that are sorted by in one pass.
const DIGIT: usize = 12;

/// Accesses in their order. At most 28 bytes for each.
#[derive(Default)]
pub struct Batch {
    /// The slots that were accessed last (or [`FREE`]).
    pub lasts: Vec<u32>,
    /// The slot of the first access; each takes the next one.
    first: u32,
    /// Accesses to what stood in the row before: its slot, and below it the access's number. Sorted.
    old: Vec<u64>,
    spare: Vec<u64>,
    stands: Vec<Stand>,
}

/// What an access takes away.
#[derive(Clone, Copy, Default)]
struct Stand {
    /// Place in the small row.
    place: u32,
    /// What is behind it in the large row, without what the batch frees; in the end, in both.
    behind: u32,
}

impl Batch {
    /// Whether ranking so many accesses together is worth it.
    pub fn is_worth_it(accesses: usize, row: &Bits) -> bool {
        (LEAST..=MOST).contains(&accesses) && row.len() <= accesses * BITS_PER_ACCESS
    }

    /// Prepares what does not depend on the row.
    pub fn sort(&mut self, first: u32) {
        self.first = first;
        self.take_old();
        let bits = u32::BITS - first.leading_zeros();
        self.sort_old(bits);
    }

    /// Makes the accesses, of a sorted batch: shows each one's number and what stood behind it. Of the row's slots so many were
    /// filled before. Gives how many are then.
    pub fn renew(&mut self, row: &mut Bits, filled: u32, mut see: impl FnMut(usize, Option<u64>)) -> u32 {
        let own = self.own();
        let place = |last: &u32| last.wrapping_sub(self.first).wrapping_add(own as u32);
        self.stands.clear();
        self.stands.extend(self.lasts.iter().map(|last| Stand { place: place(last), behind: 0 }));
        let elsewhere = filled - self.old.len() as u32;
        // From the last to the first, so that what was cleared stands before none of the others.
        for (place, old) in (own - self.old.len()..own).zip(&self.old).rev() {
            let before = row.before(slot(*old)) - (place + self.old.len() - own) as u32;
            self.stands[access(*old)] = Stand { place: place as u32, behind: elsewhere - before };
            row.clear(slot(*old));
        }
        row.tell_all();
        let small = self.rank();
        let slots = self.first as usize..self.first as usize + self.lasts.len();
        for (at, word) in slots.step_by(WORD).zip(&small.words()[own / WORD..]) {
            row.clear_as(at, *word);
        }
        for (number, (stand, last)) in self.stands.iter().zip(&self.lasts).enumerate() {
            see(number, (*last != FREE).then_some(u64::from(stand.behind)));
        }
        filled + self.lasts.iter().filter(|last| **last == FREE).count() as u32
    }

    /// Finds the accesses to old slots. No branch depends on them, since it would be predicted wrongly.
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

    /// Sorts the old slots, whose numbers have so many bits, by their digits from the last to the first.
    fn sort_old(&mut self, bits: u32) {
        self.spare.resize(self.old.len(), 0);
        for shift in (32..32 + bits).step_by(DIGIT) {
            let digit = |old: u64| (old >> shift) as usize % (1 << DIGIT);
            // In 16 bits, which MOST fits, so that they leave room in the first cache.
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

    /// Where the batch's own slots begin in the small row.
    fn own(&self) -> usize {
        self.old.len().next_multiple_of(WORD)
    }

    /// Ranks the accesses in a small row, and gives it as it is after them. What fills its first places, before the old slots, is
    /// behind nothing.
    fn rank(&mut self) -> Block {
        let mut row = Block::new();
        let mut filled = self.own() as u32;
        for (last, stand) in self.lasts.iter().zip(&mut self.stands) {
            if *last == FREE {
                filled += 1;
                continue;
            }
            let place = stand.place as usize;
            stand.behind += filled - 1 - row.before(place);
            row.clear(place);
            row.tell(place / WORD, 1);
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
