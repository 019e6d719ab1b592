//! A file mapped both here and in a program.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use super::{STATES_AT, UNITS};

/// Bytes zeroed per step; after a detach, at most one step is written to the replacement.
const STEP: usize = 64 << 10;

/// A file, mapped writable.
pub(super) struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
    is_detached: AtomicBool,
}

// SAFETY: memory is not bound to a thread.
unsafe impl Send for Mapping {}
// SAFETY: only zeroes are written there, and only atomics are read.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(super) fn new(file: &OwnedFd, bytes: usize) -> Option<Mapping> {
        let at = map(bytes, libc::MAP_SHARED, file.as_fd().as_raw_fd())?;
        Some(Mapping { at, bytes, is_detached: AtomicBool::new(false) })
    }

    /// Zeroes a part; false: the mapping was detached meanwhile.
    pub(super) fn zero(&self, at: usize, bytes: usize) -> bool {
        assert!(at + bytes <= self.bytes);
        (at..at + bytes).step_by(STEP).all(|step| {
            let bytes = STEP.min(at + bytes - step);
            // SAFETY: within the mapping. A client does not access memory that it offers until it is marked as zeroed; and it could write
            // anything there in any case.
            unsafe { self.at.add(step).write_bytes(0, bytes) };
            !self.is_detached()
        })
    }

    /// Replaces the mapping by anonymous memory, so that the file is no longer held even while another thread writes to it. Only pages that
    /// are still written take memory.
    pub(super) fn detach(&self) {
        self.is_detached.store(true, Ordering::SeqCst);
        // If the kernel refuses to commit so much (vm.overcommit_memory), the file is held until the mapping is dropped.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let Some(instead) = map(self.bytes, flags, -1) else { return };
        let (from, to, bytes) = (instead.as_ptr().cast(), self.at.as_ptr().cast::<libc::c_void>(), self.bytes);
        // SAFETY: moves a mapping without references over one of which only zeroes are expected.
        unsafe { libc::mremap(from, bytes, bytes, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, to) };
    }

    pub(super) fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::SeqCst)
    }

    pub(super) fn asleep(&self) -> &AtomicU32 {
        // SAFETY: page-aligned, at least `SHARED_BYTES` long, and accessed only as atomics on both sides.
        unsafe { self.at.cast().as_ref() }
    }

    pub(super) fn states(&self) -> &[AtomicU8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.at.add(STATES_AT).cast().as_ptr(), UNITS) }
    }
}

fn map(bytes: usize, flags: i32, file: i32) -> Option<NonNull<u8>> {
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, file, 0) };
    NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no references remain.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}
