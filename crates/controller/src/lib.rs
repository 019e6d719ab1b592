//! Programs whose memory is balanced: what they do, what holds their memory, and how decisions are carried out.
//!
//! [`balance::decide`] decides from values; this crate gets the values from cgroups, processes and virtual machines, and gives the
//! memory: by a cgroup's limit, by paging out, or by a balloon. [`huge_pages`] does the same for huge pages, by what `advise` decides.

mod device;
mod hold;
pub mod huge_pages;
mod kinds;
mod reclaim;
mod step;
mod target;

pub use step::{Devices, Settings, look, step, swap_of_each};
pub use target::{Asked, Target};
