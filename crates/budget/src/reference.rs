//! A run without a limit, as evidence.

use model::Breakdown;

/// A run without a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// Its number in the record.
    pub run: u32,
    /// Run time in seconds.
    pub wall_seconds: f64,
    /// Time waiting for storage or memory in seconds, comparable with wall time: delays summed over threads, divided by the number of
    /// simultaneous threads; or pressure, if that is more.
    pub stall_seconds: Option<f64>,
    /// Peak charge, bytes.
    pub peak_charge_bytes: Option<u64>,
    /// Peak of the unreclaimable memory, bytes.
    pub floor_bytes: Option<u64>,
    /// The part that surely is: heap and shared memory. Kernel memory may be caches that shrink, and cgroup v1 does not show which part.
    pub held_bytes: Option<u64>,
    /// Mapped file pages at the peak, bytes: at least the program's own text and libraries.
    pub file_mapped_bytes: Option<u64>,
    /// The part that the kernel considered in use, at most: references to mapped pages are not visible.
    pub mapped_in_use_bytes: Option<u64>,
    /// Peak of the dirty file pages, bytes.
    pub dirty_bytes: Option<u64>,
    /// Refaults that the kernel counted: at a cold start, pages that the previous run had cached.
    pub refaults: Option<u64>,
    /// CPU seconds used, all tasks.
    pub cpu_seconds: Option<f64>,
    /// Of it, what the kernel used.
    pub system_seconds: Option<f64>,
    /// Share of the tasks' life spent waiting for I/O.
    pub io_wait_share: Option<f64>,
    /// The breakdown of the peak charge.
    pub breakdown: Breakdown,
    /// Its progress: CPU seconds of all tasks, and the seconds since its start at which they were reached; both rising.
    pub pace: Vec<(f64, f64)>,
}
