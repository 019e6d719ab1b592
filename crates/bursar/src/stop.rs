//! Ending a job before its end, so that it can clean up: the order of signals that a person's `kill`, systemd or Slurm would send.
//!
//! The main process gets SIGTERM first: it knows its children, and a shell that runs its trap would otherwise see them die. The limit is
//! lifted before, because a job that just came to its limit could not even fork `rm`. A second later the other processes get SIGTERM,
//! too, and what has not ended after [`GRACE`] is killed.

use std::time::{Duration, Instant};

use job::Running;
use linux::cgroup::Swap;
use linux::place::JobCgroup;
use linux::procfs;
use rustix::process::{Pid, Signal, kill_process};

use crate::tier::FastTier;

/// The time from SIGTERM for the main process to SIGTERM for the others.
const MAIN_FIRST: Duration = Duration::from_secs(1);
/// The time from SIGTERM for the main process to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// The time for the others to end after the main process has ended, from their SIGTERM to SIGKILL.
const REST: Duration = Duration::from_secs(2);
/// The time between two checks whether the others have ended.
const TICK: Duration = Duration::from_millis(10);

/// A job that was told to end.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    since: Instant,
    is_rest_told: bool,
    is_killed: bool,
}

impl Stop {
    /// Lifts the limit of `limited` and sends SIGTERM to the main process.
    pub fn begin(running: &Running, limited: Option<&JobCgroup>, fast_tier: Option<FastTier>) -> Stop {
        if let Some(group) = limited {
            // A limit that cannot be lifted only makes it harder to clean up.
            let _ = group.set_limit(None, fast_tier.map_or(Swap::Forbidden, FastTier::swap));
        }
        running.signal(Signal::TERM.as_raw());
        Stop { since: Instant::now(), is_rest_told: false, is_killed: false }
    }

    /// Sends the next signal when its time has come.
    pub fn insist(&mut self, running: &Running, group: Option<&JobCgroup>) {
        if !self.is_rest_told && self.since.elapsed() > MAIN_FIRST {
            self.is_rest_told = true;
            signal(group, Some(running.pid()), Signal::TERM);
        }
        if !self.is_killed && self.since.elapsed() > GRACE {
            self.is_killed = true;
            signal(group, None, Signal::KILL);
            running.signal(Signal::KILL.as_raw());
        }
    }

    /// After the main process has ended: SIGTERM to the others, and SIGKILL to those that do not end.
    pub fn end_the_rest(self, group: Option<&JobCgroup>) {
        if self.is_killed || others(group, None).is_empty() {
            return;
        }
        signal(group, None, Signal::TERM);
        let since = Instant::now();
        while !others(group, None).is_empty() && since.elapsed() < REST {
            std::thread::sleep(TICK);
        }
        signal(group, None, Signal::KILL);
    }
}

/// The job's processes that have not ended, but one: those of its cgroup, else what descends from bursar.
fn others(group: Option<&JobCgroup>, but: Option<i32>) -> Vec<i32> {
    let pids = match group {
        Some(group) => group.processes().unwrap_or_default(),
        None => procfs::descendants(std::process::id() as i32),
    };
    pids.into_iter().filter(|pid| Some(*pid) != but && !is_zombie(*pid)).collect()
}

fn is_zombie(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn signal(group: Option<&JobCgroup>, but: Option<i32>, signal: Signal) {
    for pid in others(group, but).into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
