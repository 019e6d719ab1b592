//! The kinds of changes, and how each is undone.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use serde::{Deserialize, Serialize};

use crate::cgroup::{Cgroup, kill_all, put_back, remove_tree};
use crate::secure_file::Folder;
use crate::{Error, damon, file, place, procfs, thp};

/// The memory of a virtual machine before it was changed. This is changed through QEMU, not the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balloon {
    /// QEMU's QMP socket.
    pub socket: PathBuf,
    /// QEMU's PID.
    pub pid: i32,
    /// Its start time.
    pub start_ticks: u64,
    /// The guest's memory.
    pub bytes: u64,
    /// The guest's statistics interval; 0: never.
    pub polling_seconds: u64,
}

/// A change, with the data to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    /// A file below `/proc/sys`, or a setting of transparent huge pages.
    Sysctl { path: PathBuf, before: String, wrote: String },
    /// A cgroup's limit that is changed.
    Limit { path: PathBuf, before: String },
    /// The OOM killer of a v1 cgroup, which was disabled: its `memory.oom_control`.
    Killer { path: PathBuf },
    /// The memory of a virtual machine that is changed.
    Balloon(Balloon),
    /// The kdamond with this mark, in its folder.
    Damon { path: PathBuf, mark: u64 },
    /// A cgroup directory that was created for a job.
    Cgroup { path: PathBuf },
    /// A cgroup directory that bursar moved to, beneath the one it was in.
    Supervisor { path: PathBuf },
    /// A controller enabled for the children of this cgroup directory.
    Controller { path: PathBuf, name: String },
    /// A folder needed only while bursar runs.
    Folder { path: PathBuf },
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

    /// Undoes it in the owner itself, whose processes are in their places.
    pub(super) fn undo(&self) -> Result<(), Error> {
        match self {
            Change::Sysctl { path, before, wrote } => {
                // A later change by another program is intended.
                if value(path)? == *wrote { file::write(path, before) } else { Ok(()) }
            }
            // The limit vanishes with its cgroup.
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
            Change::Folder { path } => {
                remove_folder(path).map_err(|source| Error::Remove { path: path.clone(), source })
            }
        }
    }

    /// Whether there is anything to undo: the owner may have died before the change, or after undoing it.
    pub(super) fn is_made(&self) -> bool {
        match self {
            Change::Sysctl { path, wrote, .. } => value(path).is_ok_and(|value| value == *wrote),
            Change::Limit { path, before } => file::read(path).is_ok_and(|value| value.trim() != before),
            Change::Killer { path } => file::read(path).is_ok_and(|state| state.starts_with("oom_kill_disable 1")),
            Change::Damon { path, mark } => damon::is_marked(path, *mark),
            // A machine vanishes with its process.
            Change::Balloon(before) => procfs::stat(before.pid).is_ok_and(|stat| stat.starttime == before.start_ticks),
            Change::Cgroup { path } | Change::Supervisor { path } | Change::Controller { path, .. } => path.exists(),
            Change::Folder { path } => path.symlink_metadata().is_ok_and(|found| found.is_dir()),
        }
    }

    /// Undoes it after its owner died: first ends the job's remaining processes in its cgroup, and reclaims its page cache.
    pub(super) fn undo_for_dead(&self) -> Result<(), Error> {
        if let Change::Cgroup { path } = self {
            kill_all(&[path])?;
            if let Ok(cgroup) = Cgroup::at(path) {
                cgroup.reclaim_all()?;
            }
        }
        self.undo()
    }

    /// Whether bursar could have made this change; else the reason why it is refused, as a sentence. Repair may run as root, on entries
    /// written by any user with access to the journal.
    pub(super) fn check(&self) -> Result<(), String> {
        let (path, is_good): (&Path, bool) = match self {
            Change::Sysctl { path, before, wrote } => (path, is_setting(path) && is_line(before) && is_line(wrote)),
            Change::Limit { path, before } => (path, is_file_of_cgroup(path, "memory.") && is_line(before)),
            Change::Killer { path } => (path, is_file_of_cgroup(path, "memory.oom_control")),
            Change::Balloon(before) => (&before.socket, true),
            Change::Damon { path, .. } => (path, path.starts_with("/sys/kernel/mm/damon") || is_of_test(path)),
            Change::Cgroup { path } | Change::Supervisor { path } => (path, is_made_by_bursar(path)),
            Change::Folder { path } => (path, is_named_by_bursar(path)),
            Change::Controller { path, name } => {
                let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                (path, is_word && is_cgroup(path))
            }
        };
        if is_plain(path) && is_good {
            return Ok(());
        }
        let path = path.to_string_lossy();
        Err(format!("a journal names '{}', which no bursar changes so: it is left alone", path.escape_debug()))
    }

    /// What undoing it does, as a clause.
    pub(super) fn intention(&self) -> String {
        match self {
            Change::Sysctl { path, before, .. } | Change::Limit { path, before } => {
                format!("writes {before} to {}", path.display())
            }
            Change::Killer { path } => format!("writes 0 to {}", path.display()),
            Change::Balloon(before) => {
                format!("asks the machine at {} for {} bytes", before.socket.display(), before.bytes)
            }
            Change::Damon { path, .. } => format!("writes 0 to {}", path.join("nr_kdamonds").display()),
            Change::Cgroup { path } => {
                format!("ends the processes in {}, reclaims its memory and removes it", path.display())
            }
            Change::Supervisor { path } => format!("removes {}", path.display()),
            Change::Folder { path } => format!("removes {} and all in it", path.display()),
            Change::Controller { path, name } => {
                format!("writes -{name} to {}", path.join("cgroup.subtree_control").display())
            }
        }
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
            Change::Folder { path } => format!("the folder {} was removed", path.display()),
            Change::Controller { path, name } => {
                format!("the controller {name} was switched off again for the children of {}", path.display())
            }
        }
    }
}

/// Whether the path is absolute, with normal components: none is empty, `.` or `..`, or has a control character.
fn is_plain(path: &Path) -> bool {
    let Some(rest) = path.as_os_str().as_bytes().strip_prefix(b"/") else { return false };
    let is_name = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && part.iter().all(|byte| !byte.is_ascii_control());
    rest.split(|byte| *byte == b'/').all(is_name)
}

fn is_line(value: &str) -> bool {
    !value.chars().any(|c| c.is_control() && c != '\t')
}

fn is_setting(path: &Path) -> bool {
    let is_thp = path.starts_with(thp::FOLDER) && path.file_name() == Some(thp::FILE.as_ref());
    path.starts_with("/proc/sys") || is_thp || is_of_test(path)
}

/// The value of a setting; where its file lists all choices, the one in brackets.
pub(super) fn value(path: &Path) -> Result<String, Error> {
    let text = file::read(path)?;
    let chosen = if path.file_name() == Some(thp::FILE.as_ref()) { thp::chosen(&text) } else { None };
    Ok(chosen.unwrap_or(text.trim()).to_string())
}

/// Whether the path is a file in a cgroup; nothing is written for removed cgroups.
fn is_file_of_cgroup(path: &Path, begins: &str) -> bool {
    let has_name = path.file_name().is_some_and(|name| name.as_bytes().starts_with(begins.as_bytes()));
    (has_name && path.parent().is_some_and(is_cgroup)) || is_of_test(path)
}

fn is_made_by_bursar(path: &Path) -> bool {
    let is_ours = |part: std::path::Component<'_>| part.as_os_str().as_bytes().starts_with(place::PREFIX.as_bytes());
    path.components().any(is_ours) && is_cgroup(path)
}

fn is_named_by_bursar(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.strip_prefix(b".").unwrap_or(name).starts_with(place::PREFIX.as_bytes())
}

/// Removes a folder that only this user can access, without following links of others. A missing one is no error.
fn remove_folder(path: &Path) -> std::io::Result<()> {
    let opened = Folder::of(path).and_then(|(above, name)| Ok((above.open_folder(&name)?, above, name)));
    let (folder, above, name) = match opened {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    if folder.status()?.st_uid != rustix::process::geteuid().as_raw() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    std::fs::remove_dir_all(above.by_descriptor(&name))
}

/// Whether it is in a cgroup file system, existing or not.
fn is_cgroup(path: &Path) -> bool {
    let there = path.ancestors().find(|path| path.exists());
    let kind = there.and_then(|there| statfs(there).ok()).map(|found| found.f_type as u64);
    [libc::CGROUP_SUPER_MAGIC, libc::CGROUP2_SUPER_MAGIC].iter().any(|magic| kind == Some(*magic as u64))
}

/// The unit tests' settings are in temporary folders.
fn is_of_test(path: &Path) -> bool {
    cfg!(test) && path.starts_with(std::env::temp_dir())
}
