//! What programs access of their memory, without their knowing.
//!
//! [`Pages`] looks at the Accessed bits of some pages of running processes, clears those that it found set, and puts the pages
//! on an LRU stack: how many other pages were accessed since a page was seen last is the memory that would have kept it. From
//! this come a miss-rate curve, the working set, the heat of mappings and the ages of pages. References between two looks are
//! not seen, nor counted: there is no miss ratio. Pages of files that are read and written stand on the same stack, told by
//! tracepoints: together they are what a program needs.
//!
//! # What it costs, and what is done about it
//! A look costs some 25 ns per page, a clear a call and an interruption of the processors that run the program, and the
//! program a TLB miss. So only pages chosen by hash are looked at; only what was found accessed is cleared again; a page
//! that is found accessed at every look rests, for longer and longer, and is taken for accessed meanwhile (the dynamic hot
//! set); and [`Settings::overhead`] is kept by measuring what was spent and thinning the sample or slowing the looks.
//!
//! A guest of KVM has page tables of its own: its process's pages are looked at, and cleared, by DAMON, where the kernel has that and nobody
//! else uses it. Else they are counted as blind.
//!
//! # What is not seen
//! Pages that are mapped more than once or locked cannot be cleared one by one: where they are many, all bits of the process are
//! cleared now and then, by `clear_refs`, and they are seen as often. What is not cleared so either, pools of huge pages, is
//! counted as blind, never as hot. Clearing also moves a page to the kernel's inactive list, so under pressure it is reclaimed sooner unless it is accessed again.
//!
//! # Without root
//! `clear_refs` and `smaps` show how much was accessed since a moment, by mapping. How that grows with time is a miss-rate curve too
//! ([`growth`]).

mod ages;
pub(crate) mod choice;
mod coarse;
mod control;
mod distances;
mod few;
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
mod stack;
mod sweep;
mod window;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linux::pages::Tables;
use model::{PagesRound, TOLERATED_MISSES};

use coarse::Coarse;
use few::Few;
use fine::Fine;
pub use idle::Idle;
use in_memory::InMemory;
use late::Late;
use page_cache::PageCache;
pub(crate) use scope::Members;
pub use scope::Scope;
use signals::Signals;

/// Where accesses are seen, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Accessed bits in page tables, by BPF; cleared by `process_madvise`. Root; Linux 6.1 on x86-64.
    Tables,
    /// `clear_refs` and `smaps`, of this user's processes.
    Smaps,
}

/// How to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The most that looking may cost, as a share of one processor; the program's loss included.
    pub overhead: f64,
    /// Whether to look at processes that bursar did not start. Their bits are cleared like all others.
    pub intrusive: bool,
    /// A working set has at most so many misses per second.
    pub misses_per_second: f64,
    /// Whether pages that are found accessed by every look rest; only to measure what that is worth.
    pub hot_set: bool,
    /// Where to begin on the ladder.
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
    /// Nothing to look at.
    #[error("there is no process {0}: it has ended, or never was; `pgrep -a NAME` finds one by name")]
    NoProcess(i32),
    /// Nothing to look at.
    #[error("process {0} is a thread of the kernel, which has no memory of its own")]
    Kernel(i32),
    /// Nothing to look at.
    #[error("there is no process in the cgroup {0}")]
    Empty(std::path::PathBuf),
    /// It would disturb somebody.
    #[error(
        "process {0} was not started by bursar: looking at its memory clears its pages' Accessed bits, which takes it a \
         little time and moves them in the kernel's order of reclaim; --intrusive allows that"
    )]
    NotOurs(i32),
    /// It is another user's, and bursar's rights are its file's.
    #[error("{0}")]
    Rights(String),
    /// Nothing of the ladder is there.
    #[error("the memory of process {pid} cannot be looked at: {source}{}", linux::rights::who_may(*.pid))]
    Denied {
        /// Which process.
        pid: i32,
        /// Why.
        source: linux::Error,
    },
    /// No thread.
    #[error("no thread could be started to look at pages: {0}; see the limits on tasks (`ulimit -u`, pids.max)")]
    Thread(std::io::Error),
    /// The thread that looked is gone.
    #[error("looking at pages has ended: {0}")]
    Ended(String),
}

impl Error {
    /// Whether there is nothing to look at, for anybody.
    pub fn is_of_target(&self) -> bool {
        matches!(self, Error::NoProcess(_) | Error::Kernel(_) | Error::Empty(_))
    }
}

/// Looks at the mapped memory of processes until dropped.
#[derive(Debug)]
pub struct Pages {
    asks: Option<Sender<Ask>>,
    thread: Option<JoinHandle<()>>,
    without: Without,
}

/// What is not there, and why.
#[derive(Debug, Default)]
struct Without {
    tables: Option<String>,
    files: Option<String>,
    guests: Option<String>,
}

/// How long reads and writes may wait to be taken in: the kernel keeps some 50,000.
const PATIENCE: Duration = Duration::from_millis(50);

/// What the thread that looks is asked for.
enum Ask {
    Round(Sender<Option<PagesRound>>),
    Track(bool),
    Idle(Duration, Sender<Vec<Idle>>),
}

impl Pages {
    /// Begins to look, on the best rung there is.
    ///
    /// # Errors
    /// Why nothing can be seen.
    pub fn start(scope: Scope, settings: Settings) -> Result<Pages, Error> {
        let members = Members::of(scope, settings.intrusive)?;
        let (asks, asked) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("bursar-pages".into())
            .spawn(move || run(members, settings, &tell, &asked))
            .map_err(Error::Thread)?;
        let without = told.recv().map_err(|_| Error::Ended("its thread did not begin".into()))??;
        Ok(Pages { asks: Some(asks), thread: Some(thread), without })
    }

    /// Why a lower rung serves; `None` on the best.
    pub fn fallback(&self) -> Option<&str> {
        self.without.tables.as_deref()
    }

    /// Why reads and writes of files are not seen; `None` if they are.
    pub fn without_files(&self) -> Option<&str> {
        self.without.files.as_deref()
    }

    /// Why what a guest of KVM accesses is not seen; `None` if it is, or if there was none at the start.
    pub fn without_guests(&self) -> Option<&str> {
        self.without.guests.as_deref()
    }

    /// What was seen since the last call, or since the start. `None` when all processes have ended and the last of them was told.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn round(&self) -> Result<Option<PagesRound>, Error> {
        let (tell, told) = mpsc::channel();
        let asked = self.asks.as_ref().is_some_and(|asks| asks.send(Ask::Round(tell)).is_ok());
        let ended = || Error::Ended("its thread has failed; please report this".into());
        if !asked {
            return Err(ended());
        }
        told.recv().map_err(|_| ended())
    }

    /// Memory that was not accessed for so long before the last look, or never since it is looked at, which then must be as long. None
    /// where single pages are not seen.
    pub fn idle(&self, long: Duration) -> Vec<Idle> {
        let (tell, told) = mpsc::channel();
        // A thread that has failed is told of by the next round.
        let _ = self.asks.as_ref().map(|asks| asks.send(Ask::Idle(long, tell)));
        told.recv().unwrap_or_default()
    }

    /// Switches tracking off or on. While it is off, nothing is looked at but the bits of a few pages, once a round; what is
    /// known of pages is kept, and the time until it is on again is taken for none (IMT, "it uses the same LRU list and
    /// histogram").
    pub fn track(&self, on: bool) {
        // A thread that has failed is told of by the next round.
        let _ = self.asks.as_ref().map(|asks| asks.send(Ask::Track(on)));
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A rung at work.
trait Looks {
    /// Looks once. Returns when to look again; `None` if all processes have ended.
    fn look(&mut self, members: &mut Members) -> Option<Duration>;

    /// What was seen since the last call.
    fn round(&mut self) -> PagesRound;

    /// What was accessed of a few pages since the last round, if single pages can be seen. To be asked before the round. While not
    /// tracking, their bits are read and cleared here.
    fn few_accessed(&mut self, is_tracking: bool) -> Option<Few>;

    /// Takes in what was told of itself, before there is no room for more.
    fn take_in(&mut self) {}

    /// Memory that was not accessed for so long, where single pages are seen.
    fn idle(&self, _long: Duration) -> Vec<Idle> {
        Vec::new()
    }

    /// Nothing is to be told for a time.
    fn pause(&mut self) {}

    /// Goes on after a time without looks.
    fn resume(&mut self, members: &mut Members);
}

fn run(mut members: Members, settings: Settings, tell: &Sender<Result<Without, Error>>, asked: &Receiver<Ask>) {
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
    let mut looks: Box<dyn Looks> = match fine {
        Some(fine) => Box::new(fine),
        None => match Coarse::new(&mut members, settings) {
            Ok(coarse) => {
                without.guests = without.tables.clone();
                Box::new(coarse)
            }
            Err(error) => {
                let _ = tell.send(Err(error));
                return;
            }
        },
    };
    let _ = tell.send(Ok(without));
    let mut signals = Signals::of(members.refresh());
    let mut in_memory = InMemory::default();
    let mut late = Late::new();
    let mut living = true;
    let mut is_tracking = true;
    let mut next = Instant::now();
    loop {
        if living && is_tracking && next <= Instant::now() {
            let scan = Late::begin(next);
            match looks.look(&mut members) {
                Some(pause) => next = (next + pause).max(Instant::now()),
                None => living = false,
            }
            late.end(&scan);
            in_memory.search(members.living().keys().copied());
        }
        // Without processes there is nothing to do but to tell the rest, once.
        let wait = match living && is_tracking {
            true => next.saturating_duration_since(Instant::now()).min(PATIENCE),
            false => Duration::from_secs(3600),
        };
        match asked.recv_timeout(wait) {
            Ok(Ask::Round(reply)) => {
                living &= !members.refresh().is_empty();
                let few = looks.few_accessed(is_tracking);
                let signals = signals.sample(members.living(), few.map(Few::share));
                let seen = looks.round();
                let round = match is_tracking {
                    true => seen,
                    false => PagesRound {
                        t_ns: seen.t_ns,
                        seconds: seen.seconds,
                        overhead: seen.overhead,
                        rung: seen.rung,
                        accessed_at_least: few.map(|few| few.accessed_at_least() * page_bytes()),
                        ..PagesRound::default()
                    },
                };
                let mut round = PagesRound { tracking: is_tracking, signals, ..round };
                in_memory.search(members.living().keys().copied());
                in_memory.tell(&mut round);
                round.scans_late_seconds = late.tell();
                let _ = reply.send(Some(round));
                if !living {
                    break;
                }
            }
            Ok(Ask::Idle(long, reply)) => {
                let _ = reply.send(looks.idle(long));
            }
            Ok(Ask::Track(on)) => {
                if on && !is_tracking {
                    looks.resume(&mut members);
                    next = Instant::now();
                } else if !on && is_tracking {
                    looks.pause();
                }
                is_tracking = on;
            }
            Err(RecvTimeoutError::Timeout) if next > Instant::now() => looks.take_in(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    while let Ok(ask) = asked.recv() {
        if let Ask::Round(reply) = ask {
            let _ = reply.send(None);
        }
    }
}

/// Listens to reads and writes, or says why not.
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
