//! Capabilities (capabilities(7)), and their sets in `/proc/PID/status`.

use std::path::Path;

use crate::file;

/// A capability that bursar or the commands it advises need, with its number in `linux/capability.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Signalling processes of other users.
    Kill = 5,
    /// Exit records over netlink.
    NetAdmin = 12,
    /// Reading the memory of other users' processes.
    SysPtrace = 19,
    /// Mounts, settings, cgroups; includes BPF and perf.
    SysAdmin = 21,
    /// Memory advice to other processes.
    SysNice = 23,
    /// Events of the kernel and of other users' processes.
    PerfMon = 38,
    /// BPF programs.
    Bpf = 39,
}

/// A set of capabilities, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(u64);

/// The capability sets of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sets {
    /// Permitted: may be made effective.
    pub permitted: Set,
    /// Effective: checked by the kernel.
    pub effective: Set,
    /// Bounding: the most that executed programs can gain.
    pub bounding: Set,
}

impl Set {
    pub(crate) fn has(self, capability: Capability) -> bool {
        self.0 >> capability as u32 & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it contains all of the other set.
    pub(crate) fn covers(self, other: Set) -> bool {
        other.0 & !self.0 == 0
    }
}

impl Sets {
    /// From the text of `/proc/PID/status`; `None` if a set is missing.
    pub(crate) fn of_status(status: &str) -> Option<Sets> {
        let set = |name: &str| {
            let hex = status.lines().find_map(|line| line.strip_prefix(name))?;
            u64::from_str_radix(hex.trim(), 16).ok().map(Set)
        };
        Some(Sets { permitted: set("CapPrm:")?, effective: set("CapEff:")?, bounding: set("CapBnd:")? })
    }

    /// This process's sets; empty if they cannot be read.
    pub(crate) fn own() -> Sets {
        let status = file::read_if_present(Path::new("/proc/self/status"));
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
