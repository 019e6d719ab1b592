//! References to files as noted by bursar's library in the job's processes, which needs no privileges, and each
//! process's own statistics: `preload/abi.h`, section 4.
//!
//! References follow the same rules as those from the tracepoints (see the crate's documentation), with these
//! differences: the pages that a process has touched of its program and libraries count as referenced when it begins;
//! any other mapping of a file counts as one reference to all its pages when it is made
//! ([`SeenInside::leave_out_mappings_beyond`] drops mappings that cannot have been touched as a whole); calls that
//! bypass libc are missed.

mod program_runs;
mod ring;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use foldhash::fast::RandomState;
use linux::bpf::FileKey;
use linux::holders::FileId;
use linux::open_in_memory::OpenFile;
use linux::procfs;
use model::{FileReference, ReferenceKind};
use runtime_abi::{REFERENCE_FILE_BYTES, ReferenceClass, ReferenceKind as Noted};
use rustix::fs::makedev;

use crate::files::Files;
use crate::references::References;
use crate::{Error, Tracked};
use program_runs::ProgramRuns;
use ring::{Entry, Ring};

/// The name of this source.
pub const REFERENCES_INSIDE: &str = "references seen inside the processes";

/// Size of the shared memory that [`InsideTracker::start`] creates and each process maps.
pub const SHARED_BYTES: u64 = REFERENCE_FILE_BYTES as u64;

/// Interval between reads of the ring, and the interval while the last read found more than an eighth of it in use.
const TICK: Duration = Duration::from_millis(20);
const FAST_TICK: Duration = Duration::from_millis(4);
/// The interval when a [`Follower`] acts on the references.
const FOLLOWED_TICK: Duration = Duration::from_millis(1);
/// How long a hold stays valid unless it is renewed.
const HOLD_MS: u64 = 50;

/// What a process wrote of a file that it has opened. The process may write anything, so any field may be wrong.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// Inode number.
    pub inode: u64,
    /// The file can be opened as `/proc/PID/fd/DESCRIPTOR` until the process closes it.
    pub pid: i32,
    /// See `pid`.
    pub descriptor: i32,
    /// Path when it was first opened; `None` if unknown.
    pub path: Option<&'a Path>,
}

/// Receives the references while the job runs, and acts on them.
pub trait Follower: Send + std::fmt::Debug {
    /// A process has opened the file with this number. Called for each descriptor before any reference through it.
    fn opened(&mut self, file: u32, opened: Opened);
    /// Pages of its program and libraries that a process had touched by its end.
    fn loaded(&mut self, reference: &FileReference);
    /// One reference, in the order of the ring.
    fn referenced(&mut self, reference: &FileReference);
    /// Pages of a file have left the page cache for good, in the order of the ring.
    fn removed(&mut self, gone: &FileReference);
    /// Called every millisecond, after all references noted so far. Returns whether processes must wait before they
    /// read or write a file.
    fn act(&mut self) -> bool;
}

/// A process reports the touched pages of its program and libraries when it ends, with the time when it began. Up to
/// this many such runs of pages are sorted into the other references; those beyond count as referenced at the end.
const MAX_TOUCHED_RUNS: usize = 1 << 20;

/// Maximum number of files in memory reported between two samples.
const MAX_FILES_IN_MEMORY: usize = 1024;

/// Reads what the library in a job's processes notes about references to files.
#[derive(Debug)]
pub struct InsideTracker {
    path: PathBuf,
    stop: Sender<()>,
    thread: JoinHandle<SeenInside>,
    files_in_memory: Option<Receiver<(FileId, OpenFile)>>,
}

/// What the library in the job's processes noted.
#[derive(Debug)]
pub struct SeenInside {
    /// The references, and the processes with their own statistics. Of a process that was killed or still ran, only its
    /// begin is known. Whether a file was cached before the run is never known.
    pub tracked: Tracked,
    /// Programs that noted references. Each exec counts as another program.
    pub programs: u64,
    /// Programs that were killed or still ran, so that the pages they touched of programs and libraries are unknown.
    pub not_ended: u64,
    /// Programs that had loaded liburing. Reads through io_uring are neither noted nor in `rchar`.
    pub with_io_uring: u64,
    /// Bytes read by all read calls, as counted by `rchar` in `/proc/PID/io`.
    pub read_bytes: u64,
    /// Bytes by which the processes enlarged pipes, including pipes closed since.
    pub pipe_bytes: u64,
    program_runs: ProgramRuns,
    /// By file number: the page range from the first to the last mapped page.
    mapped: HashMap<u32, Range<u64>>,
}

impl SeenInside {
    /// Bytes of files that the programs mapped. Each page counts once.
    pub fn mapped_bytes(&self) -> u64 {
        let bytes = |pages: &Range<u64>| (pages.end - pages.start) * procfs::page_bytes();
        // Saturating, because a process can write any numbers.
        self.mapped.values().map(bytes).fold(0, u64::saturating_add)
    }

    /// The part of `resident_bytes` that is bursar's own: its library and its shared memory. `resident_bytes` is the
    /// kernel's figure for the largest resident size of one process.
    pub fn own_bytes_in(&self, resident_bytes: u64) -> u64 {
        self.program_runs.own_bytes_in(resident_bytes)
    }

    /// Drops the references from mappings of files of which more was mapped than was ever resident, since how much of
    /// them was touched is unknown. Returns the mapped bytes of these files. Linear in the references if there are any.
    pub fn leave_out_mappings_beyond(&mut self, resident_bytes: u64) -> u64 {
        let all = self.mapped_bytes();
        let most_pages = resident_bytes / procfs::page_bytes();
        let mut beyond = HashSet::new();
        self.mapped.retain(|file, pages| pages.end - pages.start <= most_pages || !beyond.insert(*file));
        let left_out = all - self.mapped_bytes();
        if left_out > 0 {
            let mut kept = References::default();
            let is_known = |r: &FileReference| r.kind != ReferenceKind::Fault || !beyond.contains(&r.file);
            self.tracked.references.iter().filter(is_known).for_each(|reference| kept.push(reference));
            self.tracked.lost_events += kept.lost();
            self.tracked.references = kept;
        }
        left_out
    }
}

impl InsideTracker {
    /// Creates the shared memory and begins to read it. `origin_ns` on CLOCK_MONOTONIC is the zero of the references'
    /// times. The tracker's thread calls `follower` for each reference.
    ///
    /// # Errors
    /// [`Error::Shared`] if the shared memory cannot be created, [`Error::Thread`].
    pub fn start(origin_ns: u64, follower: Option<Box<dyn Follower>>) -> Result<InsideTracker, Error> {
        let ring = Ring::create().map_err(Error::Shared)?;
        if follower.is_some() {
            ring.want_paths();
        }
        let path = ring.path();
        let (stop, stopped) = mpsc::channel();
        let (send_file, files_in_memory) = mpsc::sync_channel(MAX_FILES_IN_MEMORY);
        let thread = thread::Builder::new()
            .name("bursar-inside".into())
            .spawn(move || run(ring, origin_ns, &stopped, follower, send_file))
            .map_err(Error::Thread)?;
        Ok(InsideTracker { path, stop, thread, files_in_memory: Some(files_in_memory) })
    }

    /// Receives each file in memory that the processes open, once. Sizes are not included.
    pub fn files_in_memory(&mut self) -> Option<Receiver<(FileId, OpenFile)>> {
        self.files_in_memory.take()
    }

    /// The environment variable by which the library finds the shared memory.
    pub fn variable(&self) -> (String, PathBuf) {
        ("BURSAR_REFERENCES".into(), self.path.clone())
    }

    /// Stops, and returns what was noted.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn finish(self) -> Result<SeenInside, Error> {
        drop(self.stop);
        self.thread.join().map_err(|_| Error::Ended)
    }
}

fn run(
    mut ring: Ring,
    origin_ns: u64,
    stopped: &Receiver<()>,
    follower: Option<Box<dyn Follower>>,
    files_in_memory: SyncSender<(FileId, OpenFile)>,
) -> SeenInside {
    let mut notes = Notes {
        follower,
        origin_ns,
        t_ns: 0,
        files: Files::default(),
        known: HashMap::default(),
        mapped: HashMap::default(),
        references: References::default(),
        touched: Vec::new(),
        program_runs: ProgramRuns::default(),
        files_in_memory,
    };
    let mut tick = FAST_TICK;
    while matches!(stopped.recv_timeout(tick), Err(RecvTimeoutError::Timeout)) {
        let taken = ring.drain(&mut |entry| notes.take(entry));
        tick = match &mut notes.follower {
            Some(follower) => {
                let until = if follower.act() { procfs::monotonic_ns() / 1_000_000 + HOLD_MS } else { 0 };
                ring.hold(until);
                FOLLOWED_TICK
            }
            None if taken > ring::ENTRIES / 8 => FAST_TICK,
            None => TICK,
        };
    }
    ring.hold(0);
    ring.drain(&mut |entry| notes.take(entry));
    let (read_bytes, runs_lost) = ring.drain_runs(&mut |entry| notes.take(entry));
    let references = merged(&notes.references, notes.touched);
    let lost_events = ring.lost() + runs_lost + notes.references.lost() + references.lost();
    let hidden = ReferenceClass::ALL.into_iter().zip(ring.hidden_bytes()).filter(|(_, bytes)| *bytes > 0);
    let not_visible = hidden.map(|(class, bytes)| (name(class).to_string(), Some(bytes))).collect();
    let tracked = Tracked {
        processes: notes.program_runs.records(origin_ns),
        references,
        files: notes.files.finish(),
        heaps: notes.program_runs.heaps(origin_ns, procfs::monotonic_ns()),
        most_cached_bytes: None,
        lost_events,
        not_visible,
        foreign: Vec::new(),
        rung: REFERENCES_INSIDE.into(),
    };
    let programs = ring.programs();
    let not_ended = programs.saturating_sub(ring.ended());
    SeenInside {
        tracked,
        programs,
        not_ended,
        with_io_uring: ring.with_io_uring(),
        pipe_bytes: ring.pipe_bytes(),
        read_bytes,
        program_runs: notes.program_runs,
        mapped: notes.mapped,
    }
}

/// Merges both by time.
fn merged(references: &References, mut touched: Vec<FileReference>) -> References {
    touched.sort_by_key(|reference| reference.t_ns);
    let mut touched = touched.into_iter().peekable();
    let mut all = References::default();
    for reference in references.iter() {
        while let Some(before) = touched.next_if(|touched| touched.t_ns <= reference.t_ns) {
            all.push(before);
        }
        all.push(reference);
    }
    touched.for_each(|reference| all.push(reference));
    all
}

/// The name of a class, as in [`Tracked::not_visible`] of the tracepoints.
fn name(class: ReferenceClass) -> &'static str {
    match class {
        ReferenceClass::Direct => "O_DIRECT",
        ReferenceClass::Plan9 => "9p",
        other => other.name(),
    }
}

/// A longer path is cut off: a process can write any number of parts.
const MAX_PATH_PARTS: usize = 512;

/// What is known of a file, by its hash.
#[derive(Debug, Default)]
struct Known {
    inode: Option<u64>,
    device: u32,
    generation: u32,
    number: Option<u32>,
    /// One past the last referenced page.
    end: u64,
    /// The parts of the path so far; a complete path ends with 0.
    path: Vec<u8>,
}

#[derive(Debug)]
struct Notes {
    follower: Option<Box<dyn Follower>>,
    origin_ns: u64,
    /// Time of the last reference.
    t_ns: u64,
    files: Files,
    /// By the hash that entries use for a file. ScanResult up for every reference, hence the fast hasher.
    known: HashMap<u32, Known, RandomState>,
    /// By file number: the page range from the first to the last mapped page.
    mapped: HashMap<u32, Range<u64>>,
    references: References,
    /// Runs of touched pages of programs and libraries.
    touched: Vec<FileReference>,
    program_runs: ProgramRuns,
    files_in_memory: SyncSender<(FileId, OpenFile)>,
}

impl Notes {
    fn take(&mut self, entry: Entry) {
        if entry.kind == Noted::Process {
            return self.program_runs.take(entry.file, entry.pages, entry.place);
        }
        let known = self.known.entry(entry.file).or_default();
        let kind = match entry.kind {
            Noted::Read => ReferenceKind::Read,
            Noted::Write => ReferenceKind::Write,
            Noted::Fault | Noted::Mapped => ReferenceKind::Fault,
            Noted::Removed => ReferenceKind::Removal,
            Noted::File => {
                match entry.pages {
                    0 => known.inode = Some(entry.place),
                    2 => return self.opened(entry.file, entry.place),
                    3.. => known.add_to_path(entry.pages as usize - 3, entry.place),
                    _ => (known.device, known.generation) = (entry.place as u32, (entry.place >> 32) as u32),
                }
                return;
            }
            Noted::InMemory => return self.in_memory(entry.file, entry.place),
            Noted::Process => return,
        };
        let (mut pages, first_page) = (entry.pages, entry.place & ((1 << 40) - 1));
        if kind == ReferenceKind::Removal {
            pages = known.end.saturating_sub(first_page).try_into().unwrap_or(u32::MAX);
            known.end = known.end.min(first_page);
        } else {
            known.end = known.end.max(first_page + u64::from(pages));
        }
        if pages == 0 {
            return;
        }
        let file = known.number(entry.file, &mut self.files);
        let ms = entry.place >> 40;
        let t_ns = since(procfs::monotonic_ns(), ms).saturating_sub(self.origin_ns);
        if entry.kind == Noted::Fault && self.touched.len() < MAX_TOUCHED_RUNS {
            let reference = FileReference { t_ns, file, first_page, pages, kind };
            if let Some(follower) = &mut self.follower {
                follower.loaded(&reference);
            }
            self.touched.push(reference);
            return;
        }
        // The clock of the time stamps is coarse; the ring has the true order.
        self.t_ns = self.t_ns.max(t_ns);
        if entry.kind == Noted::Mapped {
            let pages = first_page..first_page + u64::from(pages);
            let all = self.mapped.entry(file).or_insert(pages.clone());
            *all = all.start.min(pages.start)..all.end.max(pages.end);
        }
        let reference = FileReference { t_ns: self.t_ns, file, first_page, pages, kind };
        if let Some(follower) = &mut self.follower {
            match kind {
                ReferenceKind::Removal => follower.removed(&reference),
                _ => follower.referenced(&reference),
            }
        }
        self.references.push(reference);
    }

    fn in_memory(&mut self, hash: u32, place: u64) {
        let known = self.known.get(&hash);
        let file = known.and_then(|known| Some((known.inode?, known.device, known.path()?)));
        if let Some((inode, device, path)) = file {
            let id = FileId { device: makedev(device >> 20, device & 0xf_ffff), inode };
            let name = path.to_string_lossy().into_owned();
            // If the channel is full, later samples find the files that are still open through their descriptors.
            _ = self
                .files_in_memory
                .try_send((id, OpenFile { name, pid: (place >> 32) as i32, ..OpenFile::default() }));
        }
    }

    fn opened(&mut self, hash: u32, place: u64) {
        let (Some(follower), Some(known)) = (&mut self.follower, self.known.get_mut(&hash)) else { return };
        if let Some(inode) = known.inode {
            let number = known.number(hash, &mut self.files);
            let (pid, descriptor, path) = ((place >> 32) as i32, place as i32, known.path());
            follower.opened(number, Opened { inode, pid, descriptor, path });
        }
    }
}

impl Known {
    fn number(&mut self, hash: u32, files: &mut Files) -> u32 {
        // If the entries that identify the file were lost, its hash still distinguishes it from other files.
        let inode = self.inode.unwrap_or(u64::from(hash));
        let key = FileKey { inode, device: self.device, generation: self.generation };
        *self.number.get_or_insert_with(|| files.number(key))
    }

    /// Adds the next part. A part out of sequence comes from another process that reports the same path, and is
    /// ignored.
    fn add_to_path(&mut self, part: usize, bytes: u64) {
        if part == 0 {
            self.path.clear();
        }
        if self.path.len() == part * 8 && part < MAX_PATH_PARTS {
            self.path.extend(bytes.to_le_bytes());
        }
    }

    fn path(&self) -> Option<&Path> {
        let end = self.path.iter().position(|byte| *byte == 0)?;
        self.path.starts_with(b"/").then(|| Path::new(OsStr::from_bytes(&self.path[..end])))
    }
}

/// The latest time before `now_ns` at which the lower 24 bits of the clock's milliseconds were `ms`, in nanoseconds.
fn since(now_ns: u64, ms: u64) -> u64 {
    let now_ms = now_ns / 1_000_000;
    let ago = now_ms.wrapping_sub(ms) & 0xff_ffff;
    now_ms.saturating_sub(ago) * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_24_bits_is_the_latest_such_before_now() {
        let now_ms = (5 << 24) + 10;
        assert_eq!(since(now_ms * 1_000_000, 4), ((5 << 24) + 4) * 1_000_000);
        assert_eq!(since(now_ms * 1_000_000 + 999_999, 10), now_ms * 1_000_000);
        assert_eq!(since(now_ms * 1_000_000, 0xff_fff0), ((4 << 24) + 0xff_fff0) * 1_000_000);
    }

    #[test]
    fn file_is_known_by_hash_and_named_by_its_parts() {
        let mut seen = Notes {
            follower: None,
            origin_ns: 0,
            t_ns: 0,
            files: Files::default(),
            known: HashMap::default(),
            mapped: HashMap::default(),
            references: References::default(),
            touched: Vec::new(),
            program_runs: ProgramRuns::default(),
            files_in_memory: mpsc::sync_channel(1).0,
        };
        let entry = |file, pages, kind, place| Entry { file, pages, kind, place };
        seen.take(entry(7, 0, Noted::File, 4711));
        seen.take(entry(7, 1, Noted::File, 8 << 20 | 1 | 99 << 32));
        seen.take(entry(7, 3, Noted::Read, 5));
        seen.take(entry(8, 1, Noted::Write, 6));
        seen.take(entry(8, 0, Noted::Read, 6));
        let found: Vec<_> = seen.references.iter().map(|r| (r.file, r.first_page, r.pages, r.kind)).collect();
        assert_eq!(found, [(0, 5, 3, ReferenceKind::Read), (1, 6, 1, ReferenceKind::Write)]);
        let files: Vec<_> = seen.files.finish().iter().map(|file| (file.device, file.inode)).collect();
        assert_eq!(files, [(0x801, 4711), (0, 8)]);
    }

    #[test]
    fn path_parts_of_several_processes_make_one_path() {
        let mut known = Known::default();
        let add = |known: &mut Known, part, bytes: &[u8; 8]| known.add_to_path(part, u64::from_le_bytes(*bytes));
        add(&mut known, 0, b"/var/tmp");
        assert_eq!(known.path(), None, "its end is missing");
        add(&mut known, 1, b"/input\0\0");
        assert_eq!(known.path(), Some(Path::new("/var/tmp/input")));
        for (part, bytes) in
            [(0, b"/var/tmp"), (0, b"/var/tmp"), (1, b"/renamed"), (1, b"/renamed"), (2, &[0; 8]), (7, b"whatever")]
        {
            add(&mut known, part, bytes);
        }
        assert_eq!(known.path(), Some(Path::new("/var/tmp/renamed")));
        add(&mut known, 0, b"pipe:[7]");
        add(&mut known, 1, &[0; 8]);
        assert_eq!(known.path(), None, "it is not an absolute path");
    }

    #[test]
    fn program_pages_are_referenced_when_the_program_began() {
        let at = |t_ns, file| FileReference { t_ns, file, first_page: 1, pages: 1, kind: ReferenceKind::Fault };
        let mut references = References::default();
        [at(10, 1), at(20, 2), at(30, 3)].into_iter().for_each(|reference| references.push(reference));
        let found: Vec<_> =
            merged(&references, vec![at(40, 7), at(20, 6), at(5, 4), at(5, 5)]).iter().map(|r| r.file).collect();
        assert_eq!(found, [4, 5, 1, 6, 2, 3, 7]);
    }

    #[test]
    fn files_mapped_beyond_resident_size_are_left_out() {
        let references =
            [(1, 0, 100, ReferenceKind::Fault), (2, 0, 10, ReferenceKind::Fault), (1, 0, 5, ReferenceKind::Read)];
        let mut kept = References::default();
        for (n, (file, first_page, pages, kind)) in references.into_iter().enumerate() {
            kept.push(FileReference { t_ns: n as u64, file, first_page, pages, kind });
        }
        let tracked = Tracked {
            processes: Vec::new(),
            references: kept,
            files: Vec::new(),
            heaps: Vec::new(),
            most_cached_bytes: None,
            lost_events: 0,
            not_visible: Vec::new(),
            foreign: Vec::new(),
            rung: REFERENCES_INSIDE.into(),
        };
        let mapped = HashMap::from([(1, 0..100), (2, 0..10)]);
        let program_runs = ProgramRuns::default();
        let mut seen = SeenInside {
            tracked,
            programs: 1,
            not_ended: 0,
            with_io_uring: 0,
            read_bytes: 0,
            pipe_bytes: 0,
            program_runs,
            mapped,
        };
        let page = procfs::page_bytes();
        assert_eq!(seen.leave_out_mappings_beyond(50 * page), 100 * page);
        let left: Vec<_> = seen.tracked.references.iter().map(|r| (r.file, r.kind)).collect();
        assert_eq!(left, [(2, ReferenceKind::Fault), (1, ReferenceKind::Read)]);
        assert_eq!(seen.mapped_bytes(), 10 * page);
        assert_eq!(seen.leave_out_mappings_beyond(50 * page), 0);
    }
}
