//! The limit on file sizes (`ulimit -f`).

use std::ptr;

/// Makes writing beyond the limit an error (`EFBIG`), like a full disk, instead of ending this process. Its children get the signal's
/// action as this process found it.
pub fn limit_is_an_error() {
    // SAFETY: the actions are complete, and the handler does nothing; a handler does not outlive exec.
    unsafe {
        let mut found: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGXFSZ, ptr::null(), &raw mut found);
        if found.sa_sigaction == libc::SIG_DFL {
            found.sa_sigaction = nothing as *const () as libc::sighandler_t;
            found.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGXFSZ, &raw const found, ptr::null_mut());
        }
    }
}

extern "C" fn nothing(_: libc::c_int) {}
