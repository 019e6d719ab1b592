//! Facts about a run that show whether what is measured is the job.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linux::cgroup::Cgroup;
use linux::procfs;
use model::Named;
use track::Tracker;

/// At least so long between two looks for processes outside: they are counted by the kernel meanwhile.
const PAUSE: Duration = Duration::from_millis(50);
/// Processes that end with the command need so long at most.
const ENDING: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_millis(2);

/// Processes of a job that are in another cgroup than the job's.
pub struct Outside {
    group: Cgroup,
    command: i32,
    looked: Option<Instant>,
    found: BTreeMap<i32, Named>,
}

impl Outside {
    pub fn of(group: &Cgroup, command: i32) -> Outside {
        Outside { group: group.clone(), command, looked: None, found: BTreeMap::new() }
    }

    /// Looks at the processes that descend from the command, wherever their parents are.
    pub fn look(&mut self, tracker: Option<&Tracker>) {
        if self.looked.is_some_and(|looked| looked.elapsed() < PAUSE) {
            return;
        }
        self.looked = Some(Instant::now());
        let mut pids = tracker.map(Tracker::living).unwrap_or_default();
        if tracker.is_none() {
            pids = procfs::descendants(self.command);
        }
        pids.push(self.command);
        let members = self.group.processes().unwrap_or_default();
        for pid in pids.into_iter().filter(|pid| !members.contains(pid)) {
            let process = Some(pid).filter(|pid| self.group.holds(*pid) == Some(false)).and_then(named);
            if let Some(process) = process {
                let known = self.found.entry(pid).or_default();
                *known = Named { bytes: process.bytes.max(known.bytes), ..process };
            }
        }
    }

    pub fn finish(self) -> Vec<Named> {
        self.found.into_values().collect()
    }
}

/// The processes of a job that go on after the command: those of its cgroup, else those that came to us.
pub fn went_on(group: Option<&Cgroup>) -> Vec<Named> {
    let pids = || match group {
        Some(group) => group.processes().unwrap_or_default(),
        None => procfs::descendants(std::process::id() as i32),
    };
    let begun = Instant::now();
    loop {
        let left: Vec<Named> = pids().into_iter().filter_map(named).collect();
        if left.is_empty() || begun.elapsed() > ENDING {
            return left;
        }
        std::thread::sleep(TICK);
    }
}

/// A process that lives; `None` of one that has ended.
fn named(pid: i32) -> Option<Named> {
    let stat = procfs::stat(pid).ok().filter(|stat| !matches!(stat.state, 'Z' | 'X'))?;
    let status = procfs::status(pid).ok()?;
    Some(Named { name: stat.comm, bytes: status.vm_hwm.or(status.vm_rss) })
}
