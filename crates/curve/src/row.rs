//! Time as a row of slots: one per access, filled while it is some key's last access.

use crate::batch::Batch;
use crate::table::FREE;

/// What a stack of keys keeps its order in.
pub trait Row: Sized {
    /// The new numbers of the slots after a compaction.
    type Numbers: Sync;

    /// An empty row with room for so many keys.
    fn with_capacity(keys: usize) -> Self;

    /// How many slots are left before it must be compacted; then there are 64 at least.
    fn room(&self) -> usize;

    /// The slot of the next access.
    fn next(&self) -> u32;

    /// Takes the next slot for something of this weight.
    fn push(&mut self, weight: u64);

    /// Frees a slot whose key has been accessed anew or forgotten.
    fn clear(&mut self, slot: u32);

    /// The weight of all that stands behind a filled slot.
    fn behind(&self, slot: u32) -> u64;

    /// [`behind`](Row::behind), then [`clear`](Row::clear).
    fn take(&mut self, slot: u32) -> u64 {
        let behind = self.behind(slot);
        self.clear(slot);
        behind
    }

    /// An access to what was last accessed in a slot (or [`FREE`]): takes the next slot for it. Gives what stood behind.
    fn renew(&mut self, last: u32, weight: u64) -> Option<u64> {
        let distance = match last {
            FREE => None,
            // The last access of all has nothing behind it, and that is common.
            last if last + 1 == self.next() => {
                self.clear(last);
                Some(0)
            }
            last => Some(self.take(last)),
        };
        self.push(weight);
        distance
    }

    /// Whether so many accesses are better ranked together: then their batch must be [sorted](Batch::sort).
    fn ranks_together(&self, _accesses: usize) -> bool {
        false
    }

    /// [`renew`](Row::renew)s a batch, of things of these weights, and shows each one's number and what stood behind it. There must
    /// be [`room`](Row::room).
    fn renew_all(&mut self, batch: &mut Batch, weight: impl Fn(usize) -> u64, see: impl FnMut(usize, Option<u64>)) {
        renew_each(self, batch, weight, see);
    }

    /// Moves all filled slots together, in their order.
    fn compact(&mut self) -> Self::Numbers;

    /// A slot's number after a compaction; [`FREE`] for [`FREE`].
    fn number(numbers: &Self::Numbers, slot: u32) -> u32;
}

/// One by one.
pub fn renew_each(
    row: &mut impl Row,
    batch: &Batch,
    weight: impl Fn(usize) -> u64,
    mut see: impl FnMut(usize, Option<u64>),
) {
    batch.lasts.iter().enumerate().for_each(|(at, last)| see(at, row.renew(*last, weight(at))));
}
