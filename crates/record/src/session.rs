//! Who writes a record, so that nobody seals it under a writer that lives.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process that writes a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Host name.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The PID namespace, as `/proc/self/ns/pid` names it.
    pub pid_namespace: String,
    /// Process id in that namespace.
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
}

/// What can be said of a session from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    Dead,
    /// It is on another machine, in another container, or cannot be looked up.
    Unknown,
}

impl Session {
    /// This process.
    pub(crate) fn current() -> Session {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_string();
        let pid = std::process::id() as i32;
        Session {
            host: line("/proc/sys/kernel/hostname"),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            pid_namespace: fs::read_link("/proc/self/ns/pid").unwrap_or_default().display().to_string(),
            pid,
            start_ticks: start_ticks(pid).unwrap_or_default(),
        }
    }

    /// Whether the process still lives.
    pub(crate) fn life(&self) -> Life {
        let here = Session::current();
        if here.boot_id != self.boot_id || here.pid_namespace != self.pid_namespace || here.start_ticks == 0 {
            return Life::Unknown;
        }
        if start_ticks(self.pid) == Some(self.start_ticks) { Life::Alive } else { Life::Dead }
    }
}

/// Field 22 of `/proc/PID/stat`, counted behind the command name, which may hold anything. A zombie does not count.
fn start_ticks(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_one_with_its_pid_and_another_start_does_not() {
        let here = Session::current();
        assert_eq!(here.life(), Life::Alive);
        assert_eq!(Session { start_ticks: here.start_ticks + 1, ..here.clone() }.life(), Life::Dead);
        assert_eq!(Session { boot_id: "another".into(), ..here }.life(), Life::Unknown);
    }
}
