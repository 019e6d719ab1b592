//! Page cache of a file: measuring and evicting it.

use std::ffi::c_long;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::Advice;

use crate::{Error, file, procfs};

/// Writes back dirty pages and drops all clean page cache of the machine, with dentries and inodes
/// (Documentation/admin-guide/sysctl/vm.rst).
///
/// # Errors
/// [`Error::Write`] without root, or in a container whose `/proc/sys` is read-only.
pub fn drop_caches() -> Result<(), Error> {
    rustix::fs::sync();
    file::write(Path::new("/proc/sys/vm/drop_caches"), "3")
}

/// Evicts one file from the page cache, except pages that are mapped or locked.
///
/// # Errors
/// [`Error::Read`] if it cannot be opened or written back.
pub fn evict(path: &Path) -> Result<(), Error> {
    let failed = |source: io::Error| Error::Read { path: path.into(), source };
    let file = File::open(path).map_err(failed)?;
    // posix_fadvise does not evict dirty pages.
    file.sync_data().map_err(failed)?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| failed(error.into()))
}

/// Evicts clean, unmapped pages. A large folio is evicted only if the range covers all its pages.
///
/// # Errors
/// As `posix_fadvise(2)`.
pub fn drop_range(file: &File, bytes: Range<u64>) -> io::Result<()> {
    let length = NonZeroU64::new(bytes.end.saturating_sub(bytes.start));
    let Some(length) = length else { return Ok(()) };
    Ok(rustix::fs::fadvise(file, bytes.start, Some(length), Advice::DontNeed)?)
}

/// Writes dirty pages back to the storage. `wait`: until they are written, else it is only started. Metadata is not written, so nothing
/// becomes durable.
///
/// # Errors
/// As `sync_file_range(2)`.
pub fn write_back(file: &File, bytes: Range<u64>, wait: bool) -> io::Result<()> {
    let length = bytes.end.saturating_sub(bytes.start) as i64;
    let flags = match wait {
        true => libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER,
        false => libc::SYNC_FILE_RANGE_WRITE,
    };
    // SAFETY: no memory is passed; the descriptor is open while `file` lives.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), bytes.start as i64, length, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads the whole running program into the page cache, so that none of it is charged to a later job.
pub fn read_own_program() {
    let Ok(mut program) = File::open("/proc/self/exe") else { return };
    let length = program.metadata().map_or(u64::MAX, |found| found.len());
    if cached_pages(&program).is_some_and(|pages| pages >= length.div_ceil(procfs::page_bytes())) {
        return;
    }
    // If it cannot be read, its pages are read on demand, as without this.
    let _ = io::copy(&mut program, &mut io::sink());
}

/// Bytes of a regular file in the page cache; `None` if unknown: the file does not exist, this user may not know (cachestat and mincore
/// require the owner or a writer), or the file system has no page cache.
pub fn cached_bytes(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok().filter(|found| found.is_file())?.len();
    if length == 0 {
        return Some(0);
    }
    Some((cached_pages(&file)? * procfs::page_bytes()).min(length))
}

/// Pages of an open file in the page cache; `None` as [`cached_bytes`].
pub fn cached_pages(file: &File) -> Option<u64> {
    cachestat(file).or_else(|| mincore(file, file.metadata().ok()?.len()))
}

/// Cached pages of the whole file.
fn cachestat(file: &File) -> Option<u64> {
    /// The same number on all architectures; libc lacks it for some targets.
    const SYS_CACHESTAT: c_long = 451;
    // struct cachestat_range { off, len }; a length of 0 means to the end.
    let range = [0u64; 2];
    // struct cachestat { nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted }
    let mut found = [0u64; 5];
    // SAFETY: both structures live through the call and have the layout of <linux/mman.h>.
    let status = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), found.as_mut_ptr(), 0u32) };
    (status == 0).then_some(found[0])
}

/// The same on older kernels. For users without the right to know, mincore reports that all pages are cached (mincore(2)); so it is used
/// only for files that this user could write.
fn mincore(file: &File, length: u64) -> Option<u64> {
    /// Mapped at a time, so that a large file does not need a large vector.
    const WINDOW: u64 = 1 << 30;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let may_know = file::is_writable(Path::new(&path))
        || rustix::fs::fstat(file).ok()?.st_uid == rustix::process::geteuid().as_raw();
    let page = procfs::page_bytes();
    let mut resident = vec![0u8; (length.min(WINDOW)).div_ceil(page) as usize];
    let mut pages = 0;
    let mut offset = 0;
    while may_know && offset < length {
        let span = (length - offset).min(WINDOW) as usize;
        // SAFETY: a new read-only mapping that is never dereferenced; `resident` has a byte for each of its pages.
        let status = unsafe {
            let address = libc::mmap(
                std::ptr::null_mut(),
                span,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset as libc::off_t,
            );
            if address == libc::MAP_FAILED {
                return None;
            }
            let status = libc::mincore(address, span, resident.as_mut_ptr());
            libc::munmap(address, span);
            status
        };
        if status != 0 {
            return None;
        }
        let in_window = (span as u64).div_ceil(page) as usize;
        pages += resident[..in_window].iter().filter(|byte| **byte & 1 == 1).count() as u64;
        offset += span as u64;
    }
    may_know.then_some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cached_and_evicted() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("file");
        let length = 5 * 4096 + 17;
        std::fs::write(&path, vec![1u8; length]).unwrap();
        assert_eq!(cached_bytes(&path), Some(length as u64));
        let pages = mincore(&File::open(&path).unwrap(), length as u64);
        assert_eq!(pages, Some((length as u64).div_ceil(procfs::page_bytes())));
        evict(&path).unwrap();
        assert_eq!(cached_bytes(&path), Some(0));
        assert_eq!(mincore(&File::open(&path).unwrap(), length as u64), Some(0));
    }

    #[test]
    fn a_range_is_written_back_and_dropped() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1u8; 64 * 4096]).unwrap();
        let file = File::open(&path).unwrap();
        write_back(&file, 0..64 * 4096, true).unwrap();
        // Half of a large folio stays.
        drop_range(&file, 0..0).unwrap();
        assert_eq!(cached_bytes(&path), Some(64 * 4096));
        drop_range(&file, 0..64 * 4096).unwrap();
        assert_eq!(cached_bytes(&path), Some(0));
    }

    #[test]
    fn the_cache_of_other_files_is_unknown() {
        assert_eq!(cached_bytes(Path::new("/dev/null")), None);
        assert_eq!(cached_bytes(Path::new("/no/such/file")), None);
        assert!(evict(Path::new("/no/such/file")).is_err());
    }
}
