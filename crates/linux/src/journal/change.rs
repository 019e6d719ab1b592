//! What is changed, and how each is undone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cgroup::{Cgroup, kill_all, put_back, remove_tree};
use crate::{Error, damon, file, place, procfs};

/// The memory of a virtual machine as it was before it was moved. That is not the kernel's: QEMU is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balloon {
    /// Where QEMU is told.
    pub socket: PathBuf,
    /// QEMU's process.
    pub pid: i32,
    /// When it was started.
    pub start_ticks: u64,
    /// What its guest had.
    pub bytes: u64,
    /// How often the guest told how it does; 0: never.
    pub polling_seconds: u64,
}

/// A change, with what it takes to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    /// A file below `/proc/sys`.
    Sysctl { path: PathBuf, before: String, wrote: String },
    /// A limit of a cgroup that is moved.
    Limit { path: PathBuf, before: String },
    /// The killer of a cgroup of version 1 that was switched off: its `memory.oom_control`.
    Killer { path: PathBuf },
    /// The memory of a virtual machine that is moved.
    Balloon(Balloon),
    /// The thread of DAMON's that has this mark, in its folder.
    Damon { path: PathBuf, mark: u64 },
    /// A cgroup directory that was made for a job.
    Cgroup { path: PathBuf },
    /// A cgroup directory that bursar moved to, beneath the one it was in.
    Supervisor { path: PathBuf },
    /// A controller enabled for the children of this cgroup directory.
    Controller { path: PathBuf, name: String },
}

impl Change {
    pub(super) fn same_setting(&self, other: &Change) -> bool {
        match (self, other) {
            (Change::Sysctl { path, .. }, Change::Sysctl { path: same, .. }) => path == same,
            (Change::Limit { path, .. }, Change::Limit { path: same, .. }) => path == same,
            (Change::Balloon(one), Change::Balloon(two)) => one.pid == two.pid,
            (Change::Controller { .. }, Change::Controller { .. }) => self == other,
            _ => false,
        }
    }

    /// By the owner itself: processes are where they should be.
    pub(super) fn undo(&self) -> Result<(), Error> {
        match self {
            Change::Sysctl { path, before, wrote } => {
                // Whoever has changed it since then meant it.
                if file::read(path)?.trim() == wrote { file::write(path, before) } else { Ok(()) }
            }
            // With the cgroup its limit is gone.
            Change::Limit { path, .. } if !path.exists() => Ok(()),
            Change::Limit { path, before } => put_back(path, before),
            Change::Killer { path } if !path.exists() => Ok(()),
            Change::Killer { path } => file::write(path, "0"),
            Change::Balloon(_) => Ok(()),
            Change::Damon { path, mark } => damon::end(path, *mark),
            Change::Cgroup { path } => remove_tree(path),
            Change::Supervisor { path } => {
                let above = path.parent().unwrap_or(path).join("cgroup.procs");
                for pid in crate::cgroup::own_processes(path).unwrap_or_default() {
                    file::write(&above, &pid.to_string())?;
                }
                remove_tree(path)
            }
            Change::Controller { path, name } => file::write(&path.join("cgroup.subtree_control"), &format!("-{name}")),
        }
    }

    /// Whether there is anything to undo: the owner may have died before the change, or after undoing it.
    pub(super) fn is_made(&self) -> bool {
        match self {
            Change::Sysctl { path, wrote, .. } => file::read(path).is_ok_and(|value| value.trim() == wrote),
            Change::Limit { path, before } => file::read(path).is_ok_and(|value| value.trim() != before),
            Change::Killer { path } => file::read(path).is_ok_and(|state| state.starts_with("oom_kill_disable 1")),
            Change::Damon { path, mark } => damon::is_marked(path, *mark),
            // With its process a machine is gone.
            Change::Balloon(before) => procfs::stat(before.pid).is_ok_and(|stat| stat.starttime == before.start_ticks),
            Change::Cgroup { path } | Change::Supervisor { path } | Change::Controller { path, .. } => path.exists(),
        }
    }

    /// After its owner died: what the job left in its cgroup is ended and its cache taken back first.
    pub(super) fn undo_for_dead(&self) -> Result<(), Error> {
        if let Change::Cgroup { path } = self {
            if !path.components().any(|part| part.as_os_str().to_string_lossy().starts_with(place::PREFIX)) {
                return Ok(());
            }
            kill_all(&[path])?;
            if let Ok(cgroup) = Cgroup::at(path) {
                cgroup.reclaim_all()?;
            }
        }
        self.undo()
    }

    pub(super) fn sentence(&self) -> String {
        match self {
            Change::Sysctl { path, before, .. } | Change::Limit { path, before } => {
                format!("{} was put back to {before}", path.display())
            }
            Change::Killer { path } => format!("the killer of {} was switched on again", path.display()),
            Change::Balloon(before) => {
                format!("the balloon of {} was put back to {} bytes", before.socket.display(), before.bytes)
            }
            Change::Damon { path, .. } => format!("the thread of {} was ended", path.display()),
            Change::Cgroup { path } => format!("the cgroup {} was emptied and removed", path.display()),
            Change::Supervisor { path } => format!("the cgroup {} was removed", path.display()),
            Change::Controller { path, name } => {
                format!("the controller {name} was switched off again for the children of {}", path.display())
            }
        }
    }
}
