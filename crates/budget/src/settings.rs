//! What the person asked for.

/// The options of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Allowed slow-down, 0.05 = 5 %.
    pub slowdown: f64,
    /// Just so many reference runs; `None`: as many as their spread asks for, 1 to 4.
    pub runs: Option<u32>,
    /// Most trials of the search.
    pub max_trials: u32,
    /// Also run under the limits that the usual methods name.
    pub compare: bool,
    /// Let those run to their end.
    pub full: bool,
    /// End any run after so many seconds.
    pub timeout_seconds: Option<f64>,
    /// What has no room under its limit is kept in slower memory (swap, another node): nothing is known to be too little before it is
    /// tried, and what it costs shows in the run time alone.
    pub has_slower_memory: bool,
    /// The program reads its limit and sizes its heap or its caches by it: what it uses without a limit says little about a limit.
    pub sizes_itself: bool,
    /// The share of what a job's cgroup could hold that may be dirty before its writers are held back; `None` where they are
    /// held back by the machine's memory instead, whatever the limit (cgroup v1 has no writeback of its own).
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
