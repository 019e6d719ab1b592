//! Whether standard output was closed when this process began. Rust's runtime opens /dev/null in its place before `main`, where
//! whatever is written is lost without an error.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The loader calls it before Rust's runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    // SAFETY: only reads the descriptor's flags.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Standard output; an error (EBADF) where it was closed when this process began.
pub fn open() -> io::Result<io::Stdout> {
    match WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        false => Ok(io::stdout()),
    }
}
