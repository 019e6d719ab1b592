//! Time as a row of slots: one per access, filled while it is the last access of some key.

use crate::batch::Batch;
use crate::table::FREE;

/// Keeps the order of a stack of keys.
pub trait Row: Sized {
    /// New slot numbers after a compaction.
    type Numbers: Sync;

    /// An empty row with room for this many keys.
    fn with_capacity(keys: usize) -> Self;

    /// Slots left until it must be compacted; a compaction leaves at least 64.
    fn room(&self) -> usize;

    /// The slot of the next access.
    fn next(&self) -> u32;

    /// Takes the next slot for something of this weight.
    fn push(&mut self, weight: u64);

    /// Frees a slot whose key was accessed again or dropped.
    fn clear(&mut self, slot: u32);

    /// Total weight of the filled slots behind this one.
    fn behind(&self, slot: u32) -> u64;

    /// [`behind`](Row::behind), then [`clear`](Row::clear).
    fn take(&mut self, slot: u32) -> u64 {
        let behind = self.behind(slot);
        self.clear(slot);
        behind
    }

    /// Accesses a key whose last access has slot `last` (or [`FREE`]): takes the next slot for it. Returns the weight
    /// that stood behind.
    fn renew(&mut self, last: u32, weight: u64) -> Option<u64> {
        let distance = match last {
            FREE => None,
            // Common case: nothing stands behind the last access of all.
            last if last + 1 == self.next() => {
                self.clear(last);
                Some(0)
            }
            last => Some(self.take(last)),
        };
        self.push(weight);
        distance
    }

    /// Whether this many accesses are faster ranked together; then their batch must be [sorted](Batch::sort).
    fn ranks_together(&self, _accesses: usize) -> bool {
        false
    }

    /// [`renew`](Row::renew)s a batch of keys with these weights, and calls `see` for each with its number and the
    /// weight that stood behind. There must be [`room`](Row::room).
    fn renew_all(&mut self, batch: &mut Batch, weight: impl Fn(usize) -> u64, see: impl FnMut(usize, Option<u64>)) {
        renew_each(self, batch, weight, see);
    }

    /// Moves all filled slots together, in order.
    fn compact(&mut self) -> Self::Numbers;

    /// A slot's number after a compaction; [`FREE`] for [`FREE`].
    fn number(numbers: &Self::Numbers, slot: u32) -> u32;
}

/// Renews one by one.
pub fn renew_each(
    row: &mut impl Row,
    batch: &Batch,
    weight: impl Fn(usize) -> u64,
    mut see: impl FnMut(usize, Option<u64>),
) {
    batch.lasts.iter().enumerate().for_each(|(at, last)| see(at, row.renew(*last, weight(at))));
}
