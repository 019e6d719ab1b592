//! Programs whose memory is balanced: what they do, how their memory is controlled, and how decisions are carried out.
//!
//! [`balance::decide`] decides from values. This crate reads the values from cgroups, processes and virtual machines,
//! and sets the memory: by a cgroup's limit, by paging out, or by a balloon. [`huge_pages`] does the same for huge
//! pages, where `advise` decides.

mod control;
mod device;
pub mod huge_pages;
mod kinds;
mod reclaim;
mod step;
mod target;

pub use step::{Devices, Settings, observe, step, swap_of_each};
pub use target::{Asked, Target};
