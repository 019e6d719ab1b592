//! A limit on memory where none can be set: without a cgroup, and without rights.
//!
//! What a limit does to a program that fits its heap into it is to its page cache, and that can be had without the kernel's help: the
//! program's references are noted inside its processes ([`track::InsideTracker`]), kept in the kernel's two lists
//! ([`curve::two_lists`]), and what reclaim would have taken from their end is dropped from the page cache by `posix_fadvise`. What is
//! referenced again is then read again from the storage, as under a limit. A job whose heap grows beyond the limit would have been
//! killed, which needs no emulation.
//!
//! A [`Hold`] is told what the job has that no reclaim can take ([`Shared::set_held`]) and follows the references; [`Shared::emulated`]
//! says how well it went. Files that a process maps are not dropped, nor are those that nobody here can open.

mod file;
mod hold;
mod pages;

pub use hold::{Hold, Shared};
