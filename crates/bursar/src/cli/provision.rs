//! The command line of `bursar provision`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::Bytes;

use super::ADVANCED;

/// `bursar provision`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar provision -- ./solver input.dat\n  \
    bursar provision --pool hpc --size 4G --pin -- ./solver input.dat\n  \
    bursar provision -- mpirun -n 4 ./app\n  \
    mpirun -n 4 bursar provision --stats job.json -- ./app     job.json.0 to job.json.3\n  \
    sudo bursar pool create 8G                                 a pool, once\n\n\
    Heap, anonymous mappings and large .bss are served with pages that are there\n\
    already, so that touching them does not fault. The program must be linked\n\
    dynamically. Its output, signals and exit status are its own.")]
pub struct Provision {
    /// The pool to take memory from [default: the pool `default` if its broker answers, else the kernel's huge pages]
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// Take this much from the pool when a process first needs some, instead of as it needs it
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = ADVANCED)]
    pub size: Option<Bytes>,
    /// Bind each process to the processors of the NUMA node that its memory is on
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub pin: bool,
    /// What to do with requests that the pool has no memory for
    #[arg(long, value_enum, default_value_t, hide_short_help = true, help_heading = ADVANCED)]
    pub on_exhaustion: OnExhaustion,
    /// Write the served memory as JSON to FILE (of a rank: FILE.RANK), or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// What to do with requests that the pool cannot serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub enum OnExhaustion {
    /// The kernel serves them
    #[default]
    Linux,
    /// They fail with ENOMEM
    Fail,
}
