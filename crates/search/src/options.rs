//! What a search is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use session::tier::FastTier;

/// What `bursar budget` was told on its command line, or what the record of an interrupted search kept of that.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// How much slower than without a limit it may be: 0.05 is 5 %.
    pub slowdown: f64,
    /// Runs without a limit, and at each limit compared; `None`: as their spread asks for.
    pub runs: Option<u32>,
    /// Trials under a limit at most, the methods' own not counted.
    pub max_trials: u32,
    /// Ends any single run.
    pub timeout: Option<Duration>,
    /// Whether the limits that the usual methods would have set are tried.
    pub compare: bool,
    /// Whether the methods' trials run to their end, however slow they are.
    pub full: bool,
    /// Standard input of each run; `None`: bursar's own, if that is a file or a pipe.
    pub input: Option<PathBuf>,
    /// A shell command that is run before each run.
    pub prepare: Option<String>,
    /// Whether the whole machine's page cache is emptied before each run.
    pub drop_caches: bool,
    /// Whether what was in the page cache before is left alone.
    pub as_found: bool,
    /// Time between samples.
    pub interval: Option<Duration>,
    /// The fast memory whose least is looked for.
    pub fast_tier: Option<FastTier>,
    /// Where the record is kept; `None`: a new file in the state folder.
    pub record: Option<PathBuf>,
    /// Whether nothing is said while it goes on.
    pub quiet: bool,
}
