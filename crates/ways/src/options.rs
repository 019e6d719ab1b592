//! What a comparison is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::way::Way;

/// What `bursar advise try` was told on its command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The ways that are compared with the plain run; empty: all that this machine and the command allow.
    pub ways: Vec<Way>,
    /// The most rounds; `None`: by how long the command takes.
    pub rounds: Option<u32>,
    /// No run begins after this time.
    pub time_limit: Option<Duration>,
    /// Standard input of each run; `None`: bursar's own, if that is a file or a pipe.
    pub input: Option<PathBuf>,
    /// Whether nothing is shown while it goes on.
    pub quiet: bool,
}
