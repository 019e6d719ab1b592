//! Common to all engines.

use crate::aet::Aet;
use crate::exact::Exact;
use crate::item::Item;
use crate::miss_ratio::MissRatioCurve;
use crate::shards::Shards;

/// Makes miss ratio curves of references, in one pass.
pub trait Engine<I: Item> {
    /// Takes references in order. Many at a time cost less than one by one.
    fn reference(&mut self, items: &[I]);

    /// The curve of the references since the start, or since the last [`restart`](Engine::restart).
    fn curve(&mut self) -> MissRatioCurve;

    /// Begins a new curve, and keeps what is known of the items: after a warm-up, or at the end of a time window.
    fn restart(&mut self);

    /// The share of the items that is sampled; 1 is all.
    fn sampled_share(&self) -> f64;
}

/// The kind of engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EngineKind {
    /// [`Exact`].
    Exact,
    /// [`Shards`] with this share of the items, above 0 and up to 1.
    ShardsRate(f64),
    /// [`Shards`] with this many items.
    ShardsSize(usize),
    /// [`Aet`] with this many items.
    Aet(usize),
}

/// References per batch; the exact engine is faster with more.
const BATCH: usize = 1 << 12;
const EXACT_BATCH: usize = 1 << 18;

impl EngineKind {
    /// The best number of references per call. With more, the references just read leave the caches; with fewer,
    /// engines process too few together.
    pub fn batch(self) -> usize {
        if self == EngineKind::Exact { EXACT_BATCH } else { BATCH }
    }

    /// Creates an engine.
    pub fn build<I: Item + 'static>(self) -> Box<dyn Engine<I>> {
        match self {
            EngineKind::Exact => Box::new(Exact::new()),
            EngineKind::ShardsRate(share) => Box::new(Shards::with_rate(share)),
            EngineKind::ShardsSize(most) => Box::new(Shards::with_size(most)),
            EngineKind::Aet(most) => Box::new(Aet::with_size(most)),
        }
    }
}
