//! The processes of a cgroup.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Cgroup;
use crate::{Error, endings, file};

/// An ended process is in no list, but a member until the kernel has freed it, which takes seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(2);

impl Cgroup {
    /// Moves a process with all its threads here. Its earlier charges stay where they were.
    ///
    /// # Errors
    /// [`Error::Write`]; [`Error::Gone`] if it ended.
    pub fn add(&self, pid: i32) -> Result<(), Error> {
        for dir in self.directories() {
            file::write(&dir.join("cgroup.procs"), &pid.to_string()).map_err(|error| match error.raw_os_error() {
                Some(libc::ESRCH) => Error::Gone(pid),
                _ => error,
            })?;
        }
        Ok(())
    }

    /// The `tasks` files of its v1 directories: a single-threaded process can write `0` there to move itself.
    pub fn v1_tasks(&self) -> Vec<PathBuf> {
        self.directories().into_iter().map(|dir| dir.join("tasks")).filter(|file| file.exists()).collect()
    }

    /// Its directory on the v2 hierarchy, if any: a process can be forked into it.
    pub fn v2_directory(&self) -> Option<&Path> {
        self.directories().into_iter().find(|dir| !dir.join("tasks").exists())
    }

    /// Its processes, including those of child cgroups.
    ///
    /// # Errors
    /// [`Error::Read`] if it is gone.
    pub fn processes(&self) -> Result<Vec<i32>, Error> {
        processes_in(&self.dir)
    }

    /// Whether no process is in it or beneath it, also none of another PID namespace.
    pub fn is_empty(&self) -> bool {
        is_empty(&self.dir) && descendants(&self.dir).iter().all(|dir| is_empty(dir))
    }

    /// Kills all its processes with SIGKILL and waits until they are gone.
    ///
    /// # Errors
    /// [`Error::NotEnded`] after 20 s; [`Error::Read`] if it is gone.
    pub fn kill_all(&self) -> Result<(), Error> {
        kill_all(&self.directories())
    }

    /// Removes it with its child cgroups. It must have no processes; exiting ones are waited for.
    ///
    /// # Errors
    /// [`Error::Remove`] if processes are left.
    pub fn remove(&self) -> Result<(), Error> {
        self.directories().into_iter().try_for_each(remove_tree)
    }
}

/// Kills the processes in or beneath these directories of one cgroup. On v2 the kernel kills all at once (`cgroup.kill`, Linux 5.14), or
/// freezes them so that they cannot fork (`cgroup.freeze`, Linux 5.2); otherwise each process is stopped first.
pub(crate) fn kill_all(dirs: &[&Path]) -> Result<(), Error> {
    let whole = |name: &str, value| dirs.iter().filter(|dir| file::write(&dir.join(name), value).is_ok()).count();
    let is_killed = whole("cgroup.kill", "1") > 0;
    let is_frozen = !is_killed && whole("cgroup.freeze", "1") > 0;
    let mut gone = None;
    let ended = endings::end(
        |each| {
            for dir in dirs {
                match processes_in(dir) {
                    Ok(found) => found.into_iter().for_each(&mut *each),
                    Err(error) => gone = Some(error),
                }
            }
        },
        || false,
    );
    if is_frozen {
        whole("cgroup.freeze", "0");
    }
    gone.map_or(ended, Err)
}

fn processes_in(dir: &Path) -> Result<Vec<i32>, Error> {
    let mut found = own_processes(dir)?;
    for dir in descendants(dir) {
        // Threaded cgroups cannot be read, and others may vanish meanwhile.
        found.extend(own_processes(&dir).unwrap_or_default());
    }
    // 0 stands for a process of another PID namespace.
    found.retain(|pid| *pid != 0);
    Ok(found)
}

/// Removes a directory of a cgroup with those beneath it.
pub(crate) fn remove_tree(dir: &Path) -> Result<(), Error> {
    for dir in descendants(dir).iter().rev().map(PathBuf::as_path).chain([dir]) {
        let begin = Instant::now();
        while let Err(source) = fs::remove_dir(dir) {
            match source.raw_os_error() {
                Some(libc::ENOENT) => break,
                Some(libc::EBUSY) if begin.elapsed() < PATIENCE && is_empty(dir) => sleep(PAUSE),
                _ => return Err(Error::Remove { path: dir.into(), source }),
            }
        }
    }
    Ok(())
}

fn is_empty(dir: &Path) -> bool {
    own_processes(dir).is_ok_and(|processes| processes.is_empty())
}

pub(crate) fn own_processes(dir: &Path) -> Result<Vec<i32>, Error> {
    Ok(file::read(&dir.join("cgroup.procs"))?.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Directories beneath, parents before their children.
pub(super) fn descendants(dir: &Path) -> Vec<PathBuf> {
    let mut found = file::subdirectories(dir).unwrap_or_default();
    let mut next = 0;
    while next < found.len() {
        let children = file::subdirectories(&found[next]).unwrap_or_default();
        found.extend(children);
        next += 1;
    }
    found
}
