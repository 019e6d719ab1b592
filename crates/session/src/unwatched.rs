//! Processes that belong to what is watched, and are not watched.

use std::collections::BTreeSet;

use linux::cgroup::Cgroup;
use linux::procfs;

/// A cgroup with more processes is not searched every interval.
const MOST_PROCESSES: usize = 256;

/// A sentence on processes that the command has left behind.
pub fn left() -> Option<String> {
    let living = |pid: &i32| procfs::stat(*pid).is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'));
    let left: Vec<i32> = procfs::descendants(std::process::id() as i32).into_iter().filter(living).collect();
    let first = *left.first()?;
    Some(format!(
        "the command has ended; {} it has left runs on and is no longer watched. Watch it with: bursar watch --intrusive --pid {first}",
        named(&left)
    ))
}

/// A process that is watched with all beneath it, and its cgroup.
pub struct Beside {
    pid: i32,
    start: u64,
    cgroup: Cgroup,
}

impl Beside {
    /// Of a process that is in a cgroup of its own or its service's.
    pub fn of(pid: i32) -> Option<Beside> {
        let start = procfs::stat(pid).ok()?.starttime;
        let cgroup = Cgroup::of(pid).ok().flatten().filter(|cgroup| !cgroup.is_root())?;
        Some(Beside { pid, start, cgroup })
    }

    /// A sentence on processes of the cgroup that began after the process and lost their parents: its daemons, most likely.
    pub fn note(&self) -> Option<String> {
        let all: BTreeSet<i32> = self.cgroup.processes().ok()?.into_iter().collect();
        if all.len() > MOST_PROCESSES {
            return None;
        }
        let beneath: BTreeSet<i32> = procfs::descendants(self.pid).into_iter().collect();
        let is_orphan = |pid: &i32| {
            procfs::stat(*pid).is_ok_and(|stat| {
                let has_parent = stat.ppid != 1 && all.contains(&stat.ppid);
                !has_parent && stat.starttime >= self.start && !matches!(stat.state, 'Z' | 'X')
            })
        };
        let outside = all.iter().copied().filter(|pid| *pid != self.pid && !beneath.contains(pid));
        let orphans: Vec<i32> = outside.filter(is_orphan).collect();
        (!orphans.is_empty()).then(|| {
            let dir = self.cgroup.dir().display();
            format!(
                "not watched: {} in the same cgroup, not beneath process {}. Watch all of the cgroup with: bursar watch \
                 --intrusive --cgroup {dir}",
                named(&orphans),
                self.pid
            )
        })
    }
}

/// `process 7 (worker)`, or `process 7 (worker) and 3 more`.
fn named(pids: &[i32]) -> String {
    let Some(first) = pids.first() else { return String::new() };
    let name = procfs::stat(*first).map(|stat| format!(" ({})", stat.comm)).unwrap_or_default();
    match pids.len() - 1 {
        0 => format!("process {first}{name}"),
        more => format!("process {first}{name} and {more} more"),
    }
}
