//! Reclaims the page cache that a job leaves, so that the next job does not get it for free.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{Cgroup, Version};
use crate::{Error, file};

/// Number of consecutive attempts that may free nothing before the rest counts as unreclaimable.
const FRUITLESS: u32 = 3;
/// Time limit for writing back the whole machine, which may include a file system whose server is gone.
const SYNC_PATIENCE: Duration = Duration::from_secs(60);

impl Cgroup {
    /// Reclaims all possible memory after the processes have ended. Returns the bytes that stay charged: tmpfs, kernel objects, and file
    /// pages that other processes map or lock.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::Write`] if it is gone or not writable.
    pub fn reclaim_all(&self) -> Result<u64, Error> {
        let state = self.memory()?;
        if state.file_dirty.unwrap_or(1) + state.file_writeback.unwrap_or(0) > 0 {
            sync_with_patience();
        }
        let mut left = state.usage.unwrap_or(0);
        let mut fruitless = 0;
        while left > 0 && fruitless < FRUITLESS {
            self.reclaim_once(left)?;
            let now = self.usage()?;
            fruitless = if now < left { 0 } else { fruitless + 1 };
            left = now;
        }
        Ok(left)
    }

    /// The current charge.
    ///
    /// # Errors
    /// [`Error::Read`] if it is gone.
    pub fn usage(&self) -> Result<u64, Error> {
        let path = self.dir.join(match self.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        });
        let text = file::read(&path)?;
        text.trim().parse().map_err(|_| Error::Format { path, line: text })
    }

    fn reclaim_once(&self, bytes: u64) -> Result<(), Error> {
        match self.version {
            Version::V1 => accept_partial(file::write(&self.dir.join("memory.force_empty"), "0")),
            Version::V2 => {
                let reclaim = self.dir.join("memory.reclaim");
                if reclaim.exists() {
                    return accept_partial(file::write(&reclaim, &bytes.to_string()));
                }
                // Before Linux 5.19: writing memory.high reclaims down to it, and kills nothing.
                let high = self.dir.join("memory.high");
                accept_partial(file::write(&high, "0"))?;
                file::write(&high, "max")
            }
        }
    }
}

/// Writing these files fails with an error if not all was reclaimed; that is accepted.
fn accept_partial(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR)) => Ok(()),
        other => other,
    }
}

/// Writes back everything, because the files of the dirty pages are unknown. In a thread, because a dead network file system would block
/// for ever. If no thread can be started, dirty pages stay.
fn sync_with_patience() {
    let (done, finished) = mpsc::channel();
    let sync = move || {
        rustix::fs::sync();
        let _ = done.send(());
    };
    // If the thread was not started, its sender is dropped, and the wait ends at once.
    let _ = thread::Builder::new().spawn(sync);
    let _ = finished.recv_timeout(SYNC_PATIENCE);
}
