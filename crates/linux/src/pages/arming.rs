//! Clearing Accessed bits page by page: `process_madvise(MADV_COLD)`.
//!
//! It clears the bit of pages that are mapped once, moves them to the inactive list, and flushes the processors' TLBs, so that
//! the next access is seen. Locked and hugetlb memory and device mappings are refused; pages that are mapped more than once are passed over in
//! silence. A large folio must be given whole: of a part the kernel would split it.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::{Error, procfs};

/// Ranges that one call takes (UIO_MAXIOV).
const MOST_RANGES: usize = 1024;

/// A process whose bits may be cleared.
#[derive(Debug)]
pub struct Arming {
    pid: i32,
    process: OwnedFd,
}

impl Arming {
    /// Of the process that has this number and began at this time (`starttime` of its `stat`).
    ///
    /// # Errors
    /// [`Error::Gone`] if it ended, even if another has got its number.
    pub fn of(pid: i32, start_ticks: u64) -> Result<Arming, Error> {
        Ok(Arming { pid, process: open(pid, start_ticks)? })
    }

    /// Clears the bits of these ranges of whole pages. Tells the index of each that was refused.
    ///
    /// # Errors
    /// [`Error::Gone`] if the process ended, [`Error::System`] if this user may not.
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
            // SAFETY: the vectors are valid for reading; the addresses in them are another process's and only advised about.
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

/// The process that has this number and began at this time; [`Error::Gone`] if another has got its number.
pub(super) fn open(pid: i32, start_ticks: u64) -> Result<OwnedFd, Error> {
    let number = Pid::from_raw(pid).ok_or(Error::Gone(pid))?;
    let process = pidfd_open(number, PidfdFlags::empty()).map_err(|_| Error::Gone(pid))?;
    if procfs::stat(pid)?.starttime == start_ticks { Ok(process) } else { Err(Error::Gone(pid)) }
}
