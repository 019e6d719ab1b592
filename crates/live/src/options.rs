//! What watching is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use session::target::Found;

/// What `bursar watch` was told on its command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// What runs already; `None`: the command is started.
    pub target: Option<Found>,
    /// Time from line to line.
    pub interval: Duration,
    /// What looking may cost, as a share of one processor.
    pub overhead: f64,
    /// Whether looking never stops; else it is off while the working set stays what it is.
    pub always: bool,
    /// Whether hot pages are looked at less often than others.
    pub hot_set: bool,
    /// Whether processes that bursar did not start are looked at, too.
    pub intrusive: bool,
    /// Where every interval is kept.
    pub record: Option<PathBuf>,
    /// Where JSON lines go; `-`: standard output.
    pub json: Option<PathBuf>,
    /// Whether no lines are printed.
    pub quiet: bool,
    /// The command and its arguments; empty where there is a target.
    pub command: Vec<OsString>,
}
