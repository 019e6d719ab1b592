//! What runs already, as it is named on the command line.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use session::target::{Found, cgroup_of};

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

impl Target {
    /// Finds what was named.
    ///
    /// # Errors
    /// A sentence if a name is that of nothing, or of several cgroups, or if a process is not there.
    pub fn find(&self) -> anyhow::Result<Found> {
        match (self.pid, &self.cgroup, &self.name) {
            (Some(pid), ..) => Ok(Found::Process(pid)),
            (_, Some(path), _) => match path.to_str().and_then(|path| path.parse().ok()) {
                Some(pid) => Ok(Found::Cgroup(cgroup_of(pid)?)),
                None => Ok(Found::Cgroup(path.clone())),
            },
            (.., Some(name)) => Ok(Found::Cgroup(serve::find(name)?)),
            (None, None, None) => bail!("name what is to be observed: --pid PID, --cgroup PATH or --name NAME"),
        }
    }
}
