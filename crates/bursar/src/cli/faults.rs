//! The command line of `bursar faults`.

use std::ffi::OsString;

use clap::Args;

use super::Results;

/// `bursar faults`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar faults -- ./solver input.dat\n  \
    bursar faults --json - -q -- ./solver input.dat\n  \
    bursar faults --html page.html --beside 'make -C src clean all' -- ./solver\n\n\
    How long each fault takes needs root (see bursar doctor); without, faults are\n\
    only counted. Meanwhile faults and system calls of all other processes take a\n\
    few tenths of a microsecond more.")]
pub struct Faults {
    /// Run the command a second time, beside this shell command, which is restarted whenever it ends
    #[arg(long, value_name = "LOAD")]
    pub beside: Option<String>,
    #[command(flatten)]
    pub results: Results,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}
