//! The command line of `bursar pool`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use model::Bytes;
use provision::manage::Placement;

use super::ADVANCED;
use super::values::{mode, page, placement, some_bytes};

/// `bursar pool`
#[derive(Debug, Subcommand)]
pub enum Pool {
    /// Reserve memory, populate it, and start the broker that lends it
    Create(PoolCreate),
    /// Compute how large a pool must be to serve all memory of a command, from one run
    Size(PoolSize),
    /// Run the broker in the foreground (for systemd, and after a broker was killed)
    Serve(Which),
    /// Print the pools and their leases [default: of all pools]
    Status {
        #[command(flatten)]
        which: Which,
        /// Write the figures as JSON to FILE, or to standard output with -
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Add memory to a pool
    Grow(PoolChange),
    /// Take memory from a pool, as far as it is free
    Shrink(PoolChange),
    /// Remove a pool, and return its memory to the system
    Destroy {
        #[command(flatten)]
        which: Which,
        /// Even if processes hold leases: they keep their memory until they end
        #[arg(long)]
        force: bool,
    },
}

/// An existing pool, named in either of two ways.
#[derive(Debug, Args)]
pub struct Which {
    /// The pool [default: default; status: all]
    #[arg(value_name = "NAME")]
    plain: Option<String>,
    /// The same
    #[arg(long, value_name = "NAME", conflicts_with = "plain", hide_short_help = true, help_heading = ADVANCED)]
    name: Option<String>,
}

impl Which {
    pub fn name(&self) -> Option<&str> {
        self.plain.as_deref().or(self.name.as_deref())
    }

    pub fn or_default(&self) -> &str {
        self.name().unwrap_or(linux::pools::DEFAULT)
    }
}

/// `bursar pool size`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar pool size -- ./solver input.dat\n  \
    bursar pool size --json - -- mpirun -n 4 ./app\n\n\
    The command runs once, without a pool. bursar prints the line that creates the pool.")]
pub struct PoolSize {
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// `bursar pool create`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sudo bursar pool create 16G\n  \
    sudo bursar pool create 64G --page 1G --node 1 --name near-gpu\n  \
    sudo bursar pool create 32G --owner root:hpc --per-user 8G\n\n\
    The pool stays until bursar pool destroy, or until the machine is started anew.")]
pub struct PoolCreate {
    /// Size, such as 16G; rounded up to whole segments
    #[arg(value_name = "SIZE", value_parser = some_bytes)]
    pub size: Bytes,
    /// The pool's name
    #[arg(long, value_name = "NAME", default_value = linux::pools::DEFAULT)]
    pub name: String,
    /// NUMA node to reserve on, or interleaved page by page [default: interleaved segment by segment]
    #[arg(long, value_name = "N|interleave", value_parser = placement, hide_short_help = true, help_heading = ADVANCED)]
    pub node: Option<Placement>,
    /// Size of its pages: 2M or 1G
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = page, hide_short_help = true, help_heading = ADVANCED)]
    pub page: u64,
    /// Backing: the kernel's huge pages, or device-dax memory that was set apart at boot
    #[arg(long, value_enum, default_value_t, hide_short_help = true, help_heading = ADVANCED)]
    pub backend: Backend,
    /// Users and groups that may use it, besides root
    #[arg(long, value_name = "USER[:GROUP]", default_value = "root")]
    pub owner: String,
    /// Mode of the broker's socket: write permission allows the use of the pool
    #[arg(long, value_name = "MODE", default_value = "0660", value_parser = mode, hide_short_help = true, help_heading = ADVANCED)]
    pub mode: u32,
    /// Memory for all processes of one user together, at most
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, hide_short_help = true, help_heading = ADVANCED)]
    pub per_user: Option<Bytes>,
}

/// `bursar pool grow` and `shrink`
#[derive(Debug, Args)]
pub struct PoolChange {
    /// Change in size, in whole segments
    #[arg(value_name = "SIZE", value_parser = some_bytes)]
    pub size: Bytes,
    /// The pool
    #[arg(long, value_name = "NAME", default_value = linux::pools::DEFAULT)]
    pub name: String,
}

/// The backing of a pool.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Backend {
    /// Huge pages of the kernel
    #[default]
    Hugetlb,
    /// Devices of device-dax
    Dax,
}
