//! What runs already.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, bail};
use linux::cgroup::Cgroup;
use linux::{procfs, rights};

/// A process, or the directory of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// By its PID.
    Process(i32),
    /// By its directory.
    Cgroup(PathBuf),
}

/// The cgroup of a process.
///
/// # Errors
/// A sentence if it is not there, may not be observed, or is in none.
pub fn cgroup_of(pid: i32) -> anyhow::Result<PathBuf> {
    match procfs::stat(pid) {
        Err(_) => {
            bail!("there is no process {pid} that this user may observe; see `ps -e`, or name a cgroup by its path")
        }
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
