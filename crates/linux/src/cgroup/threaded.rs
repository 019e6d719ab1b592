//! Threaded cgroups (cgroup-v2.rst, "Threads"): they contain threads, and the memory of the processes is charged to the root of the
//! threaded domain. They have no memory controller, and `cgroup.procs` cannot be read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::members::descendants;
use crate::{file, mounts, procfs};

/// A threaded cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadedCgroup {
    dir: PathBuf,
}

impl ThreadedCgroup {
    /// The threaded cgroup of a directory, or of a path as in `/proc/PID/cgroup`; `None` if it is not threaded.
    pub fn at(dir: &Path) -> Option<ThreadedCgroup> {
        let mounts = mounts::own();
        let beneath = mounts.iter().filter(|mount| mount.kind == "cgroup2").filter_map(|mount| mount.resolve(dir));
        let found = std::iter::once(dir.to_path_buf()).chain(beneath).find(|dir| is(dir, "threaded"))?;
        Some(ThreadedCgroup { dir: found })
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The root of its domain, to which the memory of its processes is charged.
    pub fn domain(&self) -> &Path {
        self.dir.ancestors().find(|dir| !is(dir, "threaded")).unwrap_or(&self.dir)
    }

    /// The processes with a thread in it or beneath it, rising.
    pub fn processes(&self) -> Vec<i32> {
        let dirs = descendants(&self.dir);
        let texts = dirs.iter().map(PathBuf::as_path).chain([self.dir()]);
        let texts = texts.filter_map(|dir| file::read_if_present(&dir.join("cgroup.threads")));
        let threads: BTreeSet<i32> =
            texts.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect();
        let found: BTreeSet<i32> = threads.into_iter().filter_map(procfs::process_of_thread).collect();
        found.into_iter().collect()
    }
}

/// Whether it is the domain of threads beneath it: then no child can have a memory controller.
pub(crate) fn is_threaded_domain(dir: &Path) -> bool {
    is(dir, "domain threaded")
}

fn is(dir: &Path, kind: &str) -> bool {
    file::read_if_present(&dir.join("cgroup.type")).is_some_and(|text| text.trim() == kind)
}
