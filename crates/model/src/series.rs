//! Time lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ProcessKey;

/// What a series counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Bytes in use at the moment.
    Bytes,
    /// Seconds, counted up since the run began.
    Seconds,
    /// Events, counted up since the run began.
    Events,
    /// Things there at the moment (tasks, processes).
    Count,
}

/// One figure over time.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Series {
    /// One of [`names`].
    pub name: String,
    /// The process it belongs to; `None`: the whole job.
    pub process: Option<ProcessKey>,
    /// The counted quantity.
    pub unit: Unit,
    /// The rung of its ladder that it came from, such as `cgroup v1 memory.stat`.
    pub rung: String,
    /// Nanoseconds since the run began, and the value.
    pub points: Vec<(u64, f64)>,
}

impl Series {
    /// The largest value.
    pub fn peak(&self) -> Option<f64> {
        self.points.iter().map(|(_, v)| *v).reduce(f64::max)
    }

    /// The last value.
    pub fn last(&self) -> Option<f64> {
        self.points.last().map(|(_, v)| *v)
    }

    /// The value in force at `t_ns`: the last at or before it.
    pub fn at(&self, t_ns: u64) -> Option<f64> {
        let after = self.points.partition_point(|(t, _)| *t <= t_ns);
        self.points[..after].last().map(|(_, v)| *v)
    }
}

/// The rung of [`names::HUGETLB`] where it is part of [`names::CHARGE`]: on cgroup v2 that is mounted with `memory_hugetlb_accounting`.
pub const HUGETLB_CHARGED: &str = "cgroup v2, within the charge";

/// Processors keep stocks of charged pages, 64 pages each, and lines are read a little later than the charge, in bytes.
pub const STOCKS_BYTES: u64 = 8 << 20;

/// The names series have. All are of the whole job except [`names::RSS`], which is per process.
pub mod names {
    macro_rules! series_names {
        ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
            $($(#[$doc])* pub const $name: &str = $text;)*
        };
    }
    series_names! {
        /// Memory that the kernel counts against the limit.
        CHARGE = "charge_bytes",
        /// Anonymous memory.
        HEAP = "heap_bytes",
        /// Page cache.
        FILE = "file_bytes",
        /// tmpfs and shared memory.
        SHARED = "shared_bytes",
        /// Kernel memory.
        KERNEL = "kernel_bytes",
        /// Pages of the hugetlb pools.
        HUGETLB = "hugetlb_bytes",
        /// Dirty file pages.
        FILE_DIRTY = "file_dirty_bytes",
        /// File pages under writeback.
        FILE_WRITEBACK = "file_writeback_bytes",
        /// Mapped file pages.
        FILE_MAPPED = "file_mapped_bytes",
        /// Active list, anonymous.
        ACTIVE_ANON = "active_anon_bytes",
        /// Inactive list, anonymous.
        INACTIVE_ANON = "inactive_anon_bytes",
        /// Active list, file.
        ACTIVE_FILE = "active_file_bytes",
        /// Inactive list, file.
        INACTIVE_FILE = "inactive_file_bytes",
        /// Unevictable list.
        UNEVICTABLE = "unevictable_bytes",
        /// Slab.
        SLAB = "slab_bytes",
        /// Reclaimable slab.
        SLAB_RECLAIMABLE = "slab_reclaimable_bytes",
        /// Page tables.
        PAGE_TABLES = "page_tables_bytes",
        /// Kernel stacks.
        KERNEL_STACKS = "kernel_stacks_bytes",
        /// Socket buffers.
        SOCKETS = "sockets_bytes",
        /// Swap in use.
        SWAP = "swap_bytes",
        /// Swap cache.
        SWAP_CACHE = "swap_cache_bytes",
        /// Transparent huge pages.
        HUGE_PAGES = "huge_pages_bytes",
        /// Locked memory.
        LOCKED = "locked_bytes",
        /// Pinned memory.
        PINNED = "pinned_bytes",
        /// Sum of the pages of hugetlb pools that processes map, whoever they are charged to.
        TREE_HUGETLB = "tree_hugetlb_bytes",
        /// Sum of the processes' RSS.
        TREE_RSS = "tree_rss_bytes",
        /// The anonymous part of that sum.
        TREE_RSS_ANON = "tree_rss_anon_bytes",
        /// Its part of mapped files.
        TREE_RSS_FILE = "tree_rss_file_bytes",
        /// Its part of shared memory.
        TREE_RSS_SHARED = "tree_rss_shared_bytes",
        /// Sum of the processes' PSS.
        TREE_PSS = "tree_pss_bytes",
        /// What the processes hold together, by a reading of their PSS during which hardly anything moved.
        TREE_HELD = "tree_held_bytes",
        /// What they hold together at least: of processes that may share memory, that of the largest.
        TREE_HELD_LEAST = "tree_held_least_bytes",
        /// Their heap, mapped files, shared memory and swap at least, each by itself: of processes that may share, that of the largest.
        TREE_HEAP_LEAST = "tree_heap_least_bytes",
        /// See above.
        TREE_FILE_LEAST = "tree_file_least_bytes",
        /// See above.
        TREE_SHARED_LEAST = "tree_shared_least_bytes",
        /// See above.
        TREE_SWAP_LEAST = "tree_swap_least_bytes",
        /// Their heap and shared memory at most: by the last reading of their PSS, with what they have obtained since.
        TREE_HEAP_MOST = "tree_heap_most_bytes",
        /// See above.
        TREE_SHARED_MOST = "tree_shared_most_bytes",
        /// Upper bound of the memory of the processes of all parts of a merged run. Single runs have no such series.
        TREE_HELD_MOST = "tree_held_most_bytes",
        /// The most that they can have obtained since the first sample, counted up.
        TREE_GAINED = "tree_gained_bytes",
        /// The most that they can have given back since the first sample, counted up.
        TREE_LOST = "tree_lost_bytes",
        /// MemTotal - MemFree of the whole machine.
        SYSTEM_USED = "system_used_bytes",
        /// SReclaimable of the whole machine.
        SYSTEM_SLAB_RECLAIMABLE = "system_slab_reclaimable_bytes",
        /// Names and inodes that the machine keeps, by their numbers. Slabs that have room for them do not grow.
        SYSTEM_NAMES = "system_names_bytes",
        /// Transparent huge pages of the whole machine of which a program gave back a part, counted up since boot. Read at the begin,
        /// and where more is charged than all lines have.
        SYSTEM_PARTED_HUGE_PAGES = "system_parted_huge_pages_bytes",
        /// Faults without I/O, counted up.
        MINOR_FAULTS = "minor_faults",
        /// Faults with I/O, counted up.
        MAJOR_FAULTS = "major_faults",
        /// File pages refaulted after reclaim, a running count.
        REFAULTS_FILE = "refaults_file",
        /// Anonymous pages refaulted after reclaim, a running count.
        REFAULTS_ANON = "refaults_anon",
        /// Pages scanned by reclaim, a running count.
        SCANNED = "pages_scanned",
        /// Pages taken by reclaim, counted up.
        RECLAIMED = "pages_reclaimed",
        /// Seconds in which some task stalled on memory.
        PSI_MEMORY_SOME = "psi_memory_some_seconds",
        /// Seconds in which all tasks stalled on memory.
        PSI_MEMORY_FULL = "psi_memory_full_seconds",
        /// Seconds in which some task stalled on I/O.
        PSI_IO_SOME = "psi_io_some_seconds",
        /// Seconds in which all tasks stalled on I/O.
        PSI_IO_FULL = "psi_io_full_seconds",
        /// Processes alive.
        PROCESSES = "processes",
        /// Threads alive.
        TASKS = "tasks",
        /// Threads in uninterruptible sleep.
        TASKS_WAITING = "tasks_waiting",
        /// Block I/O delay of the threads seen alive, summed.
        IO_DELAY = "io_delay_seconds",
        /// User and system time of the processes, with that of the children they have waited for, summed.
        CPU = "cpu_seconds",
        /// CPU time of bursar itself.
        OWN_CPU = "bursar_cpu_seconds",
        /// RSS of bursar itself.
        OWN_RSS = "bursar_rss_bytes",
        /// RSS of one process.
        RSS = "rss_bytes",
    }
}
