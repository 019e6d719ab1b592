//! The command line of `bursar run`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use model::Bytes;

use super::target::Target;
use super::values::{duration, feature, limit};
use super::{ADVANCED, Results};

/// `bursar run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar run -- ./solver input.dat\n  \
    bursar run --json - -- sort big.txt > /dev/null\n  \
    bursar run -n 5 -- make -j8\n  \
    bursar run --limit 2G -- ./solver input.dat\n  \
    bursar run --pid 4711 --tree\n  \
    bursar run --name db.service\n\n\
    With --pid, --cgroup or --name, what runs already is observed until it ends or Ctrl-C.\n\
    The report goes to standard error; the command's own output is left alone.\n\
    Sizes are binary: 512M and 512MiB are the same. Times: 90s, 500ms, 5m.")]
pub struct Run {
    #[command(flatten)]
    pub target: Option<Target>,
    /// With --pid: the process and all its descendants
    #[arg(long, requires = "pid", conflicts_with = "command")]
    pub tree: bool,
    /// Run the command under this memory limit, without swap (such as 512M or 1.5GiB)
    #[arg(long, value_name = "SIZE", value_parser = limit, conflicts_with = "target")]
    pub limit: Option<Bytes>,
    /// Run the command N times, and print mean, standard deviation and spread
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, conflicts_with = "target", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Time between samples, such as 100ms [default: adapts, so that sampling costs less than 1 % of one core]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true, help_heading = ADVANCED)]
    pub interval: Option<Duration>,
    /// End the command and all that it has started after this time (status 124)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Keep a number in the record for bursar predict: variable NAME of the environment, or VALUE (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = feature, allow_hyphen_values = true, conflicts_with = "target", hide_short_help = true, help_heading = ADVANCED)]
    pub feature: Vec<(String, f64)>,
    #[command(flatten)]
    pub results: Results,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "target", conflicts_with = "target")]
    pub command: Vec<OsString>,
}
