//! Stack distances and curves made from them. Pure: references in, curves out.
//!
//! - [`Exact`], [`Shards`] and [`Aet`] are the engines: fed with references, each makes a [`MissRatioCurve`]. An
//!   [`Item`] is what is referenced: numbers, for things of one size, or [`Object`]s with bytes. [`EngineKind`] names
//!   the engines.
//! - [`Profile`] makes the curves of a whole trace and of its tenants or time windows, in one pass.
//! - [`trace`] reads references from traces of other programs.
//! - [`ExactLru`] and [`ByteLru`] are the stacks below: for every access, how much was accessed since the last access
//!   to the same key, which is what an LRU cache must hold for a hit (Mattson et al., 1970).
//! - [`intermittent`] decides when memory need not be tracked, because its demand does not change.
//! - [`two_lists`] simulates Linux's page cache under one limit, where that is not an LRU stack.
//! - [`file_demand`] turns one run's references to the page cache into the refaults at every memory limit.
//!
//! ```
//! use curve::{Engine, Exact};
//!
//! let mut engine = Exact::new();
//! engine.reference(&[1u64, 2, 3, 1, 2, 3, 1, 2, 3]);
//! let curve = engine.curve();
//! assert_eq!(curve.miss_ratio_at(2), 1.0); // a loop over three pages gains nothing from two
//! assert_eq!(curve.miss_ratio_at(3), 1.0 / 3.0); // the first round misses at any size
//! assert_eq!(curve.working_set(0.5), Some(3));
//! ```

mod aet;
mod after_pause;
mod batch;
mod bits;
mod corners;
pub mod curves;
mod demand;
mod engine;
mod exact;
mod fenwick;
mod fresh;
mod histogram;
pub mod intermittent;
mod item;
mod lru;
mod miss_rate;
mod miss_ratio;
mod phases;
mod profile;
mod recent;
mod row;
mod sample;
mod shards;
mod sift;
mod slots;
mod staircase;
mod stratified;
mod table;
pub mod trace;
pub mod two_lists;
mod untracked;
mod weights;

pub use aet::Aet;
pub use after_pause::AfterPause;
pub use demand::file_demand;
pub use engine::{Engine, EngineKind};
pub use exact::Exact;
pub use fresh::Fresh;
pub use item::{Item, Object};
pub use lru::{ByteLru, ExactLru, Lru};
pub use miss_rate::MissRateCurve;
pub use miss_ratio::MissRatioCurve;
pub use profile::{OfRecord, Part, PartOf, Parts, Profile, ProfileError, Settings};
pub use recent::Seen;
pub use shards::Shards;
