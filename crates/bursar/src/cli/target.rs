//! What runs already, as it is named on the command line.

use std::path::PathBuf;

use clap::Args;

/// A target: one of these.
#[derive(Clone, Debug, Args)]
#[group(id = "target", multiple = false)]
pub struct Target {
    /// A running process, by its PID
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// A cgroup, by its path, or by the PID of a process in it
    #[arg(long, value_name = "PATH|PID")]
    pub cgroup: Option<PathBuf>,
    /// A systemd unit, container, pod, machine or Slurm job, by its name or ID
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}
