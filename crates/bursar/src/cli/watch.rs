//! The command line of `bursar watch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::ADVANCED;
use super::target::Target;
use super::values::{duration, rate};

/// `bursar watch`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar watch -- ./solver input.dat\n  \
    bursar watch --intrusive --pid 4711\n  \
    bursar watch --intrusive --json - --name db.service\n  \
    bursar watch --record db.bursar --intrusive --pid 4711\n  \
    bursar report db.bursar\n\n\
    --pid means the process and its descendants.\n\
    bursar prints a line for each interval: on standard error beside a command, else on\n\
    standard output. Ctrl-C ends it. Tracking clears the Accessed bits of some pages. That is\n\
    done to processes that bursar did not start only with --intrusive.")]
pub struct Watch {
    #[command(flatten)]
    pub target: Option<Target>,
    /// Time between lines
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s", hide_short_help = true, help_heading = ADVANCED)]
    pub interval: Duration,
    /// Cost of scanning that is allowed, as a share of one processor, the program's loss included
    #[arg(long, value_name = "SHARE", value_parser = rate, default_value = "2%", hide_short_help = true, help_heading = ADVANCED)]
    pub overhead: f64,
    /// Track all the time [default: tracking is off while the working set is stable]
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub always: bool,
    /// Scan hot pages as often as others, to measure the gain of scanning them less often
    #[arg(long, hide = true)]
    pub no_hot_set: bool,
    /// Also scan processes that bursar did not start
    #[arg(long)]
    pub intrusive: bool,
    /// Keep every interval in FILE
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write one JSON object per interval as a line to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print no lines
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "target", conflicts_with = "target")]
    pub command: Vec<OsString>,
}
