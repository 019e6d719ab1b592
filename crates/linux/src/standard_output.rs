//! Standard streams that were closed at the start of this process. Rust's runtime opens /dev/null in their place before `main`, where
//! output is lost without an error.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

static CLOSED: AtomicU8 = AtomicU8::new(0);

/// The loader calls this before Rust's runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    // SAFETY: only reads the descriptor's flags.
    let is_closed = |stream: &libc::c_int| unsafe { libc::fcntl(*stream, libc::F_GETFD) } == -1;
    CLOSED.store((0..3).filter(is_closed).fold(0, |mask, stream| mask | 1 << stream), Ordering::Relaxed);
}

/// Mask of the standard streams that were closed at the start of this process, bit 0 for standard input.
pub fn closed_at_start() -> u8 {
    CLOSED.load(Ordering::Relaxed)
}

/// Standard output; an error (EBADF) if it was closed at the start of this process.
pub fn open() -> io::Result<io::Stdout> {
    match closed_at_start() >> libc::STDOUT_FILENO & 1 {
        0 => Ok(io::stdout()),
        _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
    }
}
