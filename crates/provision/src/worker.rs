//! The thread that does what takes time: adding pages, populating and zeroing segments.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
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
    /// Segments that are there and all zeroes afterwards, made so side by side by as many threads as there are processors.
    Renew(Vec<Renewal>),
}

/// A segment that is to be there and all zeroes.
pub struct Renewal {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub segment: Segment,
    /// Its file, and the node of each of its pages; `None`: a dax device.
    pub file: Option<(PathBuf, Vec<u32>)>,
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
    /// Of [`Job::Renew`], each as soon as it is.
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
            let tell = |done| {
                let told = finished.send(done).is_ok();
                // Full: it can be read from already.
                let _ = (&waker).write(&[0]);
                told
            };
            for job in open {
                let told = match job {
                    Job::Add { adding, page_bytes } => {
                        tell(Done::Added { adding, result: reserve::add(&adding, page_bytes) })
                    }
                    Job::Renew(renewals) => renew_all(renewals, &tell),
                };
                if !told {
                    return;
                }
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

/// Zeroing goes as fast as memory does only if several processors do it. Whether anybody was still told.
fn renew_all(renewals: Vec<Renewal>, tell: &(impl Fn(Done) -> bool + Sync)) -> bool {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(renewals.len());
    let left = Mutex::new(renewals.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(renewal) = next() {
            if !tell(renew(renewal)) {
                return false;
            }
        }
        true
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // With fewer threads it takes longer.
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
    fn of_many_segments_each_is_told_once_and_those_that_can_be_are_zeroes() {
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
        let mut told = BTreeMap::new();
        while told.len() < 40 {
            rustix::event::poll(&mut [rustix::event::PollFd::new(&worker, rustix::event::PollFlags::IN)], None)
                .unwrap();
            for done in worker.done() {
                let Done::Renewed { number, result } = done else { panic!("nothing was to be added") };
                assert!(told.insert(number, result.is_ok()).is_none(), "{number}");
            }
        }
        worker.end();
        assert!(told.into_iter().all(|(number, is_done)| is_done == (number != 7)));
        for number in (0..40).filter(|number| *number != 7) {
            assert_eq!(fs::read(dir.path().join(number.to_string())).unwrap(), [0; 4 * PAGE as usize]);
        }
    }
}
