//! What a job references: its processes from fork to exit, and the pages of files they read, write and map.
//!
//! A [`Tracker`] follows given processes and all they fork, with the BPF programs of [`linux::bpf`]. What it saw is
//! [`Tracked`]; the references in it are spooled in bounded memory.
//!
//! # What a reference is
//! - A buffered read or write of a page, counted once per call. Reading or writing on within the page that the same task
//!   referenced last is no further reference: the page is at the top of the stack already.
//! - A fault on a mapped page. A fault on a cached page maps up to 16 cached neighbours with it and marks them used, so
//!   they are never seen to fault: the kernel takes them all for referenced, and so does the tracker. Later references
//!   through a mapping that is already there make no event: a [`MappedTracker`] finds them by scans.
//! - Readahead beyond what was asked for, and what a read asked for beyond the end of the file, are none.
//! - On ext4 and XFS every write is seen; elsewhere a write to a page that is dirty already is not (writeback cleans it
//!   within half a minute, after which a write is seen again).
//!
//! Pages that leave the page cache for good, cut off or deleted with their file, are told among the references as
//! [removals](model::ReferenceKind::Removal); what reclaim takes is not.
//!
//! Direct I/O, DAX, tmpfs and file systems with caches of their own are in [`Tracked::not_visible`], never in the
//! references. tmpfs and hugetlbfs are noticed among the files a process has open when it exits.

mod cached;
mod files;
mod inside;
mod mapped;
pub mod pages;
mod processes;
mod references;
pub mod regions;
mod tracker;

pub use files::TrackedFile;
pub use inside::{Follower, InsideTracker, Opened, REFERENCES_INSIDE, SHARED_BYTES, SeenInside};
pub use mapped::{Joined, Mapped, MappedTracker};
pub use references::{Iter, References};
pub use tracker::{Error, Loading, Tracked, Tracker};
