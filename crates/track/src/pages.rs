//! Which of their memory running programs access, observed from outside.
//!
//! [`Pages`] scans the Accessed bits of a sample of the pages of running processes, clears those that are set, and
//! keeps the pages on an LRU stack. The number of other pages accessed since a page was last found accessed is the
//! memory that would have kept it. This gives a miss-rate curve, the working set, the heat of mappings and the ages of
//! pages. References between two scans are neither seen nor counted, so there is no miss ratio. Pages of files that are
//! read and written stand on the same stack, reported by tracepoints: mapped pages and cached files together are what a
//! program needs.
//!
//! # Cost, and how it is limited
//! A scan costs some 25 ns per page. A clear costs a system call, an interrupt of the processors that run the program,
//! and a TLB miss of the program. So only pages chosen by hash are scanned, and only bits found set are cleared. A page
//! found accessed by every scan rests for longer and longer, and is taken to be accessed meanwhile (the dynamic hot
//! set). [`Settings::overhead`] is kept by measuring the cost and thinning the sample or slowing the scans.
//!
//! A KVM guest has its own page tables. Its pages are scanned and cleared by DAMON, if the kernel has DAMON and nobody
//! else uses it. Otherwise they count as blind.
//!
//! # What is not seen
//! Pages that are mapped more than once or locked cannot be cleared one by one. Where there are many of them,
//! `clear_refs` clears all bits of the process now and then, and only the first access after that is seen. Pages that
//! this does not clear either, from hugetlb pools, count as blind, never as hot. Clearing also moves a page to the
//! kernel's inactive list, so under pressure it is reclaimed sooner unless it is accessed again.
//!
//! # Without root
//! `clear_refs` and `smaps` show, by mapping, how much was accessed since the bits were cleared. The growth of that
//! over time also gives a miss-rate curve ([`growth`]).

mod ages;
pub(crate) mod choice;
mod coarse;
mod control;
mod distances;
mod filled;
mod fine;
mod growth;
mod guests;
mod heat;
mod idle;
mod in_memory;
mod late;
mod misses;
pub(crate) mod order;
mod page_cache;
mod process;
mod returned;
mod scope;
mod signals;
mod small_sample;
mod stack;
mod sweep;
mod window;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linux::pages::Tables;
use model::{PagesRound, TOLERATED_MISSES};

use coarse::Coarse;
use fine::Fine;
pub use idle::Idle;
use in_memory::InMemory;
use late::Late;
use page_cache::PageCache;
pub(crate) use scope::Members;
pub use scope::Scope;
use signals::Signals;
use small_sample::SmallSample;

/// Sources of access information, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Accessed bits in page tables, read by BPF and cleared by `process_madvise`. Needs root and Linux 6.1 on x86-64.
    Tables,
    /// `clear_refs` and `smaps`, for processes of this user.
    Smaps,
}

/// How to scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The most that scans may cost, as a share of one processor, including what they cost the program.
    pub overhead: f64,
    /// Whether to scan processes that bursar did not start. Their bits are cleared like all others.
    pub intrusive: bool,
    /// A working set has at most this many misses per second.
    pub misses_per_second: f64,
    /// Whether pages found accessed by every scan rest. Off only to measure the benefit.
    pub hot_set: bool,
    /// The best rung to try.
    pub best: Rung,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            overhead: 0.02,
            intrusive: false,
            misses_per_second: TOLERATED_MISSES,
            hot_set: true,
            best: Rung::Tables,
        }
    }
}

/// Why mapped memory cannot be tracked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process does not exist.
    #[error("there is no process {0}: it has ended, or never was; `pgrep -a NAME` finds one by name")]
    NoProcess(i32),
    /// The process is a kernel thread.
    #[error("process {0} is a thread of the kernel, which has no memory of its own")]
    Kernel(i32),
    /// The cgroup has no process.
    #[error("there is no process in the cgroup {0}")]
    Empty(std::path::PathBuf),
    /// Bursar did not start the process, and scanning it has side effects.
    #[error(
        "process {0} was not started by bursar: scanning its memory clears its pages' Accessed bits, which costs it a \
         little time and changes the order in which the kernel reclaims them; --intrusive allows that"
    )]
    NotOurs(i32),
    /// The process is another user's, and bursar has its privileges from its executable file.
    #[error("{0}")]
    Rights(String),
    /// No rung of the ladder is available.
    #[error("cannot scan the memory of process {pid}: {source}{}", linux::rights::who_may(*.pid))]
    Denied {
        /// The process.
        pid: i32,
        /// The reason.
        source: linux::Error,
    },
    /// The thread could not be started.
    #[error("cannot start a thread to scan pages: {0}; see the limits on tasks (`ulimit -u`, pids.max)")]
    Thread(std::io::Error),
    /// The scanning thread ended early.
    #[error("the thread that scans pages has ended: {0}")]
    Ended(String),
}

impl Error {
    /// Whether nobody could scan the target, because it does not exist or has no memory.
    pub fn is_of_target(&self) -> bool {
        matches!(self, Error::NoProcess(_) | Error::Kernel(_) | Error::Empty(_))
    }
}

/// Scans the mapped memory of processes until dropped.
#[derive(Debug)]
pub struct Pages {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    without: Without,
}

/// Why better sources are unavailable; `None` for a source in use.
#[derive(Debug, Default)]
struct Without {
    tables: Option<String>,
    files: Option<String>,
    guests: Option<String>,
}

/// How long read and write events may wait in the kernel's buffer, which holds some 50,000.
const MAX_EVENT_WAIT: Duration = Duration::from_millis(50);

/// Requests to the scanning thread.
enum Request {
    Round(Sender<Option<PagesRound>>),
    Track(bool),
    Idle(Duration, Sender<Vec<Idle>>),
}

impl Pages {
    /// Starts to scan, on the best available rung.
    ///
    /// # Errors
    /// Why nothing can be scanned.
    pub fn start(scope: Scope, settings: Settings) -> Result<Pages, Error> {
        let members = Members::of(scope, settings.intrusive)?;
        let (requests, requested) = mpsc::channel();
        let (reply, answer) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("bursar-pages".into())
            .spawn(move || run(members, settings, &reply, &requested))
            .map_err(Error::Thread)?;
        let without = answer.recv().map_err(|_| Error::Ended("its thread did not begin".into()))??;
        Ok(Pages { requests: Some(requests), thread: Some(thread), without })
    }

    /// Why a lower rung is in use; `None` on the best.
    pub fn fallback(&self) -> Option<&str> {
        self.without.tables.as_deref()
    }

    /// Why reads and writes of files are not seen; `None` if they are.
    pub fn without_files(&self) -> Option<&str> {
        self.without.files.as_deref()
    }

    /// Why accesses of a KVM guest are not seen; `None` if they are, or if there was no guest at the start.
    pub fn without_guests(&self) -> Option<&str> {
        self.without.guests.as_deref()
    }

    /// What was seen since the last call, or since the start. `None` after all processes have ended and their last
    /// round was returned.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn round(&self) -> Result<Option<PagesRound>, Error> {
        let (reply, answer) = mpsc::channel();
        let requested = self.requests.as_ref().is_some_and(|requests| requests.send(Request::Round(reply)).is_ok());
        let ended = || Error::Ended("its thread has failed; please report this".into());
        if !requested {
            return Err(ended());
        }
        answer.recv().map_err(|_| ended())
    }

    /// Memory not accessed for `long` before the last scan. Memory never found accessed counts if it has been scanned
    /// for that long. Empty on rungs that do not see single pages.
    pub fn idle(&self, long: Duration) -> Vec<Idle> {
        let (reply, answer) = mpsc::channel();
        // If the thread has failed, the next round reports it.
        let _ = self.requests.as_ref().map(|requests| requests.send(Request::Idle(long, reply)));
        answer.recv().unwrap_or_default()
    }

    /// Switches tracking off or on. While it is off, only the bits of a small sample are read, once a round. What is
    /// known of pages is kept, and the time off counts as no time (IMT, "it uses the same LRU list and histogram").
    pub fn track(&self, on: bool) {
        // If the thread has failed, the next round reports it.
        let _ = self.requests.as_ref().map(|requests| requests.send(Request::Track(on)));
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A rung in use.
trait Scanner {
    /// Scans once. Returns the time until the next scan; `None` if all processes have ended.
    fn scan(&mut self, members: &mut Members) -> Option<Duration>;

    /// What was seen since the last call.
    fn round(&mut self) -> PagesRound;

    /// The small sample, and which of its pages were accessed since the last round; `None` if single pages cannot be
    /// seen. Call it before [`Scanner::round`]. While not tracking, this reads and clears their bits.
    fn sample_accessed(&mut self, is_tracking: bool) -> Option<SmallSample>;

    /// Takes in events before the kernel's buffers overflow.
    fn take_in(&mut self) {}

    /// Memory not accessed for `_long`, on rungs that see single pages.
    fn idle(&self, _long: Duration) -> Vec<Idle> {
        Vec::new()
    }

    /// Stops listening to events until [`Scanner::resume`].
    fn pause(&mut self) {}

    /// Goes on after a time without scans.
    fn resume(&mut self, members: &mut Members);
}

fn run(
    mut members: Members,
    settings: Settings,
    reply: &Sender<Result<Without, Error>>,
    requested: &Receiver<Request>,
) {
    let mut without = Without::default();
    let tables = match settings.best {
        Rung::Tables => Tables::open().map_err(|error| without.tables = Some(error.to_string())).ok(),
        Rung::Smaps => None,
    };
    let fine = tables.and_then(|tables| {
        let cache = page_cache().map_err(|why| without.files = Some(why)).ok();
        match Fine::new(tables, cache, &mut members, settings) {
            Ok(fine) => {
                without.guests = fine.without_guests().map(str::to_string);
                Some(fine)
            }
            Err(error) => {
                without.tables = Some(error.to_string());
                None
            }
        }
    });
    let mut scanner: Box<dyn Scanner> = match fine {
        Some(fine) => Box::new(fine),
        None => match Coarse::new(&mut members, settings) {
            Ok(coarse) => {
                without.guests = without.tables.clone();
                Box::new(coarse)
            }
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        },
    };
    let _ = reply.send(Ok(without));
    let mut signals = Signals::of(members.refresh());
    let mut in_memory = InMemory::default();
    let mut late = Late::new();
    let mut living = true;
    let mut is_tracking = true;
    let mut next = Instant::now();
    loop {
        if living && is_tracking && next <= Instant::now() {
            let scan = Late::begin(next);
            match scanner.scan(&mut members) {
                Some(pause) => next = (next + pause).max(Instant::now()),
                None => living = false,
            }
            late.end(&scan);
            in_memory.search(members.living().keys().copied());
        }
        // Without processes, only the last round is left to report.
        let wait = match living && is_tracking {
            true => next.saturating_duration_since(Instant::now()).min(MAX_EVENT_WAIT),
            false => Duration::from_secs(3600),
        };
        match requested.recv_timeout(wait) {
            Ok(Request::Round(reply)) => {
                living &= !members.refresh().is_empty();
                let small_sample = scanner.sample_accessed(is_tracking);
                let signals = signals.sample(members.living(), small_sample.map(SmallSample::share));
                let seen = scanner.round();
                let round = match is_tracking {
                    true => seen,
                    false => PagesRound {
                        t_ns: seen.t_ns,
                        seconds: seen.seconds,
                        overhead: seen.overhead,
                        rung: seen.rung,
                        accessed_at_least: small_sample
                            .map(|small_sample| small_sample.accessed_at_least() * page_bytes()),
                        ..PagesRound::default()
                    },
                };
                let mut round = PagesRound { tracking: is_tracking, signals, ..round };
                in_memory.search(members.living().keys().copied());
                in_memory.add_to(&mut round);
                round.scans_late_seconds = late.end_interval();
                let _ = reply.send(Some(round));
                if !living {
                    break;
                }
            }
            Ok(Request::Idle(long, reply)) => {
                let _ = reply.send(scanner.idle(long));
            }
            Ok(Request::Track(on)) => {
                if on && !is_tracking {
                    scanner.resume(&mut members);
                    next = Instant::now();
                } else if !on && is_tracking {
                    scanner.pause();
                }
                is_tracking = on;
            }
            Err(RecvTimeoutError::Timeout) if next > Instant::now() => scanner.take_in(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    while let Ok(ask) = requested.recv() {
        if let Request::Round(reply) = ask {
            let _ = reply.send(None);
        }
    }
}

/// Listens to reads and writes of files, or returns why it cannot.
fn page_cache() -> Result<PageCache, String> {
    let cache = PageCache::listen().map_err(|error| error.to_string())?;
    match cache.rung() {
        linux::bpf::Rung::Processes => Err("this kernel has no tracepoints that show them".into()),
        _ => Ok(cache),
    }
}

fn page_bytes() -> u64 {
    linux::procfs::page_bytes()
}

/// CPU time of this thread.
pub(crate) fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
