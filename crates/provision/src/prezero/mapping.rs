//! Memory of a file that a program has, too.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use super::{STATES_AT, UNITS};

/// Zeroed at a time: to write some of it when it is no longer the file's does no harm.
const STEP: usize = 64 << 10;

/// A file, mapped to be written.
pub(super) struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
    is_left: AtomicBool,
}

// SAFETY: it is memory, of no thread.
unsafe impl Send for Mapping {}
// SAFETY: what is written there is zeroes alone, and read is nothing but atomics.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(super) fn new(file: &OwnedFd, bytes: usize) -> Option<Mapping> {
        let at = map(bytes, libc::MAP_SHARED, file.as_fd().as_raw_fd())?;
        Some(Mapping { at, bytes, is_left: AtomicBool::new(false) })
    }

    /// Zeroes some of it; false: it has been left meanwhile.
    pub(super) fn zero(&self, at: usize, bytes: usize) -> bool {
        assert!(at + bytes <= self.bytes);
        (at..at + bytes).step_by(STEP).all(|step| {
            let bytes = STEP.min(at + bytes - step);
            // SAFETY: within the mapping. Who offers it does not touch it until it is told that it is zero, and is a process
            // that could write what it likes there in any case.
            unsafe { self.at.add(step).write_bytes(0, bytes) };
            !self.is_left()
        })
    }

    /// Nothing of the file is held from now on, though somebody may be writing: there is other memory in its place, of which
    /// only what is written yet takes any.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::SeqCst);
        // Where so much may not be promised (vm.overcommit_memory), it is held until nobody writes.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let Some(instead) = map(self.bytes, flags, -1) else { return };
        let (from, to, bytes) = (instead.as_ptr().cast(), self.at.as_ptr().cast::<libc::c_void>(), self.bytes);
        // SAFETY: from a mapping that nothing refers to, over one of which nothing but zeroes is expected.
        unsafe { libc::mremap(from, bytes, bytes, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, to) };
    }

    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }

    pub(super) fn asleep(&self) -> &AtomicU32 {
        // SAFETY: aligned to a page, at least `SHARED_BYTES` long, and of atomics alone on both sides.
        unsafe { self.at.cast().as_ref() }
    }

    pub(super) fn states(&self) -> &[AtomicU8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.at.add(STATES_AT).cast().as_ptr(), UNITS) }
    }
}

fn map(bytes: usize, flags: i32, file: i32) -> Option<NonNull<u8>> {
    // SAFETY: a mapping of its own, at a place of the kernel's choice.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, file, 0) };
    NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}
