//! Options of watching.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use session::target::Found;

/// The command line of `bursar watch`.
#[derive(Clone, Debug)]
pub struct Options {
    /// A running target; `None`: the command is started.
    pub target: Option<Found>,
    /// Time between intervals.
    pub interval: Duration,
    /// The most that scans may cost, as a share of one processor.
    pub overhead: f64,
    /// Whether to scan all the time; otherwise scans stop while the working set does not change.
    pub always: bool,
    /// Whether to scan hot pages less often than others.
    pub hot_set: bool,
    /// Whether to scan processes that bursar did not start.
    pub intrusive: bool,
    /// Path of a record of all intervals.
    pub record: Option<PathBuf>,
    /// Path of JSON lines; `-`: standard output.
    pub json: Option<PathBuf>,
    /// Whether to print no lines.
    pub quiet: bool,
    /// The command and its arguments; empty if there is a target.
    pub command: Vec<OsString>,
}
