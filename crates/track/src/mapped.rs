//! References through existing mappings, which no tracepoint shows: scans of Accessed bits.
//!
//! [`MappedTracker`] waits until the job has mapped a large amount of file data. From then on it scans the Accessed
//! bits of a sample of these pages, the same pages of a file in every process, and clears the bits of all pages after
//! each scan. A page counts at most once between two scans. A page found accessed goes into the job's references as if
//! it had faulted, see [`Joined`]: heap, read pages and mapped pages share one curve.
//!
//! # What it costs
//! A scan costs 25 ns per sampled page. Clearing costs 15 to 50 ns per page of a mapped file in each process; meanwhile
//! the process cannot map or unmap anything. [`pace`] keeps the sum below 1 % of one processor.

mod arrange;
mod join;
mod pace;
mod process;

use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linux::pages::{Tables, clear_referenced_files, file_mappings};
use linux::{mounts, procfs};
use model::{FileReference, ReferenceKind};

use crate::pages::{Scope, own_cpu};
use crate::references::References;
use crate::{Error, pages::Members};
use arrange::{Arranger, Present};
pub use join::Joined;
use pace::Pace;
use process::Process;

/// Scans begin when the job has mapped this many bytes of files,
const MIN_FILE_BYTES: u64 = 24 << 20;
/// and files are at least this part (1/10) of all that it has mapped.
const MIN_FILE_PART: u64 = 10;
/// Processes that have mapped fewer bytes of files are left out, and so are shorter mappings.
const MIN_PROCESS_BYTES: u64 = 4 << 20;
const MIN_MAPPING_BYTES: u64 = 1 << 20;
/// Before scans begin, bursar polls the job at this interval, or less often so that polls use at most 1/300 of the
/// time.
const POLL: Duration = Duration::from_millis(20);
const POLL_MIN_PERIODS: u32 = 300;
/// Pages in the sample. When it holds twice as many, it is halved.
const SAMPLED_PAGES: u64 = 1024;
/// Scans stop if clearing the bits of one process takes more CPU time than this. CPU time, because wall time includes
/// the time that other threads have the processor.
const MAX_CLEAR: Duration = Duration::from_millis(100);

/// Scans the file pages that a job has mapped.
#[derive(Debug)]
pub struct MappedTracker {
    stop: Sender<()>,
    thread: JoinHandle<Mapped>,
}

/// What the scans have found.
#[derive(Debug, Default)]
pub struct Mapped {
    /// Sampled pages; their file numbers are indices into `files`.
    references: References,
    /// (Device number in the kernel's encoding, inode number).
    files: Vec<(u32, u64)>,
    /// The sample has one of every 2^level pages of a file.
    level: u32,
    /// The most pages scanned at one time: in all processes, and with each page counted once.
    max_resident: u64,
    max_distinct: u64,
    /// Times of the scans, from the origin of the references.
    scans: Vec<u64>,
    /// When the job ended.
    ended_ns: u64,
    /// Why pages were not scanned though much was mapped.
    failure: Option<String>,
}

impl MappedTracker {
    /// Starts a thread that waits until the job in this scope has mapped enough, then scans. `origin_ns` on
    /// CLOCK_MONOTONIC is the zero of the references' times.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn start(scope: Scope, origin_ns: u64) -> Result<MappedTracker, Error> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("bursar-mapped".into())
            .spawn(move || run(scope, origin_ns, &stopped))
            .map_err(Error::Thread)?;
        Ok(MappedTracker { stop, thread })
    }

    /// Stops, and returns what was found.
    pub fn finish(self) -> Mapped {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Mapped {
            failure: Some("the thread that scanned mapped pages has ended early; please report this".into()),
            ..Mapped::default()
        })
    }
}

impl Mapped {
    /// The most bytes scanned at one time. A page that several processes map counts in each. 0 if the scans are too few
    /// to show how often pages are referenced again: fewer than two scans, or none in the last quarter of the time
    /// since the first.
    pub fn resident_bytes(&self) -> u64 {
        self.bytes(self.max_resident)
    }

    /// The same, with each page counted once.
    pub fn distinct_bytes(&self) -> u64 {
        self.bytes(self.max_distinct)
    }

    fn bytes(&self, pages: u64) -> u64 {
        if self.is_followed() { pages * procfs::page_bytes() } else { 0 }
    }

    fn is_followed(&self) -> bool {
        let (Some(first), Some(last)) = (self.scans.first(), self.scans.last()) else { return false };
        let unseen = self.ended_ns.saturating_sub(*last);
        self.scans.len() >= 2 && self.failure.is_none() && 4 * unseen <= self.ended_ns.saturating_sub(*first)
    }

    /// Why pages were not scanned though much was mapped.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

fn run(scope: Scope, origin_ns: u64, stopped: &Receiver<()>) -> Mapped {
    let mut members = Members::awaited(scope);
    let failed = |failure: String| Mapped { failure: Some(failure), ..Mapped::default() };
    let mut poll = POLL;
    loop {
        let began = own_cpu();
        if maps_much(&mut members) {
            break;
        }
        let affordable = own_cpu().saturating_sub(began) * POLL_MIN_PERIODS;
        if !goes_on(stopped, poll.max(affordable)) {
            return Mapped::default();
        }
        poll = (poll + poll / 64).min(10 * POLL);
    }
    let tables = match Tables::open() {
        Ok(tables) => tables,
        Err(error) => return failed(error.to_string()),
    };
    let mut scanner = Scanner::new(tables, origin_ns);
    loop {
        if let Err(failure) = scanner.scan(&mut members) {
            scanner.found.failure = Some(failure);
            return scanner.found;
        }
        if !goes_on(stopped, scanner.pace.pause()) {
            scanner.found.ended_ns = procfs::monotonic_ns().saturating_sub(origin_ns);
            return scanner.found;
        }
    }
}

/// Waits. Returns false if the caller asked to stop.
fn goes_on(stopped: &Receiver<()>, pause: Duration) -> bool {
    matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout))
}

fn maps_much(members: &mut Members) -> bool {
    let living = members.refresh().keys();
    let (mut files, mut all) = (0, 0);
    for status in living.filter_map(|pid| procfs::status(*pid).ok()) {
        files += status.rss_file.unwrap_or(0);
        all += status.vm_rss.unwrap_or(0);
    }
    files >= MIN_FILE_BYTES && files >= all / MIN_FILE_PART
}

struct Scanner {
    tables: Tables,
    origin_ns: u64,
    processes: BTreeMap<i32, Process>,
    /// Devices of file systems in memory.
    in_memory: HashSet<u32>,
    numbers: BTreeMap<(u32, u64), u32>,
    arranger: Arranger,
    pace: Pace,
    found: Mapped,
}

impl Scanner {
    fn new(tables: Tables, origin_ns: u64) -> Scanner {
        Scanner {
            tables,
            origin_ns,
            processes: BTreeMap::new(),
            in_memory: mounts::devices_in_memory(),
            numbers: BTreeMap::new(),
            arranger: Arranger::default(),
            pace: Pace::begin(),
            found: Mapped::default(),
        }
    }

    /// Finds the pages referenced since the last scan, and clears the bits of all pages of mapped files.
    fn scan(&mut self, members: &mut Members) -> Result<(), String> {
        let began = own_cpu();
        self.refresh(members);
        let now_ns = procfs::monotonic_ns().saturating_sub(self.origin_ns);
        let mut present = Vec::new();
        for (pid, process) in &mut self.processes {
            process.scan(&mut self.tables, &mut present);
            // Clear right after the read: references in between are lost.
            let began = own_cpu();
            match clear_referenced_files(*pid) {
                Ok(()) | Err(linux::Error::Gone(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
            if own_cpu().saturating_sub(began) > MAX_CLEAR {
                return Err("clearing the Accessed bits of all mapped memory would hold up the job".into());
            }
        }
        let count = present.len() as u64;
        let distinct = present.iter().map(|(page, _)| page).collect::<HashSet<_>>().len() as u64;
        self.found.max_resident = self.found.max_resident.max(count << self.found.level);
        self.found.max_distinct = self.found.max_distinct.max(distinct << self.found.level);
        self.record(now_ns, present);
        if count > 2 * SAMPLED_PAGES {
            self.found.level += 1;
        }
        self.pace.spent(own_cpu().saturating_sub(began));
        tracing::debug!(now_ns, count, level = self.found.level, cost = ?own_cpu().saturating_sub(began), "mapped pages");
        Ok(())
    }

    /// Updates the list of processes, and chooses the pages to scan.
    fn refresh(&mut self, members: &mut Members) {
        let living = members.refresh();
        self.processes.retain(|pid, process| living.get(pid) == Some(&process.start));
        let rss_file = |pid: i32| procfs::status(pid).ok().and_then(|status| status.rss_file).unwrap_or(0);
        let mut mapped = BTreeMap::new();
        for (pid, start) in living {
            let bytes = rss_file(*pid);
            if bytes >= MIN_PROCESS_BYTES {
                mapped.insert((*pid, *start), bytes);
            }
        }
        if self.found.scans.is_empty() {
            let pages = mapped.values().sum::<u64>() / procfs::page_bytes();
            self.found.level = (pages / SAMPLED_PAGES).max(1).ilog2();
        }
        for (pid, start) in mapped.into_keys() {
            let process = self.processes.entry(pid).or_insert_with(|| Process::new(pid, start));
            let mut mappings = file_mappings(pid).unwrap_or_default();
            mappings.retain(|mapping| {
                mapping.range.end - mapping.range.start >= MIN_MAPPING_BYTES
                    && !self.in_memory.contains(&mapping.device)
            });
            let (numbers, files) = (&mut self.numbers, &mut self.found.files);
            process.choose(&mut self.tables, &mappings, self.found.level, |device, inode| {
                *numbers.entry((device, inode)).or_insert_with(|| {
                    files.push((device, inode));
                    (files.len() - 1) as u32
                })
            });
        }
    }

    /// Spreads the found pages evenly over the time since the last scan.
    fn record(&mut self, now_ns: u64, present: Vec<Present>) {
        let before = self.found.scans.last().copied().unwrap_or(0);
        let arranged = self.arranger.arrange(present);
        let (span, count) = (now_ns.saturating_sub(before), arranged.len() as u64);
        for ((file, page), at) in arranged.into_iter().zip(1..) {
            let t_ns = before + (u128::from(span) * at as u128 / u128::from(count)) as u64;
            let kind = ReferenceKind::Fault;
            self.found.references.push(FileReference { t_ns, file, first_page: page, pages: 1, kind });
        }
        self.found.scans.push(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_ending_long_before_the_job_are_not_used() {
        let mapped =
            |scans: &[u64], ended_ns| Mapped { scans: scans.into(), ended_ns, max_distinct: 5, ..Mapped::default() };
        assert_eq!(mapped(&[100, 200, 400], 500).distinct_bytes(), 5 * procfs::page_bytes());
        assert_eq!(mapped(&[100, 200, 300], 500).distinct_bytes(), 0);
        assert_eq!(mapped(&[400], 410).distinct_bytes(), 0);
        assert_eq!(mapped(&[], 500).distinct_bytes(), 0);
    }
}
