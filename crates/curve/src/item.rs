//! Items that are referenced: pages and other things of one size, or objects of any size.

use crate::row::Row;
use crate::slots::Slots;
use crate::weights::Weights;

/// An item for an engine. A number is an item of size 1, so that sizes are numbers of items. An [`Object`] has bytes,
/// so that sizes are bytes. The two make different engines.
pub trait Item: Copy + Sync {
    /// How a stack of these items keeps its order.
    type Row: Row;

    /// Sizes up to 2^(this + 1) are exact; above, precise to one part in 2^this.
    const FINENESS: u32;

    /// Identifies the item.
    fn key(&self) -> u64;

    /// Its size in a cache; 1 at least.
    fn weight(&self) -> u64;
}

/// An object in a cache whose size is in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Identifies the object.
    pub key: u64,
    /// Its current size in a cache. An object of no bytes counts as one byte.
    pub bytes: u64,
}

impl Item for u64 {
    type Row = Slots;

    const FINENESS: u32 = 30;

    fn key(&self) -> u64 {
        *self
    }

    fn weight(&self) -> u64 {
        1
    }
}

impl Item for Object {
    type Row = Weights;

    const FINENESS: u32 = 10;

    fn key(&self) -> u64 {
        self.key
    }

    fn weight(&self) -> u64 {
        self.bytes.max(1)
    }
}
