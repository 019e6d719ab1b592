//! The thread for slow work: adding pages, populating and zeroing segments.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::state::{Adding, Segment};
use crate::{Error, backing, dax, reserve};

/// A request to the worker.
pub enum Job {
    /// Reserve more huge pages.
    Add {
        /// The node and the number.
        adding: Adding,
        /// Their size.
        page_bytes: u64,
    },
    /// Populate and zero segments, in parallel on all processors.
    Renew(Vec<Renewal>),
}

/// A segment to be populated and zeroed.
pub struct Renewal {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub segment: Segment,
    /// Its file, and the node of each of its pages; `None`: a dax device.
    pub file: Option<(PathBuf, Vec<u32>)>,
}

/// A finished or failed request.
pub enum Done {
    /// [`Job::Add`]: the number of persistent pages that were added.
    Added {
        /// The request.
        adding: Adding,
        /// The result.
        result: Result<u64, Error>,
    },
    /// [`Job::Renew`]: one segment, reported as soon as it is finished.
    Renewed {
        /// The segment.
        number: u32,
        /// The result, with the name of the device if it is one.
        result: io::Result<Option<String>>,
    },
}

/// The worker thread. Its descriptor becomes readable when a job is done.
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
            let report = |done| {
                let is_received = finished.send(done).is_ok();
                // If the socket is full, it is readable already.
                let _ = (&waker).write(&[0]);
                is_received
            };
            for job in open {
                let is_received = match job {
                    Job::Add { adding, page_bytes } => {
                        report(Done::Added { adding, result: reserve::add(&adding, page_bytes) })
                    }
                    Job::Renew(renewals) => renew_all(renewals, &report),
                };
                if !is_received {
                    return;
                }
            }
        })?;
        Ok(Worker { jobs, done, wake, thread })
    }

    /// Queues a job.
    pub fn send(&self, job: Job) {
        // The thread does not end before this object.
        let _ = self.jobs.send(job);
    }

    /// The jobs done since the last call.
    pub fn done(&self) -> Vec<Done> {
        let mut woken = [0; 256];
        while matches!((&self.wake).read(&mut woken), Ok(1..)) {}
        self.done.try_iter().collect()
    }

    /// Waits for the current job and drops the others: afterwards the thread holds no segment open.
    pub fn end(self) {
        drop((self.jobs, self.done));
        // It returns nothing, and a panic has printed its message.
        let _ = self.thread.join();
    }
}

impl AsFd for Worker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Zeroes on several processors, because one cannot use the whole memory bandwidth. Returns false if the receiver is gone.
fn renew_all(renewals: Vec<Renewal>, report: &(impl Fn(Done) -> bool + Sync)) -> bool {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(renewals.len());
    let left = Mutex::new(renewals.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(renewal) = next() {
            if !report(renew(renewal)) {
                return false;
            }
        }
        true
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // With fewer threads it only takes longer.
            let _ = thread::Builder::new().name("zero".into()).spawn_scoped(scope, work);
        }
        work()
    })
}

fn renew(Renewal { number, segment, file }: Renewal) -> Done {
    let result = match file {
        None => dax::renew(&segment).map(Some),
        Some((path, nodes)) => {
            let page_bytes = segment.bytes / nodes.len().max(1) as u64;
            backing::renew(&path, segment.bytes, page_bytes, |page| nodes[page as usize]).map(|()| None)
        }
    };
    Done::Renewed { number, result }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    const PAGE: u64 = 4096;

    #[test]
    fn each_of_many_segments_is_reported_once_and_zeroed_if_possible() {
        let dir = tempfile::tempdir().unwrap();
        let segment = || Segment { bytes: 4 * PAGE, node: None, device: None, region: None };
        let renewal = |number: u32| {
            let path =
                if number == 7 { dir.path().join("no directory/7") } else { dir.path().join(number.to_string()) };
            let _ = fs::write(&path, [255; 3 * PAGE as usize]);
            Renewal { number, segment: segment(), file: Some((path, vec![0; 4])) }
        };
        let worker = Worker::start().unwrap();
        worker.send(Job::Renew((0..40).map(renewal).collect()));
        let mut results = BTreeMap::new();
        while results.len() < 40 {
            rustix::event::poll(&mut [rustix::event::PollFd::new(&worker, rustix::event::PollFlags::IN)], None)
                .unwrap();
            for done in worker.done() {
                let Done::Renewed { number, result } = done else { panic!("nothing was to be added") };
                assert!(results.insert(number, result.is_ok()).is_none(), "{number}");
            }
        }
        worker.end();
        assert!(results.into_iter().all(|(number, is_done)| is_done == (number != 7)));
        for number in (0..40).filter(|number| *number != 7) {
            assert_eq!(fs::read(dir.path().join(number.to_string())).unwrap(), [0; 4 * PAGE as usize]);
        }
    }
}
