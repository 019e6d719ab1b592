//! Memory shared between the processes of a job and this one, as words that are read and written atomically.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapped memfd.
#[derive(Debug)]
pub struct SharedWords {
    file: File,
    at: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: memory is not bound to a thread, and only accessed by atomics.
unsafe impl Send for SharedWords {}

impl SharedWords {
    /// This many words, zeroed. All pages are populated at once, so that they are charged to this process.
    ///
    /// # Errors
    /// If memory is short.
    pub fn create(name: &str, count: usize) -> io::Result<SharedWords> {
        let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.write_all(&vec![0; count * 8])?;
        // Sealed: if another process truncated the file, accessing it would end us by SIGBUS.
        fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let at = unsafe { mmap(ptr::null_mut(), count * 8, protection, flags, &file, 0) }?;
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedWords { file, at, count })
    }

    /// The path by which processes of this user open it while this lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped by `create`, page-aligned, of this length, and accessed only by atomics on both sides.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: mapped by `create`, and no references remain.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.count * 8) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_written_by_path_are_read_and_truncation_fails() {
        let shared = SharedWords::create("test", 1024).unwrap();
        let other = File::options().write(true).open(shared.path()).unwrap();
        other.write_all_at(&7u64.to_ne_bytes(), 8 * 1000).unwrap();
        assert_eq!(shared.words()[1000].load(Ordering::Relaxed), 7);
        assert!(other.set_len(8).is_err() && other.set_len(1 << 20).is_err());
    }
}
