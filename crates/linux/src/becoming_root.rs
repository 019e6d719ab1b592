//! Whether root would have more rights: bursar advises sudo only where this is so.
//!
//! Becoming root does not help root itself; in a user namespace, whose root has no rights over the machine; under `no_new_privs`, with
//! which sudo gains nothing; without the capability in the bounding set, which cannot be regained; or under a seccomp filter, whose rules
//! are unknown and which root inherits.

use std::path::Path;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;

use crate::capability::Sets;
use crate::file;

pub use crate::capability::Capability;

/// The users of the initial namespace in `/proc/self/uid_map`: all, each mapped to its own UID.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

/// Whether root has this capability here, and this user can become root.
pub fn helps(capability: Capability) -> bool {
    let status = file::read_if_present(Path::new("/proc/self/status")).unwrap_or_default();
    !geteuid().is_root() && is_in_initial_namespace() && may_gain(&status, capability)
}

/// The command as this user must run it to have this capability: unchanged for root, else with sudo; `None` where neither helps.
pub(crate) fn command(capability: Capability, command: &str) -> Option<String> {
    let is_able = geteuid().is_root() && is_in_initial_namespace() && Sets::own().effective.has(capability);
    match is_able {
        true => Some(command.into()),
        false => helps(capability).then(|| format!("sudo {command}")),
    }
}

/// Whether a kernel setting can be changed: by this user, or by root if this user can become root.
pub(crate) fn can_set(path: &Path) -> bool {
    file::is_writable(path) || helps(Capability::SysAdmin) && !is_read_only(path)
}

/// Whether the file is on a read-only mount.
pub(crate) fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether this process is in the initial user namespace.
pub(crate) fn is_in_initial_namespace() -> bool {
    let map = file::read_if_present(Path::new("/proc/self/uid_map")).unwrap_or_default();
    map.split_whitespace().eq(ALL_USERS)
}

/// Whether a program executed by this process may gain this capability.
fn may_gain(status: &str, capability: Capability) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let has_it = Sets::of_status(status).is_some_and(|sets| sets.bounding.has(capability));
    field("NoNewPrivs:") == Some("0") && field("Seccomp:") == Some("0") && has_it
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bounding: &str, no_new_privileges: u8, seccomp: u8) -> String {
        format!(
            "CapPrm:\t0\nCapEff:\t0\nCapBnd:\t{bounding}\nNoNewPrivs:\t{no_new_privileges}\nSeccomp:\t{seccomp}\nSeccomp_filters:\t0\n"
        )
    }

    #[test]
    fn capabilities_can_be_gained_where_nothing_forbids_it() {
        assert!(may_gain(&status("000001ffffffffff", 0, 0), Capability::PerfMon));
    }

    #[test]
    fn capabilities_cannot_be_gained_where_something_forbids_it() {
        for status in [
            status("000001ffffffffff", 1, 0),
            status("000001ffffffffff", 0, 2),
            status("00000000a80425fb", 0, 0),
            String::new(),
        ] {
            assert!(!may_gain(&status, Capability::PerfMon), "{status}");
        }
    }
}
