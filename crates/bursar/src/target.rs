//! What runs already, found.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, bail};
use linux::cgroup::Cgroup;
use linux::{procfs, rights};

use crate::cli::target::Target;

/// A process, or the directory of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Process(i32),
    Cgroup(PathBuf),
}

impl Found {
    /// Finds what was named.
    ///
    /// # Errors
    /// A sentence if a name is that of nothing, or of several cgroups, or if a process is not there.
    pub fn of(target: &Target) -> anyhow::Result<Found> {
        match (target.pid, &target.cgroup, &target.name) {
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

/// The cgroup of a process.
fn cgroup_of(pid: i32) -> anyhow::Result<PathBuf> {
    match procfs::stat(pid) {
        Err(_) => bail!("there is no process {pid} that we may look at; see `ps -e`, or name a cgroup by its path"),
        Ok(_) if !rights::may_observe(pid) => bail!(rights::refusal(pid)),
        Ok(_) => {}
    }
    let group = Cgroup::of(pid)?;
    let group = group.with_context(|| format!("process {pid} is in no cgroup with a memory controller; use --pid"))?;
    Ok(group.dir().to_path_buf())
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Process(pid) => write!(f, "{pid}"),
            Found::Cgroup(path) => write!(f, "{}", path.display()),
        }
    }
}
