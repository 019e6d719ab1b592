//! A run without a limit, as the planner sees it.

use model::Breakdown;

/// A run without a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// Which run of the record it was.
    pub run: u32,
    /// Seconds it ran.
    pub wall_seconds: f64,
    /// Seconds it waited for storage or memory, comparable with wall time: delays summed over the threads, divided by
    /// how many there were at a time; or pressure, where that says more.
    pub stall_seconds: Option<f64>,
    /// Peak charge, bytes.
    pub peak_charge_bytes: Option<u64>,
    /// What could not be reclaimed, at its peak, bytes.
    pub floor_bytes: Option<u64>,
    /// Of that, what surely cannot: heap and shared memory. Kernel memory may be caches that give way, and cgroup v1 does
    /// not tell which part is.
    pub held_bytes: Option<u64>,
    /// Mapped file pages at the peak, bytes: the program's own text and libraries at least.
    pub file_mapped_bytes: Option<u64>,
    /// Of those, what the kernel took to be in use, at most: their references are not seen once they are mapped.
    pub mapped_in_use_bytes: Option<u64>,
    /// Most file pages that were not yet written back, bytes.
    pub dirty_bytes: Option<u64>,
    /// File pages that the kernel counted as read again: at a cold start, those that the run before had cached.
    pub refaults: Option<u64>,
    /// CPU seconds used, all tasks.
    pub cpu_seconds: Option<f64>,
    /// Of it, what the kernel used.
    pub system_seconds: Option<f64>,
    /// Share of the tasks' life spent waiting for I/O.
    pub io_wait_share: Option<f64>,
    /// What the peak charge was made of.
    pub breakdown: Breakdown,
    /// How it went: CPU seconds used, all tasks, and the seconds since its start at which it had; both rising.
    pub pace: Vec<(f64, f64)>,
}
