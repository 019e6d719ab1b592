//! Errors, as messages that say what to do.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FsWord, statfs};

use crate::becoming_root::{self, Capability};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process ended while it was read. Expected at any time; callers skip it.
    #[error("process {0} has ended")]
    Gone(i32),
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {value:?} to {path}: {source}{}", hint(path, source))]
    Write {
        /// Which file.
        path: PathBuf,
        /// The value.
        value: String,
        /// Why.
        source: io::Error,
    },
    /// A directory could not be created.
    #[error("cannot create {path}: {source}{}", hint(path, source))]
    Create {
        /// Which directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory could not be removed.
    #[error("cannot remove {path}: {source}; `bursar doctor --repair` tries again")]
    Remove {
        /// Which directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A kernel file does not have the documented format.
    #[error("{path} does not read as expected: {line:?}; please report this with the output of `uname -r`")]
    Format {
        /// Which file.
        path: PathBuf,
        /// The line at fault.
        line: String,
    },
    /// The path is not a cgroup with a memory controller.
    #[error("{0} is not a cgroup with a memory controller; `cat /proc/PID/cgroup` shows the cgroup of a process")]
    NotAMemoryCgroup(PathBuf),
    /// The path is a threaded cgroup.
    #[error(
        "{path} is a threaded cgroup, which has no memory controller: the memory of its threads' processes is charged to {domain}; \
         name that one"
    )]
    Threaded {
        /// The cgroup.
        path: PathBuf,
        /// The root of its threaded domain.
        domain: PathBuf,
    },
    /// Swap is in use, and this kernel cannot forbid it to a cgroup.
    #[error(
        "{0} has no swap limit, so its processes may swap: the kernel was built without accounting of swap, or started without \
         swapaccount=1{way_out}",
        way_out = swapoff()
    )]
    SwapUnlimited(PathBuf),
    /// Processes could not be ended.
    #[error(
        "could not end {processes}: {}",
        if *is_refused {
            match becoming_root::helps(Capability::Kill) {
                true => "they run as another user; end them by sudo kill -KILL PID",
                false => "they run as another user",
            }
        } else {
            "they are still there 20 s after SIGKILL and wait in the kernel, see ps -o pid,stat,wchan"
        }
    )]
    NotEnded {
        /// PIDs and names.
        processes: String,
        /// Whether the kernel does not let this process signal them.
        is_refused: bool,
    },
    /// A system call failed.
    #[error("{what} failed: {source}")]
    System {
        /// The call and its object.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// Another bursar controls this limit.
    #[error("another bursar controls {0}; end that one first")]
    InUse(PathBuf),
    /// systemd refused or failed.
    #[error("systemd did not create a scope for the job: {0}")]
    Systemd(String),
}

impl Error {
    /// The errno of the cause, if there is one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Error::Read { source, .. }
            | Error::Write { source, .. }
            | Error::Create { source, .. }
            | Error::Remove { source, .. }
            | Error::System { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// Advice that makes a limit on swap unnecessary, where this user can follow it.
fn swapoff() -> String {
    let command = becoming_root::command(Capability::SysAdmin, "swapoff -a");
    command.map(|command| format!("; `{command}` makes a limit on swap unnecessary")).unwrap_or_default()
}

/// An additional hint for a file that could not be created or written.
fn hint(path: &Path, source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => match (is_of_cgroup(path), becoming_root::helps(Capability::SysAdmin)) {
            (true, true) => "; this needs root or a delegated cgroup, see `bursar doctor`",
            (true, false) => "; this needs a delegated cgroup, see `bursar doctor`",
            (false, true) if path.starts_with("/proc/sys") || path.starts_with("/sys") => "; this needs root",
            (false, _) => "",
        },
        Some(libc::EROFS) => "; it is mounted read-only, see `bursar doctor`",
        Some(libc::EBUSY) => "; it is in use",
        _ => "",
    }
}

/// Whether it is in a cgroup hierarchy, or is a cgroup that could not be created.
fn is_of_cgroup(path: &Path) -> bool {
    // `linux/magic.h`: CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC.
    const MAGIC: [FsWord; 2] = [0x0027_e0eb, 0x6367_7270];
    let there = path.ancestors().find_map(|path| statfs(path).ok());
    there.is_some_and(|there| MAGIC.contains(&there.f_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str) -> String {
        let source = io::Error::from_raw_os_error(libc::EACCES);
        Error::Write { path: path.into(), value: "1".into(), source }.to_string()
    }

    #[test]
    fn hints_about_cgroups_are_only_for_files_of_cgroups() {
        assert!(!refused("/proc/self/clear_refs").contains("cgroup"));
        assert!(!refused("/proc/sys/vm/drop_caches").contains("cgroup"));
        for mount in crate::mounts::own().iter().filter(|mount| mount.kind.starts_with("cgroup")) {
            let file = mount.point.join("cgroup.procs");
            assert!(refused(&file.display().to_string()).contains("delegated cgroup"), "{}", file.display());
        }
    }

    #[test]
    fn root_is_not_advised_to_use_sudo() {
        if rustix::process::geteuid().is_root() {
            let not_ended = Error::NotEnded { processes: "7 (x)".into(), is_refused: true };
            let unlimited = Error::SwapUnlimited("/x".into());
            let all = [not_ended.to_string(), unlimited.to_string(), refused("/proc/sys/vm/drop_caches")];
            assert!(all.iter().all(|hint| !hint.contains("sudo") && !hint.contains("root")), "{all:?}");
        }
    }
}
