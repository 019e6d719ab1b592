//! The thread that does what takes time: adding pages, populating and zeroing segments.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::state::{Adding, Segment};
use crate::{Error, backing, dax, reserve};

/// Something to do.
pub enum Job {
    /// More huge pages.
    Add {
        /// Where and how many.
        adding: Adding,
        /// Their size.
        page_bytes: u64,
    },
    /// A segment that is there and all zeroes afterwards.
    Renew {
        /// Its number.
        number: u32,
        /// What it is.
        segment: Segment,
        /// Its file, and the node of each of its pages; `None`: a dax device.
        file: Option<(PathBuf, Vec<u32>)>,
    },
}

/// Something that was done, or could not be.
pub enum Done {
    /// [`Job::Add`]: how many persistent pages there are more.
    Added {
        /// What was to be done.
        adding: Adding,
        /// How it went.
        result: Result<u64, Error>,
    },
    /// [`Job::Renew`].
    Renewed {
        /// The segment.
        number: u32,
        /// How it went, with the name of its device if it is one.
        result: io::Result<Option<String>>,
    },
}

/// The thread. Its descriptor can be read from when something was done.
pub struct Worker {
    jobs: Sender<Job>,
    done: Receiver<Done>,
    wake: UnixStream,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts it.
    pub fn start() -> io::Result<Worker> {
        let (jobs, open) = channel();
        let (finished, done) = channel();
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let thread = thread::Builder::new().name("zero".into()).spawn(move || {
            for job in open {
                if finished.send(work(job)).is_err() {
                    return;
                }
                // Full: it can be read from already.
                let _ = (&waker).write(&[0]);
            }
        })?;
        Ok(Worker { jobs, done, wake, thread })
    }

    /// Something to do, after all that was to be done before.
    pub fn send(&self, job: Job) {
        // The thread does not end before us.
        let _ = self.jobs.send(job);
    }

    /// What was done since.
    pub fn done(&self) -> Vec<Done> {
        let mut woken = [0; 256];
        while matches!((&self.wake).read(&mut woken), Ok(1..)) {}
        self.done.try_iter().collect()
    }

    /// Waits for what it is doing, and forgets what was to be done after that: from now on it has no segment open.
    pub fn end(self) {
        drop((self.jobs, self.done));
        // It has nothing to give, and what it panicked with it has said.
        let _ = self.thread.join();
    }
}

impl AsFd for Worker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

fn work(job: Job) -> Done {
    match job {
        Job::Add { adding, page_bytes } => Done::Added { adding, result: reserve::add(&adding, page_bytes) },
        Job::Renew { number, segment, file: None } => Done::Renewed { number, result: dax::renew(&segment).map(Some) },
        Job::Renew { number, segment, file: Some((path, nodes)) } => {
            let page_bytes = segment.bytes / nodes.len().max(1) as u64;
            let renewed = backing::renew(&path, segment.bytes, page_bytes, |page| nodes[page as usize]);
            Done::Renewed { number, result: renewed.map(|()| None) }
        }
    }
}
