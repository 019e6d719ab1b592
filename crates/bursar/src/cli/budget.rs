//! The command line of `bursar budget`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use session::tier::FastTier;

use super::values::{duration, fast_tier, feature, share};
use super::{ADVANCED, Results};

/// `bursar budget`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar budget -- ./solver input.dat\n  \
    bursar budget --slowdown 10% --html page.html -- ./solver input.dat\n  \
    bursar budget --prepare 'make clean' -- make -j8\n  \
    bursar budget -- sort < big.txt\n  \
    bursar budget --resume RECORD             go on after Ctrl-C\n  \
    bursar budget --fast-tier ram -- ./solver with zram or other swap for the rest\n  \
    bursar budget -- mpirun -n 64 ./solver    one limit on each of its nodes\n\n\
    The command is run some 4 to 16 times, so it must bear that. Each run reads\n\
    the same standard input: a file is opened again, a pipe is kept first (at\n\
    most 1 GiB). What it prints is dropped. Without root, systemd and Slurm\n\
    limits are emulated: see bursar doctor.")]
pub struct Budget {
    /// Slow-down that is allowed, relative to the run time without a limit
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub slowdown: f64,
    /// Runs without a limit [default: 1 to 4, by their spread], and at the limit of each usual method [default: 2 or 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50), hide_short_help = true, help_heading = ADVANCED)]
    pub runs: Option<u32>,
    /// Trials under a limit, at most; those of the usual methods are not counted
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true, help_heading = ADVANCED)]
    pub max_trials: u32,
    /// End a run after this time; under a limit, the limit is then too small
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Do not try the limits that the usual methods would set
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub no_compare: bool,
    /// Let the trials of the usual methods run to their end; by default they are stopped when far too slow
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub full: bool,
    /// Standard input of each run [default: bursar's own, if that is a file or a pipe]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Run this shell command before each run, outside the limit
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,
    /// Empty the whole machine's page cache before each run (root)
    #[arg(long, conflicts_with = "as_found", hide_short_help = true, help_heading = ADVANCED)]
    pub drop_caches: bool,
    /// Do not evict files that were cached before, though the command then reads them without a cost
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub as_found: bool,
    /// Time between samples, such as 100ms [default: adapts, so that sampling costs less than 1 % of one core]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true, help_heading = ADVANCED)]
    pub interval: Option<Duration>,
    /// Find the smallest fast tier; the rest uses slower memory: `ram`, with swap for the rest (zram, or a fast device), or the
    /// number of a NUMA node, with the other nodes for the rest (CXL, persistent memory)
    #[arg(long, value_name = "NODE", value_parser = fast_tier)]
    pub fast_tier: Option<FastTier>,
    /// Continue an interrupted budget, with its command and options
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["command", "record"])]
    pub resume: Option<PathBuf>,
    /// Keep a number in the record for bursar predict: variable NAME of the environment, or VALUE (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = feature, allow_hyphen_values = true, conflicts_with = "resume", hide_short_help = true, help_heading = ADVANCED)]
    pub feature: Vec<(String, f64)>,
    #[command(flatten)]
    pub results: Results,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "resume")]
    pub command: Vec<OsString>,
}
