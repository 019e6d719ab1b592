//! Processes and what is known of each.

use serde::{Deserialize, Serialize};

/// Which process, for good: a PID is used again, a PID with its start time is not (within one boot, which the record's
/// [`crate::Header`] names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Process id (thread group id).
    pub pid: i32,
    /// Start time in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
}

/// One process of a job. What was not seen is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Its identity.
    pub key: ProcessKey,
    /// Its parent's PID when it was started or first seen.
    pub parent: Option<i32>,
    /// The last command name it had.
    pub command: String,
    /// Seconds from the run's begin to its start; negative if it is older than the run.
    pub started_seconds: Option<f64>,
    /// Seconds from start to exit.
    pub lifetime_seconds: Option<f64>,
    /// Its own peak RSS in bytes, as `wait4` says.
    pub max_rss_bytes: Option<u64>,
    /// User time.
    pub user_seconds: Option<f64>,
    /// System time.
    pub system_seconds: Option<f64>,
    /// Faults that needed no I/O.
    pub minor_faults: Option<u64>,
    /// Faults that needed I/O.
    pub major_faults: Option<u64>,
    /// Time its threads waited for block I/O, summed.
    pub io_delay_seconds: Option<f64>,
    /// Lifetimes of its threads, summed: the denominator of the I/O wait share.
    pub thread_seconds: Option<f64>,
    /// Exit status, or 128 + signal.
    pub exit_status: Option<i32>,
    /// Where these figures come from: `wait4`, `tracepoint`, `taskstats`, `sampled`.
    pub source: String,
}

impl ProcessRecord {
    /// One of which nothing is known yet but who it is.
    pub fn new(key: ProcessKey, source: &str) -> ProcessRecord {
        ProcessRecord {
            key,
            parent: None,
            command: String::new(),
            started_seconds: None,
            lifetime_seconds: None,
            max_rss_bytes: None,
            user_seconds: None,
            system_seconds: None,
            minor_faults: None,
            major_faults: None,
            io_delay_seconds: None,
            thread_seconds: None,
            exit_status: None,
            source: source.into(),
        }
    }
}
