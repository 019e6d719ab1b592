//! Taking back the page cache that a job leaves behind, so that the next one does not get it free.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{Cgroup, Version};
use crate::{Error, file};

/// Attempts in a row that may free nothing before the rest is taken to be unreclaimable.
const FRUITLESS: u32 = 3;
/// Longest wait for dirty pages of the whole machine, among them perhaps a file system whose server is gone.
const SYNC_PATIENCE: Duration = Duration::from_secs(60);

impl Cgroup {
    /// Takes back all memory that can be taken, once the processes are gone. Returns the bytes left charged: tmpfs, kernel
    /// objects, and file pages that somebody else has mapped or locked.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::Write`] if it is gone or not ours to write.
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

    /// What is charged now.
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
                // Before Linux 5.19: a high mark reclaims down to it when it is written, and kills nothing.
                let high = self.dir.join("memory.high");
                accept_partial(file::write(&high, "0"))?;
                file::write(&high, "max")
            }
        }
    }
}

/// These files answer "not all of it" with an error though they did what they could.
fn accept_partial(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR)) => Ok(()),
        other => other,
    }
}

/// Which files the dirty pages belong to is not known, so everything is written. In a thread of its own, because one dead
/// network file system would block it for good. Where no thread can be had, dirty pages stay.
fn sync_with_patience() {
    let (done, finished) = mpsc::channel();
    let sync = move || {
        rustix::fs::sync();
        let _ = done.send(());
    };
    // Of a thread that was not started the sender is gone, and nothing is waited for.
    let _ = thread::Builder::new().spawn(sync);
    let _ = finished.recv_timeout(SYNC_PATIENCE);
}
