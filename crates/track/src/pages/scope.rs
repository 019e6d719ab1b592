//! The processes to scan.

use std::collections::BTreeMap;

use linux::cgroup::{Cgroup, ThreadedCgroup};
use linux::{procfs, rights};

use super::Error;

/// Which processes.
#[derive(Debug)]
pub enum Scope {
    /// A process and all its descendants. A descendant once found stays in when its parent ends.
    Tree(i32),
    /// A command that this process has started, and all other descendants of this process, which must be a reaper of
    /// orphans (`PR_SET_CHILD_SUBREAPER`): daemons that the command leaves belong to it.
    Command(i32),
    /// The processes in a cgroup and beneath it.
    Cgroup(Cgroup),
    /// The processes with a thread in a threaded cgroup or beneath it, each as a whole.
    Threads(ThreadedCgroup),
}

/// The living processes of a scope, with their start times, which distinguish them from later processes with the same
/// PID.
#[derive(Debug)]
pub struct Members {
    scope: Scope,
    living: BTreeMap<i32, u64>,
}

impl Members {
    /// # Errors
    /// [`Error::NoProcess`], [`Error::Kernel`], [`Error::Empty`], [`Error::NotOurs`].
    pub fn of(scope: Scope, intrusive: bool) -> Result<Members, Error> {
        let mut members = Members { scope, living: BTreeMap::new() };
        if let Some(pid) = members.found().into_iter().find(|pid| !rights::may_observe(*pid)) {
            return Err(Error::Rights(rights::refusal(pid)));
        }
        members.refresh();
        if members.living.is_empty() {
            return Err(match &members.scope {
                Scope::Tree(pid) | Scope::Command(pid) if procfs::stat(*pid).is_ok_and(|stat| stat.is_kernel) => {
                    Error::Kernel(*pid)
                }
                Scope::Tree(pid) | Scope::Command(pid) => Error::NoProcess(*pid),
                Scope::Cgroup(cgroup) => Error::Empty(cgroup.dir().into()),
                Scope::Threads(cgroup) => Error::Empty(cgroup.dir().into()),
            });
        }
        // A process that has ended since it was found has no parent, so it would seem foreign.
        let is_foreign = |pid: i32, start: u64| !is_ours(pid) && living(pid) == Some(start);
        let root = match &members.scope {
            Scope::Tree(pid) | Scope::Command(pid) => Some(*pid),
            Scope::Cgroup(_) | Scope::Threads(_) => None,
        };
        let foreign = members.living.iter().filter(|(pid, start)| !intrusive && is_foreign(**pid, **start));
        // Name the requested process rather than a child with a lower PID.
        match foreign.map(|(pid, _)| *pid).min_by_key(|pid| root != Some(*pid)) {
            Some(pid) => Err(Error::NotOurs(pid)),
            None => Ok(members),
        }
    }

    /// For a scope of bursar's own that may have no process yet.
    pub fn awaited(scope: Scope) -> Members {
        Members { scope, living: BTreeMap::new() }
    }

    /// Updates the list. Returns the living processes: PID and start time.
    pub fn refresh(&mut self) -> &BTreeMap<i32, u64> {
        self.living.retain(|pid, start| living(*pid) == Some(*start));
        for pid in rights::observable(&self.found()) {
            if let Some(start) = living(pid) {
                self.living.insert(pid, start);
            }
        }
        &self.living
    }

    /// The processes that the scope has now, besides those known.
    fn found(&self) -> Vec<i32> {
        match &self.scope {
            Scope::Command(root) => {
                let own = procfs::descendants(std::process::id() as i32);
                std::iter::once(*root).filter(|_| self.living.is_empty()).chain(own).collect()
            }
            Scope::Tree(root) => {
                // Until the first process is found, trust the PID; afterwards use only processes identified by their
                // start time.
                let roots: Vec<i32> = match self.living.is_empty() {
                    true => vec![*root],
                    false => self.living.keys().copied().collect(),
                };
                let beneath = roots.iter().flat_map(|root| procfs::descendants(*root)).collect::<Vec<_>>();
                roots.into_iter().chain(beneath).collect()
            }
            Scope::Cgroup(cgroup) => cgroup.processes().unwrap_or_default(),
            Scope::Threads(cgroup) => cgroup.processes(),
        }
    }

    /// The processes that the last [`Members::refresh`] found.
    pub fn living(&self) -> &BTreeMap<i32, u64> {
        &self.living
    }
}

/// Start time of a process that still has memory.
fn living(pid: i32) -> Option<u64> {
    procfs::stat(pid).ok().filter(|stat| !stat.is_kernel && !matches!(stat.state, 'Z' | 'X')).map(|stat| stat.starttime)
}

/// Whether this process or one of its descendants has started `pid`.
fn is_ours(pid: i32) -> bool {
    let own = std::process::id() as i32;
    let parents = std::iter::successors(Some(pid), |pid| procfs::stat(*pid).ok().map(|stat| stat.ppid));
    parents.take_while(|pid| *pid > 0).any(|pid| pid == own)
}
