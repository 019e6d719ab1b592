//! What is known of a part of the address space.

use crate::walks::Walks;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4 << 10;
/// Bytes of a huge page, and of a region, the memory that a huge page covers.
pub const HUGE_BYTES: u64 = 2 << 20;
/// Pages in a huge page.
pub const PAGES_PER_HUGE: u64 = HUGE_BYTES / PAGE_BYTES;

/// Part of one mapping. Page counts are in pages of 4 KiB.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Range {
    /// Its size in bytes.
    pub bytes: u64,
    /// Present pages, including those in huge pages.
    pub present_pages: u64,
    /// Present huge pages.
    pub huge_pages: u64,
    /// Pages within these huge pages that hold only zeroes.
    pub zero_pages: u64,
    /// Pages that will be touched within the decision horizon, including those touched already; `None`: unknown.
    pub touched_pages: Option<u64>,
    /// Accesses per second that would miss the TLB with 4 KiB pages; `None`: unknown.
    pub misses_per_second: Option<f64>,
    /// Properties of these misses.
    pub walks: Walks,
    /// Page walk time that each huge page saves, in ns, if measured; replaces the estimate from misses.
    pub saved_ns: Option<f64>,
    /// Time saved by populating ahead, in ns per MiB, if measured; replaces the count of faults.
    pub eager_ns_per_mib: Option<f64>,
    /// Pages shared with a forked process, to be copied at the next write.
    pub shared_pages: u64,
}

impl Range {
    /// A range of which nothing is known.
    pub fn of_bytes(bytes: u64) -> Range {
        Range { bytes, ..Range::default() }
    }
}
