//! The thread that reads the events of the BPF programs.

use std::cell::RefCell;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linux::bpf::{self, Event, Follower, Observer, Programs, Remains, Rung};
use linux::procfs;
use model::{FileReference, ForeignFile, ProcessRecord, ReferenceKind};

use crate::cached::Cached;
use crate::files::{Files, TrackedFile};
use crate::processes::Processes;
use crate::references::References;

/// How long events may wait in the ring; when it is half full they are read at once.
const TICK: Duration = Duration::from_millis(100);

/// Why a job cannot be tracked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The BPF programs cannot be used.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// The thread that reads events cannot be started.
    #[error("cannot start a thread to follow the job: {0}; see the limits on tasks (`ulimit -u`, pids.max)")]
    Thread(std::io::Error),
    /// The memory shared with the job's processes cannot be created.
    #[error("cannot create the memory that the job's processes share with bursar: {0}")]
    Shared(std::io::Error),
    /// The thread ended early.
    #[error("the thread that followed the job has ended early; please report this")]
    Ended,
}

/// Follows a job.
#[derive(Debug)]
pub struct Tracker {
    follower: Follower,
    orders: Sender<i32>,
    thread: JoinHandle<Result<Option<Tracked>, bpf::Error>>,
}

/// A tracker whose thread still loads the BPF programs, which takes some 25 ms.
#[derive(Debug)]
pub struct Loading {
    loaded: Receiver<Result<Follower, bpf::Error>>,
    begin: Sender<u64>,
    orders: Sender<i32>,
    thread: JoinHandle<Result<Option<Tracked>, bpf::Error>>,
}

/// The result of tracking a job.
#[derive(Debug)]
pub struct Tracked {
    /// Its processes, ordered by their start. Processes that still live lack the figures of the end.
    pub processes: Vec<ProcessRecord>,
    /// Its references to the page cache.
    pub references: References,
    /// The files of the references, by their number.
    pub files: Vec<TrackedFile>,
    /// Distinct bytes of file pages that the job brought into the page cache, an estimate beyond 64 GiB. `None` if
    /// events were lost or this rung does not see all.
    pub most_cached_bytes: Option<u64>,
    /// Heap sizes of single processes right before they released memory, as (nanoseconds, bytes), ordered by time; only
    /// from the library in the processes.
    pub heaps: Vec<(u64, u64)>,
    /// Events lost because the buffer was full. If there are any, all figures are lower bounds.
    pub lost_events: u64,
    /// File accesses that are not among the references, by name, with bytes where known.
    pub not_visible: Vec<(String, Option<u64>)>,
    /// Files that were cached before and are charged elsewhere, largest first. An estimate beyond 64 GiB of distinct
    /// pages.
    pub foreign: Vec<ForeignFile>,
    /// The rung of the ladder that the references came from.
    pub rung: String,
}

impl Tracked {
    /// Whether faults on mapped pages are among the references.
    pub fn sees_faults(&self) -> bool {
        self.rung == Rung::Filemap.to_string()
    }
}

impl Loading {
    /// Starts to load the BPF programs, on the best available rung from `best` downwards.
    pub fn start(best: Rung) -> Result<Loading, Error> {
        let (reply, loaded) = mpsc::channel();
        let (begin, begun) = mpsc::channel();
        let (orders, adopted) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("bursar-track".into())
            .spawn(move || run(best, &reply, &begun, &adopted))
            .map_err(Error::Thread)?;
        Ok(Loading { loaded, begin, orders, thread })
    }

    /// Waits until they are loaded, then follows the given processes and all that they fork from now on. `origin_ns`:
    /// the begin of the run on CLOCK_MONOTONIC, the zero of the references' times.
    pub fn follow(self, pids: &[i32], origin_ns: u64) -> Result<Tracker, Error> {
        let Loading { loaded, begin, orders, thread } = self;
        let follower = loaded.recv().map_err(|_| Error::Ended)??;
        begin.send(origin_ns).map_err(|_| Error::Ended)?;
        let tracker = Tracker { follower, orders, thread };
        pids.iter().try_for_each(|pid| tracker.adopt(*pid))?;
        Ok(tracker)
    }
}

impl Tracker {
    /// Follows one more process, and what it forks from now on. Processes that it has forked before are not followed.
    pub fn adopt(&self, pid: i32) -> Result<(), Error> {
        self.follower.follow(pid)?;
        self.orders.send(pid).map_err(|_| Error::Ended)
    }

    /// The followed processes that live now.
    pub fn living(&self) -> Vec<i32> {
        self.follower.living()
    }

    /// Stops, and returns what was seen.
    pub fn finish(self) -> Result<Tracked, Error> {
        drop(self.orders);
        self.follower.wake();
        self.thread.join().map_err(|_| Error::Ended)??.ok_or(Error::Ended)
    }
}

/// Returns `None` if loading failed, which `reply` was sent, or if the tracker was dropped before it began.
fn run(
    best: Rung,
    reply: &Sender<Result<Follower, bpf::Error>>,
    begun: &Receiver<u64>,
    adopted: &Receiver<i32>,
) -> Result<Option<Tracked>, bpf::Error> {
    let loaded = Programs::load(best).and_then(|programs| Ok((programs.follower()?, programs)));
    let programs = match loaded {
        Ok((follower, programs)) => {
            let _ = reply.send(Ok(follower));
            programs
        }
        Err(error) => {
            let _ = reply.send(Err(error));
            return Ok(None);
        }
    };
    let Ok(origin_ns) = begun.recv() else { return Ok(None) };
    let collected = RefCell::new(Collected::new(origin_ns));
    let observer = programs.observe(|event| collected.borrow_mut().take(event))?;
    let (remains, rung) = follow(&collected, observer, adopted)?;
    Ok(Some(collected.into_inner().finish(remains, rung)))
}

/// Follows events until the sender of orders is dropped.
fn follow(
    collected: &RefCell<Collected>,
    observer: Observer<'_>,
    adopted: &Receiver<i32>,
) -> Result<(Remains, Rung), bpf::Error> {
    let mut last = false;
    while !last {
        loop {
            match adopted.try_recv() {
                Ok(pid) => collected.borrow_mut().processes.adopted(pid),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    last = true;
                    break;
                }
            }
        }
        let summed = observer.poll(if last { Duration::ZERO } else { TICK })?;
        let mut collected = collected.borrow_mut();
        summed.iter().for_each(|(pid, threads)| collected.processes.summed(*pid, threads));
    }
    let rung = observer.rung();
    Ok((observer.finish()?, rung))
}

/// What has been seen so far.
struct Collected {
    origin_ns: u64,
    /// Time of the last reference.
    t_ns: u64,
    processes: Processes,
    files: Files,
    cached: Cached,
    references: References,
}

impl Collected {
    fn new(origin_ns: u64) -> Collected {
        Collected {
            origin_ns,
            t_ns: 0,
            processes: Processes::new(origin_ns),
            files: Files::default(),
            cached: Cached::new(),
            references: References::default(),
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Reference { file, t_ns, first, pages, kind } => {
                let file = self.files.number(file);
                if kind != ReferenceKind::Removal {
                    self.cached.referenced(file, first, pages);
                }
                // A task's last run of pages is reported when it goes on elsewhere, which may be late.
                self.t_ns = self.t_ns.max(t_ns.saturating_sub(self.origin_ns));
                let t_ns = self.t_ns;
                self.references.push(FileReference { t_ns, file, first_page: first, pages, kind });
            }
            Event::Added { file, first, pages } => {
                let file = self.files.number(file);
                self.cached.added(file, first, pages);
            }
            Event::File { file, names } => self.files.name(file, names),
            Event::Fork(fork) => self.processes.forked(&fork),
            Event::Exec { pid, command } => self.processes.executed(pid, command),
            Event::Exit(exit) => self.processes.exited(&exit),
        }
    }

    fn finish(mut self, remains: Remains, rung: Rung) -> Tracked {
        for (pid, threads) in &remains.exited {
            self.processes.summed(*pid, threads);
        }
        remains.untold.iter().for_each(|event| self.take(*event));
        let mut not_visible: Vec<_> = remains.hidden.iter().map(|h| (h.name.to_owned(), h.bytes)).collect();
        match rung {
            Rung::Filemap => {}
            Rung::Syscalls => not_visible.push(("mapped files".into(), None)),
            Rung::Processes => not_visible.push(("reads, writes and mapped files".into(), None)),
        }
        let files = self.files.finish();
        let lost_events = remains.lost_events + self.references.lost();
        let sees_all = rung == Rung::Filemap && lost_events == 0;
        Tracked {
            most_cached_bytes: sees_all.then(|| self.cached.added_pages() * procfs::page_bytes()),
            processes: self.processes.finish(),
            heaps: Vec::new(),
            foreign: foreign(&self.cached, &files),
            files,
            lost_events,
            references: self.references,
            not_visible,
            rung: rung.to_string(),
        }
    }
}

fn foreign(cached: &Cached, files: &[TrackedFile]) -> Vec<ForeignFile> {
    let page_bytes = procfs::page_bytes();
    let mut foreign: Vec<_> = cached
        .foreign()
        .into_iter()
        .filter_map(|(number, pages)| {
            let file = files.get(number as usize)?;
            let cached_bytes = pages * page_bytes;
            Some(ForeignFile { path: file.path.clone(), device: file.device, inode: file.inode, cached_bytes })
        })
        .collect();
    foreign.sort_by(|a, b| b.cached_bytes.cmp(&a.cached_bytes).then(a.inode.cmp(&b.inode)));
    foreign
}
