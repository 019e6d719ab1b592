//! Capabilities (capabilities(7)), and the sets of them that `/proc/PID/status` shows.

use std::path::Path;

use crate::file;

/// One that bursar, or what it advises, makes use of, with its number in `linux/capability.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// To signal processes of other users.
    Kill = 5,
    /// Exit records over netlink.
    NetAdmin = 12,
    /// To read the memory of processes of other users.
    SysPtrace = 19,
    /// Mounts, settings, cgroups; on its own enough for BPF and perf.
    SysAdmin = 21,
    /// Advice to other processes on their memory.
    SysNice = 23,
    /// Events of the kernel and of other users' processes.
    PerfMon = 38,
    /// BPF programs.
    Bpf = 39,
}

/// A set of capabilities, bit by bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(u64);

/// Those of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sets {
    /// What it may make effective.
    pub permitted: Set,
    /// What the kernel asks for when it decides.
    pub effective: Set,
    /// What programs that it executes can gain at most.
    pub bounding: Set,
}

impl Set {
    pub(crate) fn has(self, capability: Capability) -> bool {
        self.0 >> capability as u32 & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it holds all that the other holds.
    pub(crate) fn covers(self, other: Set) -> bool {
        other.0 & !self.0 == 0
    }
}

impl Sets {
    /// By the text of `/proc/PID/status`; `None` if that lacks one of them.
    pub(crate) fn of_status(status: &str) -> Option<Sets> {
        let set = |name: &str| {
            let hex = status.lines().find_map(|line| line.strip_prefix(name))?;
            u64::from_str_radix(hex.trim(), 16).ok().map(Set)
        };
        Some(Sets { permitted: set("CapPrm:")?, effective: set("CapEff:")?, bounding: set("CapBnd:")? })
    }

    /// This process's; none where that cannot be read.
    pub(crate) fn own() -> Sets {
        let status = file::read_if_there(Path::new("/proc/self/status"));
        status.and_then(|status| Sets::of_status(&status)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_is_read_from_its_own_line() {
        let status = "Name:\tx\nCapInh:\t00000000000000ff\nCapPrm:\t0000000000200000\nCapEff:\t0000004000000000\n\
                      CapBnd:\t0000000000201000\nCapAmb:\t0000000000000001\n";
        let sets = Sets::of_status(status).unwrap();
        assert!(sets.permitted.has(Capability::SysAdmin) && !sets.permitted.has(Capability::PerfMon));
        assert!(sets.effective.has(Capability::PerfMon) && !sets.effective.has(Capability::SysAdmin));
        assert!(sets.bounding.has(Capability::SysAdmin) && sets.bounding.has(Capability::NetAdmin));
        assert!(sets.bounding.covers(sets.permitted) && !sets.permitted.covers(sets.bounding));
    }

    #[test]
    fn a_status_without_a_set_or_with_another_text_in_it_has_none() {
        assert_eq!(Sets::of_status(""), None);
        assert_eq!(Sets::of_status("CapPrm:\t0\nCapEff:\t0\n"), None);
        assert_eq!(Sets::of_status("CapPrm:\t0\nCapEff:\tall\nCapBnd:\t0\n"), None);
    }
}
