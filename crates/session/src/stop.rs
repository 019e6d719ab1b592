//! Ending a job before its end, so that it can clean up: the order of signals that a person's `kill`, systemd or Slurm would send.
//!
//! The main process gets SIGTERM first: it knows its children, and a shell that runs its trap would otherwise see them die. The limit is
//! lifted before, because a job that just came to its limit could not even fork `rm`. A second later the other processes get SIGTERM,
//! too, and what has not ended after [`GRACE`] is killed. A person who asks twice meanwhile (Ctrl-C) waits no longer. In the end nothing
//! of the job is left, whatever it ignores, wherever it has gone and however fast it forks.

use std::time::{Duration, Instant};

use job::{Forwarding, Running};
use linux::cgroup::Swap;
use linux::endings::Tree;
use linux::place::JobCgroup;
use rustix::process::{Pid, Signal, kill_process};

use crate::say::tell;
use crate::tier::FastTier;

/// The time from SIGTERM for the main process to SIGTERM for the others.
const MAIN_FIRST: Duration = Duration::from_secs(1);
/// The time from SIGTERM for the main process to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// The time for the others to end after the main process has ended, from their SIGTERM to SIGKILL.
const REST: Duration = Duration::from_secs(2);
/// The time between two checks whether the others have ended.
const TICK: Duration = Duration::from_millis(10);
/// So many requests to end wait no longer.
const INSISTENT: u32 = 2;

/// A job's processes.
#[derive(Clone, Copy, Debug)]
pub enum Whole<'a> {
    /// Those of its cgroup.
    Cgroup(&'a JobCgroup),
    /// Those that descend from bursar.
    Tree(&'a Tree),
}

/// A job that was told to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop<'a> {
    whole: Whole<'a>,
    signals: &'a Forwarding,
    since: Instant,
    /// Requests to end that were there before this one.
    requests_before: u32,
    is_rest_told: bool,
    is_killed: bool,
}

impl<'a> Stop<'a> {
    /// Sends SIGTERM to the main process. `is_request`: because somebody has asked for it.
    pub fn begin(running: &Running, whole: Whole<'a>, signals: &'a Forwarding, is_request: bool) -> Stop<'a> {
        running.signal(Signal::TERM.as_raw());
        let requests_before = signals.requests_to_end().saturating_sub(u32::from(is_request));
        Stop { whole, signals, since: Instant::now(), requests_before, is_rest_told: false, is_killed: false }
    }

    /// Sends the next signal when its time has come.
    pub fn insist(&mut self, running: &Running) {
        if self.is_killed {
            return;
        }
        if self.since.elapsed() > GRACE || self.is_urgent() {
            self.is_killed = true;
            self.whole.kill();
            running.signal(Signal::KILL.as_raw());
        } else if !self.is_rest_told && self.since.elapsed() > MAIN_FIRST {
            self.is_rest_told = true;
            self.whole.terminate(Some(running.pid()));
        }
    }

    /// After the main process has ended: SIGTERM to the others, and SIGKILL to those that do not end.
    pub fn end_the_rest(self) {
        if !self.is_killed && !self.whole.others(None).is_empty() {
            self.whole.terminate(None);
            let since = Instant::now();
            while since.elapsed() < REST && !self.is_urgent() && !self.whole.others(None).is_empty() {
                std::thread::sleep(TICK);
            }
        }
        self.whole.kill();
    }

    /// Whether a person has asked again.
    fn is_urgent(&self) -> bool {
        self.signals.requests_to_end() >= self.requests_before + INSISTENT
    }
}

/// Lifts the limit of a job that is to end.
pub(crate) fn lift_limit(group: &JobCgroup, fast_tier: Option<FastTier>) {
    // A limit that cannot be lifted only makes it harder to clean up.
    let _ = group.set_limit(None, fast_tier.map_or(Swap::Forbidden, FastTier::swap));
}

impl Whole<'_> {
    /// Those that have not ended, but one.
    fn others(self, but: Option<i32>) -> Vec<i32> {
        let mut pids = match self {
            Whole::Cgroup(group) => group.processes().unwrap_or_default(),
            Whole::Tree(tree) => tree.processes(),
        };
        pids.retain(|pid| Some(*pid) != but);
        pids
    }

    fn terminate(self, but: Option<i32>) {
        for pid in self.others(but).into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Kills all, and says what is left.
    pub fn kill(self) {
        let killed = match self {
            Whole::Cgroup(group) => group.kill_all(),
            Whole::Tree(tree) => tree.kill_all(),
        };
        if let Err(error) = killed {
            tell!("bursar: {error}");
        }
    }
}
