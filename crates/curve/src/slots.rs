//! Bits as a row of slots, for keys that all weigh 1.
//!
//! Slots not taken yet are set too. Nobody counts the bits before them, so an access changes the row once instead of
//! twice. Files are often read in order, again and again: neighbouring slots are then freed one after the other. They
//! have the same distance, and the tree is updated for a whole word when the next word's turn comes. Many accesses at
//! once are ranked together ([`Batch`]).

use crate::batch::Batch;
use crate::bits::{Bits, Block, WORD};
use crate::row::{Row, renew_each};
use crate::table::FREE;

/// Room for this many accesses per key before compaction: 1.4 bytes per key.
const SLOTS_PER_KEY: usize = 8;

/// Slots are numbered with 32 bits; the last number is reserved.
const MAX_SLOTS: usize = u32::MAX as usize / Block::BITS * Block::BITS;

/// The slots.
pub struct Slots {
    bits: Bits,
    next: usize,
    filled: u32,
    /// Freed slots of one word that the tree still counts.
    pending: Pending,
    /// The slot taken last; the key accessed after it is in the row by now.
    last: Option<Taken>,
}

#[derive(Default)]
struct Pending {
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
        let bits = Bits::new((keys * SLOTS_PER_KEY).min(MAX_SLOTS));
        Slots { bits, next: 0, filled: 0, pending: Pending::default(), last: None }
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
        if self.pending.word != word {
            self.flush();
            self.pending.word = word;
        }
        self.pending.freed += 1;
    }

    fn behind(&self, slot: u32) -> u64 {
        u64::from(self.filled - 1 - self.before(slot))
    }

    #[inline]
    fn take(&mut self, slot: u32) -> u64 {
        // For the slot after the last one taken: the slots behind that one, minus this slot itself, plus the key that
        // has just moved behind.
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
            self.flush();
            self.filled = batch.renew(&mut self.bits, self.filled, see);
            self.next += batch.lasts.len();
            self.last = None;
        } else {
            renew_each(self, batch, weight, see);
        }
    }

    fn compact(&mut self) -> Bits {
        self.flush();
        let filled = self.filled;
        let compact = Slots { next: filled as usize, filled, ..Slots::with_capacity(filled as usize) };
        std::mem::replace(self, compact).bits
    }

    #[inline]
    fn number(bits: &Bits, slot: u32) -> u32 {
        // Without a branch, which would be mispredicted.
        let number = bits.before((slot as usize).min(bits.len() - 1));
        if slot == FREE { FREE } else { number }
    }
}

impl Slots {
    /// Updates the tree with the pending freed slots.
    #[inline]
    fn flush(&mut self) {
        let Pending { word, freed } = std::mem::take(&mut self.pending);
        self.bits.subtract(word, freed);
    }

    /// Number of filled slots before this one.
    #[inline]
    fn before(&self, slot: u32) -> u32 {
        let is_after = slot as usize / WORD > self.pending.word;
        self.bits.before(slot as usize) - if is_after { self.pending.freed } else { 0 }
    }
}
