//! What a check is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use compare::runs::Figure;
use model::Bytes;

/// What `bursar check` was told on its command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments; empty where a record is checked.
    pub command: Vec<OsString>,
    /// The most that a run may need.
    pub max: Option<Bytes>,
    /// A record, or a folder of records, that the runs are compared with.
    pub baseline: Option<PathBuf>,
    /// Growth over the baseline that is allowed, beyond noise; `None`: as the figure has it.
    pub tolerance: Option<f64>,
    /// Figures that decide; empty: those that usually do.
    pub figures: Vec<Figure>,
    /// The most runs.
    pub runs: u32,
    /// The record whose runs are checked; `None`: runs are made.
    pub from: Option<PathBuf>,
    /// Whether a baseline of another machine is compared with, too.
    pub other_machine: bool,
    /// Ends a run.
    pub timeout: Option<Duration>,
    /// Standard input of each run; `None`: bursar's own, if that is a file or a pipe.
    pub input: Option<PathBuf>,
    /// A shell command that is run before each run.
    pub prepare: Option<String>,
    /// Where the record is kept; `None`: a new file in the state folder.
    pub record: Option<PathBuf>,
}
