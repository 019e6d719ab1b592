//! The command line of `bursar check`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use compare::runs::Figure;
use model::Bytes;

use super::ADVANCED;
use super::values::{duration, figure, growth};

/// `bursar check`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar run -n 10 -q --record base.bursar -- ./solver input.dat\n  \
    bursar check --baseline base.bursar -- ./solver input.dat\n  \
    bursar check --baseline base.bursar --tolerance 5% -- ./solver input.dat\n  \
    bursar check --max 2G -- ./solver input.dat\n  \
    bursar check --max 2G --from job.bursar                 runs nothing\n\n\
    Exit status: 0 passed, 1 failed, 2 cannot be decided, 124 after a time-out,\n\
    125 where runs or records cannot be compared. The command is run as often as\n\
    the spread asks for, at most --runs times; what it prints is dropped.")]
#[command(group = clap::ArgGroup::new("bound").required(true).multiple(true))]
pub struct Check {
    /// Fail if a run needs more than this (such as 2G). Compared are the floor (memory that cannot be reclaimed), where it is
    /// unknown App-MaxRSS (the largest process), or the figures of --figures
    #[arg(long, value_name = "SIZE", group = "bound")]
    pub max: Option<Bytes>,
    /// Fail if the runs need more than those of this record, or of all records of the command in this folder
    #[arg(long, value_name = "RECORD|FOLDER", group = "bound")]
    pub baseline: Option<PathBuf>,
    /// Allowed growth over the baseline, beyond noise [default: none; for run-time 25%]
    #[arg(long, value_name = "SHARE", value_parser = growth, requires = "baseline")]
    pub tolerance: Option<f64>,
    /// Figures that decide [default: floor for --max; heap, floor and app-maxrss for --baseline]
    #[arg(long, value_name = "FIGURE", value_delimiter = ',', num_args = 1.., value_parser = figure())]
    pub figures: Vec<Figure>,
    /// Runs, at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000), hide_short_help = true, help_heading = ADVANCED)]
    pub runs: u32,
    /// Check the runs of this record instead of running the command
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["runs", "timeout", "record"])]
    pub from: Option<PathBuf>,
    /// Compare with a baseline of another machine, too: its memory figures hold for equal programs and equal processors only
    #[arg(long, requires = "baseline", hide_short_help = true, help_heading = ADVANCED)]
    pub other_machine: bool,
    /// End a run after this time (status 124)
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true, help_heading = ADVANCED)]
    pub timeout: Option<Duration>,
    /// Standard input of each run [default: bursar's own, if that is a file or a pipe]
    #[arg(long, value_name = "FILE", conflicts_with = "from", hide_short_help = true, help_heading = ADVANCED)]
    pub input: Option<PathBuf>,
    /// Run this shell command before each run, outside of it
    #[arg(long, value_name = "CMD", conflicts_with = "from", hide_short_help = true, help_heading = ADVANCED)]
    pub prepare: Option<String>,
    /// Leave text that the regular expression PATTERN matches (its first group, if it has one) in the command line and in
    /// --prepare out of the record and all reports; may be given more than once
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true, hide_short_help = true, help_heading = ADVANCED)]
    pub redact: Vec<regex::Regex>,
    /// Keep the record of the runs in FILE [default: a new file under ~/.local/state/bursar]
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = ADVANCED)]
    pub record: Option<PathBuf>,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the result as JUnit XML to FILE
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the figures as a Markdown table to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "from", conflicts_with = "from")]
    pub command: Vec<OsString>,
}
