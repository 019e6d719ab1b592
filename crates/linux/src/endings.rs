//! Ends processes that resist: those that ignore SIGTERM, have left their session, or fork faster than they are found.
//!
//! A process that was sent SIGSTOP cannot fork any more. Therefore all processes are stopped first, by repeated scans until no new one is
//! found, and then killed. Where the kernel can kill a whole cgroup at once, [`crate::cgroup`] lets it do so first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::{getpid, getpriority_process, setpriority_process};

use crate::{Error, procfs, signals, wait};

/// A killed process may need to free gigabytes before it is gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time limit for stopping all of them. Others are then killed without.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Number of consecutive scans that must find nothing: a process that forks and ends may escape one scan with its child.
const EMPTY_SCANS: u32 = 5;
/// Time between scans for processes that are exiting.
const PAUSE: Duration = Duration::from_millis(2);
/// Number of recent PIDs checked before all others: a process that forks and ends at once is among them.
const NEWEST: i32 = 8;
/// The highest priority, so that many running processes do not delay this one.
const URGENT: i32 = -20;
/// Maximum number of processes that an error names.
const NAMED: usize = 3;

/// Descendants of a process, except those that existed when this was made. Orphans count if the process is their reaper.
#[derive(Clone, Debug)]
pub struct Tree {
    root: i32,
    /// PID and start time of processes that existed before.
    before: BTreeSet<(i32, u64)>,
}

impl Tree {
    /// The later descendants of this process, which must [adopt orphans](crate::children::adopt_orphans).
    pub fn new() -> Tree {
        let root = getpid().as_raw_nonzero().get();
        let start = |pid| Some((pid, procfs::stat(pid).ok()?.starttime));
        Tree { root, before: procfs::descendants(root).into_iter().filter_map(start).collect() }
    }

    /// All descendants of a child of this process.
    pub fn beneath(child: i32) -> Tree {
        Tree { root: child, before: BTreeSet::new() }
    }

    /// Its processes that have not ended.
    pub fn processes(&self) -> Vec<i32> {
        let mut found = Vec::new();
        self.scan(&mut |pid| found.push(pid));
        found
    }

    /// Kills all its processes with SIGKILL and waits until they are gone.
    ///
    /// # Errors
    /// [`Error::NotEnded`]: this process may not signal some, or they still exist after 20 s.
    pub fn kill_all(&self) -> Result<(), Error> {
        let is_own = self.root == getpid().as_raw_nonzero().get();
        end(|each| self.scan(each), || is_own && !wait::has_children())
    }

    /// Passes on each process as soon as it is found, the newest first.
    fn scan(&self, each: &mut dyn FnMut(i32)) {
        let mut found = BTreeMap::new();
        let mut see = |pid: i32| {
            let Ok(stat) = procfs::stat(pid) else { return };
            if self.before.contains(&(pid, stat.starttime)) {
                return;
            }
            // The first thread may have ended before the others.
            let is_alive = !matches!(stat.state, 'Z' | 'X') || stat.num_threads > 1;
            if is_alive && stat.ppid == self.root {
                each(pid);
            }
            found.insert(pid, (stat.ppid, is_alive));
        };
        let newest = procfs::newest_pid().unwrap_or(0);
        (newest - NEWEST + 1..=newest).rev().filter(|pid| *pid > 0).for_each(&mut see);
        let mut all = procfs::processes();
        all.sort_unstable();
        all.into_iter().rev().for_each(see);
        let is_ours = |mut pid: i32| {
            // No chain is longer than the number of its members.
            for _ in 0..=found.len() {
                match found.get(&pid) {
                    Some((parent, _)) if *parent == self.root => return true,
                    Some((parent, _)) => pid = *parent,
                    None => return false,
                }
            }
            false
        };
        let deeper = found.iter().rev().filter(|(_, (parent, is_alive))| *is_alive && *parent != self.root);
        deeper.map(|(pid, _)| *pid).filter(|pid| is_ours(*pid)).for_each(each);
    }
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new()
    }
}

/// Ends all processes that scans find: stops them, kills them, and waits until none is left. `is_over`: whether it is certain that none is
/// left; otherwise several scans must find nothing.
pub(crate) fn end(mut scan: impl FnMut(&mut dyn FnMut(i32)), is_over: impl Fn() -> bool) -> Result<(), Error> {
    let _urgent = Urgent::begin();
    stop(&mut scan);
    let begun = Instant::now();
    let mut empty = 0;
    loop {
        let (mut left, mut refused) = (BTreeSet::new(), BTreeSet::new());
        scan(&mut |pid| {
            left.insert(pid);
            if signals::send(pid, libc::SIGKILL).is_err() {
                refused.insert(pid);
            }
        });
        empty = if left.is_empty() { empty + 1 } else { 0 };
        if empty > 0 && (empty >= EMPTY_SCANS || is_over()) {
            return Ok(());
        }
        let is_refused = !left.is_empty() && left == refused;
        if is_refused || begun.elapsed() > PATIENCE {
            return Err(not_ended(&left, is_refused));
        }
        if !left.is_empty() {
            std::thread::sleep(PAUSE);
        }
    }
}

fn stop(scan: &mut impl FnMut(&mut dyn FnMut(i32))) {
    let (begun, mut known, mut quiet) = (Instant::now(), BTreeSet::new(), 0);
    while quiet < EMPTY_SCANS && begun.elapsed() < STOP_PATIENCE {
        let before = known.len();
        scan(&mut |pid| {
            // Includes those that another process has continued meanwhile.
            let _ = signals::send(pid, libc::SIGSTOP);
            known.insert(pid);
        });
        quiet = if known.len() == before { quiet + 1 } else { 0 };
    }
}

fn not_ended(left: &BTreeSet<i32>, is_refused: bool) -> Error {
    let name = |pid: &i32| procfs::stat(*pid).map_or_else(|_| pid.to_string(), |stat| format!("{pid} ({})", stat.comm));
    let mut names: Vec<String> = left.iter().take(NAMED).map(name).collect();
    if left.len() > NAMED {
        names.push(format!("{} more", left.len() - NAMED));
    }
    Error::NotEnded { processes: names.join(", "), is_refused }
}

/// Raises this thread to the highest priority while it lives, if permitted.
struct Urgent(i32);

impl Urgent {
    fn begin() -> Option<Urgent> {
        let found = getpriority_process(None).ok()?;
        setpriority_process(None, URGENT).ok().map(|()| Urgent(found))
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        let _ = setpriority_process(None, self.0);
    }
}
