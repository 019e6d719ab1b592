//! Advice about another process's memory by `process_madvise`: collapsing and splitting huge pages, paging out.

use std::os::fd::{AsRawFd, OwnedFd};

use super::REGION_BYTES;
use super::arming::open;
use crate::{Error, procfs};

/// A process whose memory receives advice.
#[derive(Debug)]
pub struct Advised {
    pid: i32,
    process: OwnedFd,
}

/// Why the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No huge page was free (ENOMEM).
    NoHugePage,
    /// A page was in use or being moved (EAGAIN, EBUSY).
    Busy,
    /// The memory no longer exists, or may not be huge (EINVAL).
    Unsuitable,
    /// The process has ended (ESRCH).
    Gone,
    /// This user is not permitted to (EPERM).
    Forbidden,
}

impl Refusal {
    /// The reason in words that follow "not promoted: 3 times".
    pub fn why(self) -> &'static str {
        match self {
            Refusal::NoHugePage => "no huge page was free",
            Refusal::Busy => "pages were in use by the kernel",
            Refusal::Unsuitable => "the memory had gone, or the program does not want huge pages there",
            Refusal::Gone => "the process had ended",
            Refusal::Forbidden => "it needs CAP_SYS_NICE",
        }
    }
}

impl Advised {
    /// The process with this PID and start time (`starttime` of its `stat`).
    ///
    /// # Errors
    /// [`Error::Gone`] if it ended, even if its PID was reused.
    pub fn of(pid: i32, start_ticks: u64) -> Result<Advised, Error> {
        Ok(Advised { pid, process: open(pid, start_ticks)? })
    }

    /// Collapses a populated region of 2 MiB into a huge page (MADV_COLLAPSE, Linux 6.1).
    ///
    /// # Errors
    /// The reason; nothing has changed then.
    pub fn collapse(&self, region: u64) -> Result<(), Refusal> {
        self.advise(region, REGION_BYTES, libc::MADV_COLLAPSE)
    }

    /// Splits the huge page of a region: MADV_COLD on a part of it. Since Linux 6.12, its zero-filled pages are freed.
    ///
    /// # Errors
    /// The reason.
    pub fn split(&self, region: u64) -> Result<(), Refusal> {
        self.advise(region, procfs::page_bytes(), libc::MADV_COLD)
    }

    /// Pages these whole pages out: to swap, or to their files (MADV_PAGEOUT). Pages mapped more than once are skipped.
    ///
    /// # Errors
    /// The reason; some pages may have been paged out then.
    pub fn page_out(&self, start: u64, bytes: u64) -> Result<(), Refusal> {
        self.advise(start, bytes, libc::MADV_PAGEOUT)
    }

    /// Moves these pages to the kernel's inactive list (MADV_COLD); pages mapped more than once are skipped.
    ///
    /// # Errors
    /// The reason; some pages may have been moved then.
    pub fn deactivate(&self, start: u64, bytes: u64) -> Result<(), Refusal> {
        self.advise(start, bytes, libc::MADV_COLD)
    }

    /// Number of all-zero pages of a region. Reads the whole region.
    ///
    /// # Errors
    /// [`Error::Gone`] if the memory or the process is gone, [`Error::System`] if this user may not read it.
    pub fn zero_pages(&self, region: u64) -> Result<u64, Error> {
        let mut bytes = vec![0u8; REGION_BYTES as usize];
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: region as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: the local vector covers all of `bytes`; the other is an address of another process, which the kernel checks.
        let read = unsafe { libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0) };
        if read != REGION_BYTES as isize {
            let source = std::io::Error::last_os_error();
            return Err(match source.raw_os_error() {
                Some(libc::EPERM) if read < 0 => {
                    Error::System { what: format!("process_vm_readv on process {}", self.pid), source }
                }
                _ => Error::Gone(self.pid),
            });
        }
        let zeroes = vec![0u8; procfs::page_bytes() as usize];
        Ok(bytes.chunks_exact(zeroes.len()).filter(|page| *page == zeroes).count() as u64)
    }

    fn advise(&self, start: u64, bytes: u64, advice: libc::c_int) -> Result<(), Refusal> {
        let vector = libc::iovec { iov_base: start as *mut libc::c_void, iov_len: bytes as usize };
        // SAFETY: the vector is valid for reading; the address in it belongs to another process and is only advised about.
        let advised = unsafe {
            libc::syscall(libc::SYS_process_madvise, self.process.as_raw_fd(), &raw const vector, 1, advice, 0)
        };
        if advised == bytes as i64 {
            return Ok(());
        }
        Err(match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOMEM) => Refusal::NoHugePage,
            Some(libc::ESRCH) => Refusal::Gone,
            Some(libc::EPERM | libc::EACCES) => Refusal::Forbidden,
            Some(libc::EAGAIN | libc::EBUSY | libc::EINTR) => Refusal::Busy,
            _ => Refusal::Unsuitable,
        })
    }
}
