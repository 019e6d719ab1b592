//! The user's settings.

/// The options of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Allowed slow-down, 0.05 = 5 %.
    pub slowdown: f64,
    /// Number of reference runs; `None`: 1 to 4, as their spread requires.
    pub runs: Option<u32>,
    /// Maximum number of trials of the search.
    pub max_trials: u32,
    /// Also run under the limits that the usual methods name.
    pub compare: bool,
    /// Let those runs complete.
    pub full: bool,
    /// Stop any run after this many seconds.
    pub timeout_seconds: Option<f64>,
    /// Memory beyond the limit is kept in slower memory (swap, another node): no limit is known to be too small before it is tried, and its
    /// cost shows only in the run time.
    pub has_slower_memory: bool,
    /// The program sizes its heap or caches by its limit: its use without a limit says little about a limit.
    pub sizes_itself: bool,
    /// The share of a cgroup's available memory that may be dirty before its writers are throttled; `None` where the machine's memory
    /// decides, whatever the limit (cgroup v1 has no writeback of its own).
    pub dirty_share: Option<f64>,
    /// The machine's page size, in bytes.
    pub page_bytes: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            slowdown: 0.05,
            runs: None,
            max_trials: 12,
            compare: true,
            full: false,
            timeout_seconds: None,
            has_slower_memory: false,
            sizes_itself: false,
            dirty_share: None,
            page_bytes: 4096,
        }
    }
}
