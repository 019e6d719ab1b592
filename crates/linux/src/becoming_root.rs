//! Whether bursar would get further as root: advice to use sudo is given only where this was checked.
//!
//! It is of no use to root itself; in a user namespace, whose root has no rights over the machine; under `no_new_privs`, with which sudo
//! changes nothing; where the bounding set lacks the capability, which nobody gets back; and nobody knows whether it is under a seccomp
//! filter, which root inherits.

use std::path::Path;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;

use crate::capability::Sets;
use crate::file;

pub use crate::capability::Capability;

/// The users of the initial namespace, as `/proc/self/uid_map` shows them: all, under their own numbers.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

/// Whether root has this capability here, and this user can become root.
pub fn helps(capability: Capability) -> bool {
    let status = file::read_if_there(Path::new("/proc/self/status")).unwrap_or_default();
    !geteuid().is_root() && is_in_initial_namespace() && may_gain(&status, capability)
}

/// The command as this user can run it with this capability: root as it is, others with sudo; `None` where neither is possible.
pub(crate) fn command(capability: Capability, command: &str) -> Option<String> {
    let is_able = geteuid().is_root() && is_in_initial_namespace() && Sets::own().effective.has(capability);
    match is_able {
        true => Some(command.into()),
        false => helps(capability).then(|| format!("sudo {command}")),
    }
}

/// Whether a setting of the kernel can be made: by this user, or by root, which this user can become.
pub(crate) fn can_set(path: &Path) -> bool {
    file::is_writable(path) || helps(Capability::SysAdmin) && !is_read_only(path)
}

/// Whether nobody can write there, for the mount is read-only.
pub(crate) fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether this process's user namespace is the machine's.
pub(crate) fn is_in_initial_namespace() -> bool {
    let map = file::read_if_there(Path::new("/proc/self/uid_map")).unwrap_or_default();
    map.split_whitespace().eq(ALL_USERS)
}

/// Whether what this process executes may have more rights than it, and among them this one.
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
    fn rights_can_be_gained_where_nothing_forbids_it() {
        assert!(may_gain(&status("000001ffffffffff", 0, 0), Capability::PerfMon));
    }

    #[test]
    fn rights_cannot_be_gained_without_new_privileges_under_a_filter_or_beyond_the_bounding_set() {
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
