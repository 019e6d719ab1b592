//! `wait4`: the status and the usage of a child.

use std::io;
use std::mem::MaybeUninit;

use model::{BytesMoved, Exit, Rusage};

/// An ended child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    /// Its status or signal.
    pub exit: Exit,
    /// Whether a signal that ended it also wrote a core.
    pub core_dumped: bool,
    /// Usage of the child and of all descendants it reaped.
    pub rusage: Rusage,
    /// Bytes read and written by it and by all descendants it reaped, if the caller read them before reaping it ([`crate::procfs::moved`]).
    pub moved: Option<BytesMoved>,
    /// Whether it has surely reaped no child that ran, so that its status is its own; needs a reading before it was reaped
    /// ([`crate::procfs::Stat::reaped_faults`]).
    pub waited_for_none: bool,
}

/// Whether this process has any child, running or not yet reaped.
pub fn has_children() -> bool {
    let mut found = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: valid for writes during the call, which reaps nothing.
    let failed = unsafe { libc::waitid(libc::P_ALL, 0, found.as_mut_ptr(), options) } < 0;
    !(failed && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD))
}

/// Reaps child `pid` if it has ended; `None` while it runs. With `block`, waits until it ends.
///
/// # Errors
/// The system call's error, `ECHILD` if `pid` is not our child. Interruptions are retried.
pub fn wait4(pid: i32, block: bool) -> io::Result<Option<Ended>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let options = if block { 0 } else { libc::WNOHANG };
    let reaped = loop {
        // SAFETY: both pointers are valid for writes during the call.
        let reaped = unsafe { libc::wait4(pid, &mut status, options, usage.as_mut_ptr()) };
        match reaped {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
            -1 => return Err(io::Error::last_os_error()),
            other => break other,
        }
    };
    if reaped == 0 {
        return Ok(None);
    }
    // SAFETY: zeroed is a valid rusage, and the kernel has filled it in because a child was reaped.
    let usage = unsafe { usage.assume_init() };
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Status(libc::WEXITSTATUS(status))
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    Ok(Some(Ended {
        exit,
        core_dumped: libc::WIFSIGNALED(status) && libc::WCOREDUMP(status),
        rusage: Rusage {
            max_rss_bytes: count(usage.ru_maxrss) * 1024,
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            blocks_in: count(usage.ru_inblock),
            blocks_out: count(usage.ru_oublock),
        },
        moved: None,
        waited_for_none: false,
    }))
}

/// Waits until a child has ended, without reaping it.
///
/// # Errors
/// The system call's error, `ECHILD` if there are no children. Interruptions are retried.
pub(crate) fn next_to_end() -> io::Result<i32> {
    loop {
        // SAFETY: zeroes are a valid siginfo, which is valid for writes during the call; `si_pid` is set if a child was found.
        let (failed, pid) = unsafe {
            let mut found: libc::siginfo_t = std::mem::zeroed();
            (libc::waitid(libc::P_ALL, 0, &raw mut found, libc::WEXITED | libc::WNOWAIT), found.si_pid())
        };
        if failed == 0 {
            return Ok(pid);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    #[expect(clippy::zombie_processes, reason = "wait4 is what reaps it")]
    fn a_child_has_its_own_status_and_peak() {
        let child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let ended = wait4(child.id() as i32, true).unwrap().unwrap();
        assert_eq!(ended.exit, Exit::Status(7));
        assert!(ended.rusage.max_rss_bytes > 100 << 10 && ended.rusage.minor_faults > 0);
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "wait4 is what reaps it")]
    fn a_child_ended_by_a_signal_is_reported_so() {
        let child = Command::new("sh").args(["-c", "kill -TERM $$"]).spawn().unwrap();
        assert_eq!(wait4(child.id() as i32, true).unwrap().unwrap().exit, Exit::Signal(libc::SIGTERM));
    }

    #[test]
    fn other_processes_cannot_be_waited_for() {
        assert_eq!(wait4(1, false).unwrap_err().raw_os_error(), Some(libc::ECHILD));
    }
}
