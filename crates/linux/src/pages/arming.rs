//! Clearing Accessed bits page by page: `process_madvise(MADV_COLD)`.
//!
//! MADV_COLD clears the bit of pages that are mapped once, moves them to the inactive list, and flushes the processors' TLBs, so that the
//! next access sets the bit again. Locked and hugetlb memory and device mappings are refused; pages mapped more than once are silently
//! skipped. A large folio must be given as a whole: the kernel would split it.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::{Error, procfs};

/// Maximum number of ranges per call (UIO_MAXIOV).
const MOST_RANGES: usize = 1024;

/// A process whose bits can be cleared.
#[derive(Debug)]
pub struct Arming {
    pid: i32,
    process: OwnedFd,
}

impl Arming {
    /// The process with this PID and start time (`starttime` of its `stat`).
    ///
    /// # Errors
    /// [`Error::Gone`] if it ended, even if its PID was reused.
    pub fn of(pid: i32, start_ticks: u64) -> Result<Arming, Error> {
        Ok(Arming { pid, process: open(pid, start_ticks)? })
    }

    /// Clears the bits of these ranges of whole pages. `refused` gets the index of each refused range.
    ///
    /// # Errors
    /// [`Error::Gone`] if the process ended, [`Error::System`] if this user is not permitted to.
    pub fn arm(&self, ranges: &[Range<u64>], mut refused: impl FnMut(usize)) -> Result<(), Error> {
        let mut at = 0;
        while at < ranges.len() {
            let vectors: Vec<_> = ranges[at..]
                .iter()
                .take(MOST_RANGES)
                .map(|range| libc::iovec {
                    iov_base: range.start as *mut libc::c_void,
                    iov_len: (range.end - range.start) as usize,
                })
                .collect();
            // SAFETY: the vectors are valid for reading; the addresses in them belong to another process and are only advised about.
            let advised = unsafe {
                libc::syscall(
                    libc::SYS_process_madvise,
                    self.process.as_raw_fd(),
                    vectors.as_ptr(),
                    vectors.len(),
                    libc::MADV_COLD,
                    0,
                )
            };
            match u64::try_from(advised) {
                Ok(bytes) => {
                    let mut left = bytes;
                    let whole = vectors.iter().take_while(|vector| {
                        let fits = vector.iov_len as u64 <= left;
                        left = left.saturating_sub(vector.iov_len as u64);
                        fits
                    });
                    let whole = whole.count();
                    at += whole;
                    if whole < vectors.len() {
                        refused(at);
                        at += 1;
                    }
                }
                Err(_) => {
                    let source = std::io::Error::last_os_error();
                    match source.raw_os_error() {
                        Some(libc::ESRCH) => return Err(Error::Gone(self.pid)),
                        Some(libc::EINTR | libc::EAGAIN) => {}
                        Some(libc::EPERM | libc::EACCES | libc::ENOSYS | libc::EBADF) => {
                            let what = format!("process_madvise(MADV_COLD) on process {}", self.pid);
                            return Err(Error::System { what, source });
                        }
                        _ => {
                            refused(at);
                            at += 1;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// The process with this PID and start time; [`Error::Gone`] if the PID was reused.
pub(super) fn open(pid: i32, start_ticks: u64) -> Result<OwnedFd, Error> {
    let number = Pid::from_raw(pid).ok_or(Error::Gone(pid))?;
    let process = pidfd_open(number, PidfdFlags::empty()).map_err(|_| Error::Gone(pid))?;
    if procfs::stat(pid)?.starttime == start_ticks { Ok(process) } else { Err(Error::Gone(pid)) }
}
