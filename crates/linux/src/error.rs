//! What can go wrong, as sentences that a person can act on.

use std::io;
use std::path::PathBuf;

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
    #[error("cannot write {value:?} to {path}: {source}{}", hint(source))]
    Write {
        /// Which file.
        path: PathBuf,
        /// What was to be written.
        value: String,
        /// Why.
        source: io::Error,
    },
    /// A directory could not be made.
    #[error("cannot create {path}: {source}{}", hint(source))]
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
    /// A kernel file does not read as documented.
    #[error("{path} does not read as expected: {line:?}; please report this with the output of `uname -r`")]
    Format {
        /// Which file.
        path: PathBuf,
        /// The line at fault.
        line: String,
    },
    /// The path names no cgroup with a memory controller.
    #[error("{0} is not a cgroup with a memory controller; `cat /proc/PID/cgroup` shows the cgroup of a process")]
    NotAMemoryCgroup(PathBuf),
    /// The path names a threaded cgroup.
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
    /// Swap is in use and this kernel cannot forbid it to a cgroup.
    #[error(
        "{0} has no swap limit, so its processes may swap; start the kernel with `swapaccount=1` or run `swapoff -a`"
    )]
    SwapUnlimited(PathBuf),
    /// Processes could not be ended.
    #[error(
        "could not end {processes}: {}",
        if *is_refused {
            "they run as another user; end them by sudo kill -KILL PID"
        } else {
            "they are still there 20 s after SIGKILL and wait in the kernel, see ps -o pid,stat,wchan"
        }
    )]
    NotEnded {
        /// PIDs and names.
        processes: String,
        /// Whether the kernel refuses to let this process signal them.
        is_refused: bool,
    },
    /// A system call failed.
    #[error("{what} failed: {source}{}", if source.kind() == io::ErrorKind::PermissionDenied { "; this needs root" } else { "" })]
    System {
        /// The call and its object.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// Another bursar moves this limit.
    #[error("{0} is moved by another bursar; end that one first")]
    InUse(PathBuf),
    /// systemd did not do as asked.
    #[error("systemd did not make a scope for the job: {0}")]
    Systemd(String),
}

impl Error {
    /// The error of the kernel beneath, if there is one.
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

fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "; this needs root or a delegated cgroup, see `bursar doctor`",
        Some(libc::EROFS) => "; it is mounted read-only, see `bursar doctor`",
        Some(libc::EBUSY) => "; it is in use",
        _ => "",
    }
}
