//! System calls that may take for ever, given up after a time.

use std::ptr;
use std::sync::Once;
use std::time::Duration;

/// Until the call has begun, an interruption goes by; so it comes again and again.
const AGAIN: Duration = Duration::from_millis(10);

/// Does what waits in the kernel; from `patience` on, that is interrupted (`EINTR`).
pub fn within<T>(patience: Duration, act: impl FnOnce() -> T) -> T {
    static HANDLED: Once = Once::new();
    HANDLED.call_once(|| {
        // SAFETY: the action is whole, and its handler does nothing.
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

/// Nobody else's: the C library keeps those before the first for itself.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

/// Interrupts this thread, and no other, until dropped.
struct Timer(Option<libc::timer_t>);

impl Timer {
    fn start(patience: Duration) -> Timer {
        let time = |duration: Duration| libc::timespec {
            tv_sec: duration.as_secs() as libc::time_t,
            tv_nsec: duration.subsec_nanos().into(),
        };
        // SAFETY: a plain structure of which zero is a value; the timer's number is only used if it was made.
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
            // SAFETY: made by `start`, and deleted once.
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
    fn a_call_that_would_wait_for_ever_is_given_up() {
        let (mut one, _other) = UnixStream::pair().unwrap();
        let began = Instant::now();
        let read = within(Duration::from_millis(20), || one.read(&mut [0]));
        assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::Interrupted);
        assert!(began.elapsed() >= Duration::from_millis(20));
    }
}
