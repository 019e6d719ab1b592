//! References of a job: its processes from fork to exit, and the file pages they read, write and map.
//!
//! A [`Tracker`] follows given processes and all they fork, with the BPF programs of [`linux::bpf`]. The result is a
//! [`Tracked`], whose references are spooled in bounded memory.
//!
//! # What a reference is
//! - A buffered read or write of a page, counted once per call. Another read or write within the page that the same
//!   task referenced last does not count: that page is already on top of the stack.
//! - A fault on a mapped page. A fault on a cached page also maps up to 16 cached neighbours and marks them used, so
//!   those never fault themselves. The kernel counts them all as referenced, and so does the tracker. Later references
//!   through an existing mapping cause no event: a [`MappedTracker`] finds them by scans.
//! - Readahead beyond the requested range does not count, nor does a read beyond the end of the file.
//! - On ext4 and XFS every write counts. On other file systems a write to a dirty page causes no event. Writeback
//!   cleans the page within half a minute, after which a write counts again.
//!
//! Pages that leave the page cache for good, by truncation or deletion of their file, appear among the references as
//! [removals](model::ReferenceKind::Removal). Reclaimed pages do not.
//!
//! Direct I/O, DAX, tmpfs and file systems with their own caches are in [`Tracked::not_visible`], never in the
//! references. tmpfs and hugetlbfs are recognised among the files that a process has open when it exits.

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
