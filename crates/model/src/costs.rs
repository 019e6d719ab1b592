//! What it costs to manage memory on a machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Costs in nanoseconds of the program's time, and what they depend on. A page has 4 KiB, a huge page 2 MiB.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Costs {
    /// A fault that gives one page, zeroing it included.
    pub base_fault_ns: f64,
    /// A fault that gives a huge page, zeroing it included.
    pub huge_fault_ns: f64,
    /// Zeroing a huge page.
    pub zero_ns: f64,
    /// Making a huge page of pages that are there (MADV_COLLAPSE), whatever they are.
    pub collapse_base_ns: f64,
    /// And for each of them that is present.
    pub collapse_page_ns: f64,
    /// How long a thread that touches the region meanwhile waits.
    pub collapse_stall_ns: f64,
    /// Splitting a huge page, and dropping its parts that are zero.
    pub split_ns: f64,
    /// Populating a huge page ahead of its first touch (MADV_POPULATE_WRITE).
    pub populate_huge_ns: f64,
    /// Copying a page that is shared since a fork, at the write to it.
    pub cow_ns: f64,
    /// What a huge page saves of an access at a random place that waits for the one before, where the entry of the page table is in
    /// the last cache.
    pub walk_dependent_ns: f64,
    /// Time that a huge page saves of an access that does not wait.
    pub walk_independent_ns: f64,
    /// Time that it saves of an access that waits, if the page table entry is in the second-level cache.
    pub walk_near_dependent_ns: f64,
    /// The same for an access that does not wait.
    pub walk_near_independent_ns: f64,
    /// Time that it saves of an access that waits, if the page table entry is in no cache.
    pub walk_memory_dependent_ns: f64,
    /// The same for an access that does not wait.
    pub walk_memory_independent_ns: f64,
    /// An access at a random place of much memory in pages of 4 KiB, if it waits for the one before.
    pub access_dependent_ns: f64,
    /// The same if it does not wait.
    pub access_independent_ns: f64,
    /// Bytes that the last cache keeps of what a program accesses, which are fewer than it has where others use it.
    pub last_cache_bytes: f64,
    /// A fault on a huge page that was zeroed before.
    pub pool_page_ns: f64,
    /// Swapping a page out.
    pub page_out_ns: f64,
    /// Bringing it back.
    pub page_in_ns: f64,
}

impl Costs {
    /// Those of a virtual machine of two cores with Linux 6.18, memory warm, swap in zram: medians. They stand in where
    /// nothing can be measured.
    pub fn reference() -> Costs {
        Costs {
            base_fault_ns: 1_340.0,
            huge_fault_ns: 89_000.0,
            zero_ns: 76_000.0,
            collapse_base_ns: 117_000.0,
            collapse_page_ns: 800.0,
            collapse_stall_ns: 500_000.0,
            split_ns: 300_000.0,
            populate_huge_ns: 91_000.0,
            cow_ns: 2_000.0,
            walk_dependent_ns: 120.0,
            walk_independent_ns: 2.0,
            walk_near_dependent_ns: 12.0,
            walk_near_independent_ns: 0.4,
            walk_memory_dependent_ns: 200.0,
            walk_memory_independent_ns: 20.0,
            access_dependent_ns: 390.0,
            access_independent_ns: 8.0,
            last_cache_bytes: 33_554_432.0,
            pool_page_ns: 13_000.0,
            page_out_ns: 4_400.0,
            page_in_ns: 4_700.0,
        }
    }
}
