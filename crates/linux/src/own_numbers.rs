//! Which processes are meant by the numbers that they know themselves by.
//!
//! A process in a PID namespace of its own (a container, `unshare --pid`) sees another number for itself than we see for it,
//! and in a time namespace another start.

use std::collections::BTreeMap;
use std::os::linux::fs::MetadataExt;

use crate::procfs;

/// What a process says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnNumber {
    /// Its PID.
    pub pid: i32,
    /// The PID namespace in which that is its PID; 0: not known, and taken to be ours.
    pub namespace: u64,
    /// When it began, in clock ticks, as its `/proc/self/stat` has it.
    pub start_ticks: u64,
}

/// A process as we see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Our PID for it.
    pub pid: i32,
    /// When it began, in clock ticks, as our `/proc` has it.
    pub start_ticks: u64,
}

/// Finds processes by what they say of themselves. Each is looked for once, while it lives.
#[derive(Debug, Default)]
pub struct OwnNumbers {
    found: BTreeMap<OwnNumber, Option<Seen>>,
}

impl OwnNumbers {
    /// The process; `None` of one in another PID namespace that had ended when it was first asked for, or that we do not see.
    pub fn find(&mut self, own: OwnNumber) -> Option<Seen> {
        let here = procfs::pid_namespace(std::process::id() as i32).map_or(0, u64::from);
        if own.namespace == 0 || here == 0 || own.namespace == here {
            return Some(Seen { pid: own.pid, start_ticks: own.start_ticks });
        }
        *self.found.entry(own).or_insert_with(|| procfs::processes().into_iter().find_map(|pid| seen_as(own, pid)))
    }

    /// Whether the process has not ended; `false` of one that we do not see.
    pub fn lives(&mut self, own: OwnNumber) -> bool {
        let is_there = |seen: Seen| procfs::stat(seen.pid).is_ok_and(|stat| stat.starttime == seen.start_ticks);
        self.find(own).is_some_and(is_there)
    }
}

/// The process of our number, if it says so of itself.
fn seen_as(own: OwnNumber, pid: i32) -> Option<Seen> {
    if procfs::status(pid).ok()?.own_pid != Some(own.pid) {
        return None;
    }
    // Of other users' processes it cannot be read.
    if procfs::pid_namespace(pid).is_some_and(|namespace| u64::from(namespace) != own.namespace) {
        return None;
    }
    let start_ticks = procfs::stat(pid).ok()?.starttime;
    (start_ticks == own.start_ticks || !has_our_clock(pid)).then_some(Seen { pid, start_ticks })
}

/// Whether a process's clocks began when ours did, as far as can be read.
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
    fn a_process_of_another_namespace_is_found_and_its_end_is_seen() {
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
            assert_eq!(numbers.find(own), Some(seen), "what it was is still known");
            assert_eq!(OwnNumbers::default().find(own), None);
        }
    }
}
