//! Mapped memory of a process that knows nothing of it: what is mapped where, which pages were accessed, and how their
//! Accessed bits are cleared.
//!
//! [`Tables`] reads the bits out of the page tables by BPF; [`Arming`] clears them page by page; [`clear_referenced`] and
//! [`referenced`] are the way of a user who is not root, for a whole process at once. Clearing changes nothing that a program
//! can see but a little time, and the kernel's order of reclaim; nothing of it can be or need be undone afterwards.

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
