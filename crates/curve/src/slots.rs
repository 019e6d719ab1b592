//! Bits as a row of slots, for keys that all weigh 1.
//!
//! Slots that nothing has taken yet are set, too: nobody asks what stands before them, and so an access changes the row once, not
//! twice. Files are read in their order, again and again: neighbouring slots are then freed one after the other. They have one
//! distance, and the tree is told of a word's freed slots when the next word's turn comes. Many accesses at once are ranked
//! together ([`Batch`]).

use crate::batch::Batch;
use crate::bits::{Bits, Block, WORD};
use crate::row::{Row, renew_each};
use crate::table::FREE;

/// Room for this many accesses per key before compaction: 1.4 bytes per key.
const SLOTS_PER_KEY: usize = 8;

/// Slots are numbered with 32 bits, of which the last number is kept free.
const MOST_SLOTS: usize = u32::MAX as usize / Block::BITS * Block::BITS;

/// The slots.
pub struct Slots {
    bits: Bits,
    next: usize,
    filled: u32,
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
    type Numbers = Bits;

    fn with_capacity(keys: usize) -> Slots {
        let bits = Bits::new((keys * SLOTS_PER_KEY).min(MOST_SLOTS));
        Slots { bits, next: 0, filled: 0, untold: Untold::default(), last: None }
    }

    fn room(&self) -> usize {
        self.bits.len() - self.next
    }

    fn next(&self) -> u32 {
        self.next as u32
    }

    #[inline]
    fn push(&mut self, _weight: u64) {
        self.next += 1;
        self.filled += 1;
    }

    #[inline]
    fn clear(&mut self, slot: u32) {
        let word = slot as usize / WORD;
        self.bits.clear(slot as usize);
        self.filled -= 1;
        self.last = None;
        if self.untold.word != word {
            self.tell();
            self.untold.word = word;
        }
        self.untold.freed += 1;
    }

    fn behind(&self, slot: u32) -> u64 {
        u64::from(self.filled - 1 - self.before(slot))
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

    fn ranks_together(&self, accesses: usize) -> bool {
        Batch::is_worth_it(accesses, &self.bits)
    }

    fn renew_all(&mut self, batch: &mut Batch, weight: impl Fn(usize) -> u64, see: impl FnMut(usize, Option<u64>)) {
        if self.ranks_together(batch.lasts.len()) {
            self.tell();
            self.filled = batch.renew(&mut self.bits, self.filled, see);
            self.next += batch.lasts.len();
            self.last = None;
        } else {
            renew_each(self, batch, weight, see);
        }
    }

    fn compact(&mut self) -> Bits {
        self.tell();
        let filled = self.filled;
        let compact = Slots { next: filled as usize, filled, ..Slots::with_capacity(filled as usize) };
        std::mem::replace(self, compact).bits
    }

    #[inline]
    fn number(bits: &Bits, slot: u32) -> u32 {
        // Without a branch, which would be predicted wrongly.
        let number = bits.before((slot as usize).min(bits.len() - 1));
        if slot == FREE { FREE } else { number }
    }
}

impl Slots {
    /// Tells the tree what it was not told.
    #[inline]
    fn tell(&mut self) {
        let Untold { word, freed } = std::mem::take(&mut self.untold);
        self.bits.tell(word, freed);
    }

    /// How many slots before this one are filled.
    #[inline]
    fn before(&self, slot: u32) -> u32 {
        let is_after = slot as usize / WORD > self.untold.word;
        self.bits.before(slot as usize) - if is_after { self.untold.freed } else { 0 }
    }
}
