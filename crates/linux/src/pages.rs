//! Mapped memory of another process: its mappings, which pages were accessed, and clearing their Accessed bits.
//!
//! [`Tables`] reads the bits from the page tables by BPF; [`Arming`] clears them page by page. Without root, [`clear_referenced`] and
//! [`referenced`] do so for a whole process. Clearing affects only timing slightly and the kernel's order of reclaim, so nothing has to be
//! undone.

mod accesses;
mod advice;
mod arming;
mod frames;
mod mappings;
mod nearness;
mod referenced;
mod returns;
mod ring;
mod tables;

pub use accesses::{Access, Accesses};
pub use advice::{Advised, Refusal};
pub use arming::Arming;
pub use frames::{Frame, Frames};
pub use mappings::{FileMapping, Mapping, file_mappings, mappings};
pub use nearness::run_beside;
pub use referenced::{Referenced, clear_referenced, clear_referenced_files, referenced};
pub use returns::{Return, Returns};
pub use tables::{Error, MOST_ADDRESSES, REGION_BYTES, Region, State, Tables, Target, available};
