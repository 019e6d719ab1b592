//! A time limit for system calls that may block for ever.

use std::ptr;
use std::sync::Once;
use std::time::Duration;

/// Interval of the interruptions: one before the call has begun has no effect, so they repeat.
const AGAIN: Duration = Duration::from_millis(10);

/// Runs a blocking function; after `patience` its system call is interrupted (`EINTR`).
pub fn within<T>(patience: Duration, act: impl FnOnce() -> T) -> T {
    static HANDLED: Once = Once::new();
    HANDLED.call_once(|| {
        // SAFETY: the action is complete, and its handler does nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ignore as *const () as libc::sighandler_t;
            libc::sigaction(signal(), &raw const action, ptr::null_mut());
        }
    });
    let timer = Timer::start(patience);
    let done = act();
    drop(timer);
    done
}

extern "C" fn ignore(_: libc::c_int) {}

/// A signal of our own: the C library keeps the real-time signals before SIGRTMIN for itself.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

/// Interrupts only this thread, until dropped.
struct Timer(Option<libc::timer_t>);

impl Timer {
    fn start(patience: Duration) -> Timer {
        let time = |duration: Duration| libc::timespec {
            tv_sec: duration.as_secs() as libc::time_t,
            tv_nsec: duration.subsec_nanos().into(),
        };
        // SAFETY: a plain structure for which zero is valid; the timer id is used only if the timer was created.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = ptr::null_mut();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
                return Timer(None);
            }
            let first = patience.max(Duration::from_millis(1));
            let when = libc::itimerspec { it_interval: time(AGAIN), it_value: time(first) };
            libc::timer_settime(timer, 0, &raw const when, ptr::null_mut());
            Timer(Some(timer))
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(timer) = self.0 {
            // SAFETY: created by `start`, and deleted once.
            unsafe { libc::timer_delete(timer) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_call_that_would_block_for_ever_is_interrupted() {
        let (mut one, _other) = UnixStream::pair().unwrap();
        let began = Instant::now();
        let read = within(Duration::from_millis(20), || one.read(&mut [0]));
        assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::Interrupted);
        assert!(began.elapsed() >= Duration::from_millis(20));
    }
}
