//! Signals: dispositions at the start of this process, default actions, and sending.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, mem, ptr};

/// The largest signal number on Linux.
const LAST: i32 = 64;
/// The first real-time signal that the C library leaves to programs.
const FIRST_REAL_TIME: i32 = 34;

static IGNORED: AtomicU64 = AtomicU64::new(0);

/// The loader calls this before Rust's runtime, which ignores SIGPIPE, begins.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    // The raw system call, because the C library's refuses its own two signals. The handler is the first word.
    let is_ignored = |signal: i32| {
        let mut found = [0usize; 8];
        // SAFETY: the kernel writes one action, of four words.
        let failed = unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<u8>(), found.as_mut_ptr(), size_of::<u64>())
        };
        failed == 0 && found[0] == libc::SIG_IGN
    };
    let mask = (1..=LAST).filter(|signal| is_ignored(*signal)).fold(0, |mask, signal| mask | 1 << (signal - 1));
    IGNORED.store(mask, Ordering::Relaxed);
}

/// Mask of the signals that were ignored at the start of this process, bit 0 for signal 1: SIGHUP under `nohup`, SIGINT and SIGQUIT of a
/// background job of a script.
pub fn ignored_at_start() -> u64 {
    IGNORED.load(Ordering::Relaxed)
}

/// The signal that the kernel sends to this process when its parent dies (`PR_SET_PDEATHSIG`); 0: none. It survives an exec, but not a
/// fork.
pub fn of_parents_death() -> i32 {
    rustix::process::parent_process_death_signal().ok().flatten().map_or(0, |signal| signal.as_raw())
}

/// Signals to forward by a process that stands in for another: every signal that can be caught, except SIGCHLD, which is about its own
/// children, SIGTTIN and SIGTTOU, which are about its own use of the terminal, and those raised by its own errors.
pub fn forwardable() -> impl Iterator<Item = i32> {
    use libc::*;
    const OWN: [c_int; 12] =
        [SIGKILL, SIGSTOP, SIGCHLD, SIGTTIN, SIGTTOU, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS];
    (1..=LAST).filter(|signal| !OWN.contains(signal) && (*signal < 32 || *signal >= FIRST_REAL_TIME))
}

/// Keeps children waitable even if SIGCHLD was ignored at the start: otherwise the kernel would reap them, and their status would be lost.
/// Processes started here must get SIGCHLD as in [`ignored_at_start`].
pub fn children_are_kept() {
    if ignored_at_start() >> (libc::SIGCHLD - 1) & 1 != 0 {
        set_default(libc::SIGCHLD);
    }
}

/// Unblocks signals in this thread that were blocked at the start of this process. Its other threads, and its children, keep them blocked.
pub fn unblock_here(signals: impl Iterator<Item = i32>) {
    change_mask(libc::SIG_UNBLOCK, signals);
}

/// Takes the default action of a signal: this process ends or stops. Returns if the signal does neither, as in PID 1 of a PID namespace,
/// which the kernel protects from its own signals; and when a stopped process is continued.
pub fn take_default_action(signal: i32) {
    let Some(before) = action(signal) else { return };
    set_default(signal);
    change_mask(libc::SIG_UNBLOCK, [signal].into_iter());
    // SAFETY: `raise` signals only this thread; the saved action is complete.
    unsafe {
        libc::raise(signal);
        libc::sigaction(signal, &raw const before, ptr::null_mut());
    }
}

/// Sends a signal to a process; no error if it has ended.
///
/// # Errors
/// `kill`'s error: not permitted, or no such signal.
pub fn send(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()).or_else(|error| match error.raw_os_error() {
            Some(libc::ESRCH) => Ok(()),
            _ => Err(error),
        }),
    }
}

fn action(signal: i32) -> Option<libc::sigaction> {
    // SAFETY: zeroes are a valid action, which the call fills in.
    unsafe {
        let mut found: libc::sigaction = mem::zeroed();
        (libc::sigaction(signal, ptr::null(), &raw mut found) == 0).then_some(found)
    }
}

fn set_default(signal: i32) {
    // SAFETY: sets the default disposition, which runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

fn change_mask(how: i32, signals: impl Iterator<Item = i32>) {
    // SAFETY: the set is initialised by sigemptyset before it is used.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        signals.for_each(|signal| _ = libc::sigaddset(&raw mut set, signal));
        libc::pthread_sigmask(how, &raw const set, ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_catchable_signals_not_about_this_process() {
        let all: Vec<i32> = forwardable().collect();
        for signal in [libc::SIGHUP, libc::SIGTERM, libc::SIGALRM, libc::SIGTSTP, libc::SIGCONT, libc::SIGPIPE, 34, 64]
        {
            assert!(all.contains(&signal), "{signal}");
        }
        for signal in [libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD, libc::SIGSEGV, 32, 33, 65] {
            assert!(!all.contains(&signal), "{signal}");
        }
    }

    #[test]
    fn a_process_that_has_ended_is_no_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        child.wait().unwrap();
        assert!(send(pid, libc::SIGTERM).is_ok());
        assert_eq!(send(1, 1000).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
