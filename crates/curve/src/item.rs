//! What is referenced: pages and other things of one size, or objects of any size.

use crate::row::Row;
use crate::slots::Slots;
use crate::weights::Weights;

/// What an engine is fed with. A number is a thing of size 1, so that sizes are numbers of things; an [`Object`] has
/// bytes, so that sizes are bytes. The two make different engines.
pub trait Item: Copy + Sync {
    /// How a stack of them keeps its order.
    type Row: Row;

    /// Up to 2^(this + 1), sizes are told apart; above, to one part in 2^this.
    const FINENESS: u32;

    /// Which one it is.
    fn key(&self) -> u64;

    /// How much of a cache it takes; 1 at least.
    fn weight(&self) -> u64;
}

/// An object of a cache whose size is in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Which one it is.
    pub key: u64,
    /// How much of a cache it takes now. One of no bytes takes one.
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
