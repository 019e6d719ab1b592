//! What all engines have in common.

use crate::aet::Aet;
use crate::exact::Exact;
use crate::item::Item;
use crate::miss_ratio::MissRatioCurve;
use crate::shards::Shards;

/// Makes miss ratio curves of references, in one pass.
pub trait Engine<I: Item> {
    /// Takes in references, in their order. Many at a time cost less than one by one.
    fn reference(&mut self, items: &[I]);

    /// The curve of the references since the start, or since the last [`restart`](Engine::restart).
    fn curve(&mut self) -> MissRatioCurve;

    /// Begins a new curve, with all that is known of the items: after a warm-up, or at the end of a window of time.
    fn restart(&mut self);

    /// The share of the items that is looked at; 1 is all.
    fn sampled_share(&self) -> f64;
}

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EngineKind {
    /// [`Exact`].
    Exact,
    /// [`Shards`] of this share of the items, above 0 and up to 1.
    ShardsRate(f64),
    /// [`Shards`] of so many items.
    ShardsSize(usize),
    /// [`Aet`] of so many items.
    Aet(usize),
}

/// References are handed over by so many at a time; the exact engine is faster with more.
const BATCH: usize = 1 << 12;
const EXACT_BATCH: usize = 1 << 18;

impl EngineKind {
    /// How many references are best handed over at a time: with more, those that were just read are no longer in the caches, with
    /// fewer, engines look at too few together.
    pub fn batch(self) -> usize {
        if self == EngineKind::Exact { EXACT_BATCH } else { BATCH }
    }

    /// A new engine.
    pub fn build<I: Item + 'static>(self) -> Box<dyn Engine<I>> {
        match self {
            EngineKind::Exact => Box::new(Exact::new()),
            EngineKind::ShardsRate(share) => Box::new(Shards::with_rate(share)),
            EngineKind::ShardsSize(most) => Box::new(Shards::with_size(most)),
            EngineKind::Aet(most) => Box::new(Aet::with_size(most)),
        }
    }
}
