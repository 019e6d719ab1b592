//! Identifies processes by the PIDs that they have in their own PID namespaces.
//!
//! A process in another PID namespace (a container, `unshare --pid`) sees another PID for itself than we do, and in a time namespace
//! another start time.

use std::collections::BTreeMap;
use std::os::linux::fs::MetadataExt;

use crate::procfs;

/// The identity that a process reports of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnNumber {
    /// Its PID.
    pub pid: i32,
    /// The PID namespace of that PID; 0: unknown, and assumed to be ours.
    pub namespace: u64,
    /// Its start time in clock ticks, as in its `/proc/self/stat`.
    pub start_ticks: u64,
}

/// A process as visible from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its PID in our namespace.
    pub pid: i32,
    /// Its start time in clock ticks, as in our `/proc`.
    pub start_ticks: u64,
}

/// Finds processes by their own identities. Each is searched for once, while it lives.
#[derive(Debug, Default)]
pub struct OwnNumbers {
    found: BTreeMap<OwnNumber, Option<Seen>>,
}

impl OwnNumbers {
    /// The process; `None` for one in another PID namespace that had ended at the first search, or that is not visible from here.
    pub fn find(&mut self, own: OwnNumber) -> Option<Seen> {
        let here = procfs::pid_namespace(std::process::id() as i32).map_or(0, u64::from);
        if own.namespace == 0 || here == 0 || own.namespace == here {
            return Some(Seen { pid: own.pid, start_ticks: own.start_ticks });
        }
        *self.found.entry(own).or_insert_with(|| procfs::processes().into_iter().find_map(|pid| visible_as(own, pid)))
    }

    /// Whether the process has not ended; `false` if it is not visible from here.
    pub fn lives(&mut self, own: OwnNumber) -> bool {
        let is_there = |seen: Seen| procfs::stat(seen.pid).is_ok_and(|stat| stat.starttime == seen.start_ticks);
        self.find(own).is_some_and(is_there)
    }
}

/// The process with this PID of ours, if its own identity matches.
fn visible_as(own: OwnNumber, pid: i32) -> Option<Seen> {
    if procfs::status(pid).ok()?.own_pid != Some(own.pid) {
        return None;
    }
    // Not readable for other users' processes.
    if procfs::pid_namespace(pid).is_some_and(|namespace| u64::from(namespace) != own.namespace) {
        return None;
    }
    let start_ticks = procfs::stat(pid).ok()?.starttime;
    (start_ticks == own.start_ticks || !has_our_clock(pid)).then_some(Seen { pid, start_ticks })
}

/// Whether a process is in our time namespace, as far as readable.
fn has_our_clock(pid: i32) -> bool {
    let namespace = |pid: &str| std::fs::metadata(format!("/proc/{pid}/ns/time")).ok().map(|found| found.st_ino());
    namespace(&pid.to_string()).is_none_or(|its| namespace("self") == Some(its))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    fn ours() -> OwnNumber {
        let pid = std::process::id() as i32;
        let namespace = procfs::pid_namespace(pid).unwrap().into();
        OwnNumber { pid, namespace, start_ticks: procfs::stat(pid).unwrap().starttime }
    }

    #[test]
    fn a_process_of_our_own_namespace_has_its_own_number() {
        let (own, mut numbers) = (ours(), OwnNumbers::default());
        assert_eq!(numbers.find(own), Some(Seen { pid: own.pid, start_ticks: own.start_ticks }));
        assert_eq!(numbers.find(OwnNumber { namespace: 0, ..own }).map(|seen| seen.pid), Some(own.pid));
        assert!(numbers.lives(own));
        assert!(!numbers.lives(OwnNumber { start_ticks: own.start_ticks + 1, ..own }));
        assert!(!numbers.lives(OwnNumber { namespace: own.namespace + 1, ..own }), "nobody is in that namespace");
    }

    #[test]
    fn a_process_of_another_namespace_is_found_until_its_end() {
        let unshare = ["--pid", "--fork", "--mount-proc"];
        if !Command::new("unshare").args(unshare).arg("true").output().is_ok_and(|output| output.status.success()) {
            return;
        }
        for time in [&[] as &[&str], &["--time", "--boottime", "10000"]] {
            let script = "echo $$ $(stat -Lc %i /proc/self/ns/pid) $(cut -d' ' -f22 /proc/$$/stat); read end";
            let mut child = Command::new("unshare")
                .args(unshare)
                .args(time)
                .args(["sh", "-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut said = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
            let said: Vec<u64> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
            let own = OwnNumber { pid: said[0] as i32, namespace: said[1], start_ticks: said[2] };
            let mut numbers = OwnNumbers::default();
            let seen = numbers.find(own).unwrap();
            assert_eq!(procfs::children(child.id() as i32), [seen.pid], "{own:?}");
            assert!(numbers.lives(own));
            drop(child.stdin.take());
            child.wait().unwrap();
            assert!(!numbers.lives(own));
            assert_eq!(numbers.find(own), Some(seen), "its identity is still known");
            assert_eq!(OwnNumbers::default().find(own), None);
        }
    }
}
