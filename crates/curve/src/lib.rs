//! Stack distances and what is made of them. Pure: references in, curves out.
//!
//! [`ExactLru`] is the engine: for every access it says how many distinct keys were accessed since the last time, which
//! is the least number of pages at which an LRU cache would have had it (Mattson et al., 1970). [`file_demand`] turns one
//! run's references to the page cache into the refaults at every memory limit.

mod corners;
mod demand;
mod histogram;
mod lru;
mod slots;
mod table;

pub use demand::file_demand;
pub use lru::ExactLru;
