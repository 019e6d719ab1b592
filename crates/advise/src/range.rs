//! What is known of a part of the address space.

use crate::walks::Walks;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4 << 10;
/// Bytes of a huge page, and of a region: what one covers.
pub const HUGE_BYTES: u64 = 2 << 20;
/// Pages in a huge page.
pub const PAGES_PER_HUGE: u64 = HUGE_BYTES / PAGE_BYTES;

/// Part of one mapping. Numbers of pages are of 4 KiB.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Range {
    /// How large it is, in bytes.
    pub bytes: u64,
    /// Pages that are there, those in huge pages included.
    pub present_pages: u64,
    /// Huge pages that are there.
    pub huge_pages: u64,
    /// Pages within these huge pages that hold nothing but zeroes.
    pub zero_pages: u64,
    /// Pages that will be touched while the decision is of use, those that were touched included; `None`: not known.
    pub touched_pages: Option<u64>,
    /// Accesses per second that miss the TLB, with pages of 4 KiB; `None`: not known.
    pub misses_per_second: Option<f64>,
    /// What these are like.
    pub walks: Walks,
    /// What each huge page saves of page walks, in ns, if that was measured: then misses are not asked.
    pub saved_ns: Option<f64>,
    /// What populating ahead saves, in ns per MiB, if that was measured: then faults are not counted.
    pub eager_ns_per_mib: Option<f64>,
    /// Pages that are shared with a process forked, and copied at the next write.
    pub shared_pages: u64,
}

impl Range {
    /// A range of which nothing is known.
    pub fn of_bytes(bytes: u64) -> Range {
        Range { bytes, ..Range::default() }
    }
}
