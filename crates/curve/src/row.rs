//! Time as a row of slots: one per access, filled while it is some key's last access.

use crate::table::FREE;

/// What a stack of keys keeps its order in.
pub trait Row {
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

    /// Moves all filled slots together, in their order, and gives them their new numbers.
    fn compact<'a>(&mut self, filled: impl Iterator<Item = &'a mut u32>);
}
