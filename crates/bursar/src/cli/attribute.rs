//! The command line of `bursar attribute`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use model::Bytes;

use super::values::{component, duration};
use super::{ADVANCED, Results};

/// `bursar attribute`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar attribute -- mpirun -n 4 ./app\n  \
    bursar attribute --component hdf5='libhdf5*.so*' -- mpirun -n 4 ./app\n  \
    bursar attribute --by-library -- python3 model.py\n  \
    bursar attribute --by touch --comm-matrix -- mpirun -n 4 ./app\n  \
    bursar attribute --scaling 1,2,4 -- mpirun -n {} ./app\n  \
    mpirun -n 4 bursar attribute --record job.bursar -- ./app\n\n\
    Memory is whose call obtained it, or by touch in whose code it first became\n\
    resident. A library in the command sees that, so the command must be linked\n\
    dynamically. Logs are kept beside the record while it runs: with several nodes,\n\
    name one that all see by --record.")]
pub struct Attribute {
    /// Attribute allocations by libraries that match GLOB to NAME; mpi=… adds to the known MPI libraries (repeatable)
    #[arg(long = "component", value_name = "NAME=GLOB", value_parser = component)]
    pub components: Vec<(String, String)>,
    /// How memory is assigned to a component
    #[arg(long, value_enum, default_value_t)]
    pub by: By,
    /// Break every component down by shared object
    #[arg(long)]
    pub by_library: bool,
    /// Count the messages and bytes that each rank sends to each other
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub comm_matrix: bool,
    /// Also measure the time in each function
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub times: bool,
    /// Least time between two scans of a process's memory
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "100ms", hide_short_help = true, help_heading = ADVANCED)]
    pub interval: Duration,
    /// Size of each process's log, at most
    #[arg(long, value_name = "SIZE", default_value = "64MiB", hide_short_help = true, help_heading = ADVANCED)]
    pub log_limit: Bytes,
    /// Run the command once per number, which replaces each {} in it, and compare the peaks
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub scaling: Vec<u32>,
    /// End the command and all that it has started after this time (status 124)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub results: Results,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// How memory is assigned to a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub enum By {
    /// The component whose call allocated it
    #[default]
    Owner,
    /// The component whose code touched it first
    Touch,
}
