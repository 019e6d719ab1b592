//! Memory that processes of a job share with this one, seen as words that each is read and written whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A file without a name, mapped.
#[derive(Debug)]
pub struct SharedWords {
    file: File,
    at: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: it is memory, of no thread, and of atomics alone.
unsafe impl Send for SharedWords {}

impl SharedWords {
    /// So many words of zeroes. All pages are there from the start, so that they are charged to this process.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn create(name: &str, count: usize) -> io::Result<SharedWords> {
        let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.write_all(&vec![0; count * 8])?;
        // A file that others make shorter would end us by a signal.
        fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a mapping of its own, at a place of the kernel's choice.
        let at = unsafe { mmap(ptr::null_mut(), count * 8, protection, flags, &file, 0) }?;
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedWords { file, at, count })
    }

    /// By which processes of this user open it, as long as this is not dropped.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped by `create`, aligned to a page, so long, and of atomics alone on both sides.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: mapped by `create`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.count * 8) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_another_writes_by_its_path_is_read_and_nobody_shortens_it() {
        let shared = SharedWords::create("test", 1024).unwrap();
        let other = File::options().write(true).open(shared.path()).unwrap();
        other.write_all_at(&7u64.to_ne_bytes(), 8 * 1000).unwrap();
        assert_eq!(shared.words()[1000].load(Ordering::Relaxed), 7);
        assert!(other.set_len(8).is_err() && other.set_len(1 << 20).is_err());
    }
}
