//! References to files as the library in the job's processes notes them, which needs no rights, and what each process told of itself:
//! `preload/abi.h`, section 4.
//!
//! What a reference is follows the same rules as with the tracepoints (see the crate's page), but for these differences: the pages that
//! a process has touched of its program and libraries are references when it begins; another mapping of a file counts as one reference to all
//! its pages when it is made ([`SeenInside::leave_out_mappings_beyond`] leaves out those that cannot have been touched as a whole); and
//! calls that do not go through libc are not seen.

mod lives;
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
use lives::Lives;
use ring::{Entry, Ring};

/// The name of this source.
pub const REFERENCES_INSIDE: &str = "references seen inside the processes";

/// The memory that [`InsideTracker::start`] makes and that each process maps.
pub const SHARED_BYTES: u64 = REFERENCE_FILE_BYTES as u64;

/// How often the ring is read, and how often once more than an eighth of it was in use.
const TICK: Duration = Duration::from_millis(20);
const FAST_TICK: Duration = Duration::from_millis(4);
/// And for one who acts on it.
const FOLLOWED_TICK: Duration = Duration::from_millis(1);
/// For so long a hold is valid unless it is said anew.
const HOLD_MS: u64 = 50;

/// What a process said of a file that it has opened. Any of it may be wrong.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// Its inode.
    pub inode: u64,
    /// Where it is until the process closes it: `/proc/PID/fd/DESCRIPTOR`.
    pub pid: i32,
    /// See `pid`.
    pub descriptor: i32,
    /// Its path when it was first opened; `None` if that is not known.
    pub path: Option<&'a Path>,
}

/// Who follows the references while the job goes on, and acts on them.
pub trait Follower: Send + std::fmt::Debug {
    /// A process has opened a file of this number. Said of each of its descriptors before it is referred to by it.
    fn opened(&mut self, file: u32, opened: Opened);
    /// Pages that a process had touched of its program and its libraries, at its end.
    fn loaded(&mut self, reference: &FileReference);
    /// In the order of the ring.
    fn referenced(&mut self, reference: &FileReference);
    /// Pages of a file are gone from the page cache, in the same order.
    fn removed(&mut self, gone: &FileReference);
    /// All that was noted up to now has been told; asked every millisecond. `true`: whoever reads or writes a file has to wait.
    fn act(&mut self) -> bool;
}

/// Pages of programs and libraries are told at a program's end, with the time of its begin: so many runs of them are put in order with the
/// rest. Those beyond count as referenced at the end.
const MOST_TOUCHED: usize = 1 << 20;

/// Files in memory that are told between two samples, at most.
const MOST_IN_MEMORY: usize = 1024;

/// Reads what a job's processes note about their references to files.
#[derive(Debug)]
pub struct InsideTracker {
    path: PathBuf,
    stop: Sender<()>,
    thread: JoinHandle<SeenInside>,
    files_in_memory: Option<Receiver<(FileId, OpenFile)>>,
}

/// What the processes have noted.
#[derive(Debug)]
pub struct SeenInside {
    /// Their references, and the processes as they told of themselves: of one that was killed or still ran no more than its begin. No file
    /// is known to have been cached before.
    pub tracked: Tracked,
    /// Programs that noted references, an exec counting anew.
    pub programs: u64,
    /// Of these, how many were killed or still ran, so that of what they touched of programs and libraries nothing is known.
    pub not_ended: u64,
    /// Of these, how many had liburing loaded. What io_uring reads is neither seen nor in `rchar`.
    pub with_io_uring: u64,
    /// Bytes of all their calls that read, as `rchar` in `/proc/PID/io` counts them.
    pub read_bytes: u64,
    /// Bytes by which the processes enlarged pipes, those that are closed included.
    pub pipe_bytes: u64,
    lives: Lives,
    /// Of each file that the programs mapped, by its number, the pages from the first to the last that a mapping had.
    mapped: HashMap<u32, Range<u64>>,
}

impl SeenInside {
    /// Bytes of files that the programs mapped, each page once.
    pub fn mapped_bytes(&self) -> u64 {
        let bytes = |pages: &Range<u64>| (pages.end - pages.start) * procfs::page_bytes();
        // What the processes write may be anything.
        self.mapped.values().map(bytes).fold(0, u64::saturating_add)
    }

    /// Of the most that one process had resident, by the kernel's word, what was bursar's: its library, and the memory that it shares.
    pub fn own_bytes_in(&self, resident_bytes: u64) -> u64 {
        self.lives.own_bytes_in(resident_bytes)
    }

    /// Leaves out the references that stand for mappings of files of which more was mapped than ever was resident: how much of them
    /// was touched is not known. Returns how many bytes were mapped of these files. Linear in the references if there are any.
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
    /// Makes the memory that processes write to, and begins to read it. `origin_ns` on CLOCK_MONOTONIC is the zero of the
    /// references' times. `follower`: is told of them as they come, in the tracker's thread.
    ///
    /// # Errors
    /// [`Error::Shared`] if there is no such memory, [`Error::Thread`].
    pub fn start(origin_ns: u64, follower: Option<Box<dyn Follower>>) -> Result<InsideTracker, Error> {
        let ring = Ring::create().map_err(Error::Shared)?;
        if follower.is_some() {
            ring.want_paths();
        }
        let path = ring.path();
        let (stop, stopped) = mpsc::channel();
        let (tell, files_in_memory) = mpsc::sync_channel(MOST_IN_MEMORY);
        let thread = thread::Builder::new()
            .name("bursar-inside".into())
            .spawn(move || run(ring, origin_ns, &stopped, follower, tell))
            .map_err(Error::Thread)?;
        Ok(InsideTracker { path, stop, thread, files_in_memory: Some(files_in_memory) })
    }

    /// Where files in memory come from that the processes open, each once. Their sizes are not told.
    pub fn files_in_memory(&mut self) -> Option<Receiver<(FileId, OpenFile)>> {
        self.files_in_memory.take()
    }

    /// What the library reads of it.
    pub fn variable(&self) -> (String, PathBuf) {
        ("BURSAR_REFERENCES".into(), self.path.clone())
    }

    /// Stops, and gives what was seen.
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
    let mut seen = Seen {
        follower,
        origin_ns,
        t_ns: 0,
        files: Files::default(),
        known: HashMap::default(),
        mapped: HashMap::default(),
        references: References::default(),
        touched: Vec::new(),
        lives: Lives::default(),
        files_in_memory,
    };
    let mut tick = FAST_TICK;
    while matches!(stopped.recv_timeout(tick), Err(RecvTimeoutError::Timeout)) {
        let taken = ring.drain(&mut |entry| seen.take(entry));
        tick = match &mut seen.follower {
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
    ring.drain(&mut |entry| seen.take(entry));
    let (read_bytes, runs_lost) = ring.drain_runs(&mut |entry| seen.take(entry));
    let references = merged(&seen.references, seen.touched);
    let lost_events = ring.lost() + runs_lost + seen.references.lost() + references.lost();
    let hidden = ReferenceClass::ALL.into_iter().zip(ring.hidden_bytes()).filter(|(_, bytes)| *bytes > 0);
    let not_visible = hidden.map(|(class, bytes)| (name(class).to_string(), Some(bytes))).collect();
    let tracked = Tracked {
        processes: seen.lives.records(origin_ns),
        references,
        files: seen.files.finish(),
        heaps: seen.lives.heaps(origin_ns, procfs::monotonic_ns()),
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
        lives: seen.lives,
        mapped: seen.mapped,
    }
}

/// All in the order of their times.
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

/// As the tracepoints' side names it.
fn name(class: ReferenceClass) -> &'static str {
    match class {
        ReferenceClass::Direct => "O_DIRECT",
        ReferenceClass::Plan9 => "9p",
        other => other.name(),
    }
}

/// Parts of a path are believed up to so many.
const MOST_PATH_PARTS: usize = 512;

/// What is known of a file by its hash.
#[derive(Debug, Default)]
struct Known {
    inode: Option<u64>,
    device: u32,
    generation: u32,
    number: Option<u32>,
    /// Behind the last page that was referenced.
    end: u64,
    /// Its parts so far; it ends with a 0.
    path: Vec<u8>,
}

#[derive(Debug)]
struct Seen {
    follower: Option<Box<dyn Follower>>,
    origin_ns: u64,
    /// Of the last reference.
    t_ns: u64,
    files: Files,
    /// By the hash that entries name them by. Asked for every reference.
    known: HashMap<u32, Known, RandomState>,
    /// Of each file, the pages from the first to the last that a mapping had.
    mapped: HashMap<u32, Range<u64>>,
    references: References,
    /// Pages of programs and libraries.
    touched: Vec<FileReference>,
    lives: Lives,
    files_in_memory: SyncSender<(FileId, OpenFile)>,
}

impl Seen {
    fn take(&mut self, entry: Entry) {
        if entry.kind == Noted::Process {
            return self.lives.take(entry.file, entry.pages, entry.place);
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
        if entry.kind == Noted::Fault && self.touched.len() < MOST_TOUCHED {
            let reference = FileReference { t_ns, file, first_page, pages, kind };
            if let Some(follower) = &mut self.follower {
                follower.loaded(&reference);
            }
            self.touched.push(reference);
            return;
        }
        // The clock that stamps them is coarse, and their order that of the ring.
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
        let told = known.and_then(|known| Some((known.inode?, known.device, known.path()?)));
        if let Some((inode, device, path)) = told {
            let id = FileId { device: makedev(device >> 20, device & 0xf_ffff), inode };
            let name = path.to_string_lossy().into_owned();
            // Beyond what is looked at between two samples, those that are still open then are found by their descriptors.
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
        // Where the entries that say which file it is were lost, the hash still tells it from others.
        let inode = self.inode.unwrap_or(u64::from(hash));
        let key = FileKey { inode, device: self.device, generation: self.generation };
        *self.number.get_or_insert_with(|| files.number(key))
    }

    /// The next part; one that is not is another process telling the same.
    fn add_to_path(&mut self, part: usize, bytes: u64) {
        if part == 0 {
            self.path.clear();
        }
        if self.path.len() == part * 8 && part < MOST_PATH_PARTS {
            self.path.extend(bytes.to_le_bytes());
        }
    }

    fn path(&self) -> Option<&Path> {
        let end = self.path.iter().position(|byte| *byte == 0)?;
        self.path.starts_with(b"/").then(|| Path::new(OsStr::from_bytes(&self.path[..end])))
    }
}

/// The last time before `now_ns` at which the clock's milliseconds had these lower 24 bits, nanoseconds.
fn since(now_ns: u64, ms: u64) -> u64 {
    let now_ms = now_ns / 1_000_000;
    let ago = now_ms.wrapping_sub(ms) & 0xff_ffff;
    now_ms.saturating_sub(ago) * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_24_bits_is_the_last_such_before_now() {
        let now_ms = (5 << 24) + 10;
        assert_eq!(since(now_ms * 1_000_000, 4), ((5 << 24) + 4) * 1_000_000);
        assert_eq!(since(now_ms * 1_000_000 + 999_999, 10), now_ms * 1_000_000);
        assert_eq!(since(now_ms * 1_000_000, 0xff_fff0), ((4 << 24) + 0xff_fff0) * 1_000_000);
    }

    #[test]
    fn a_file_is_known_by_its_hash_and_named_by_its_parts() {
        let mut seen = Seen {
            follower: None,
            origin_ns: 0,
            t_ns: 0,
            files: Files::default(),
            known: HashMap::default(),
            mapped: HashMap::default(),
            references: References::default(),
            touched: Vec::new(),
            lives: Lives::default(),
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
    fn a_path_comes_in_parts_and_may_be_told_by_several_at_once() {
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
        assert_eq!(known.path(), None, "it is no file of a name");
    }

    #[test]
    fn pages_of_programs_are_referenced_when_their_program_began() {
        let at = |t_ns, file| FileReference { t_ns, file, first_page: 1, pages: 1, kind: ReferenceKind::Fault };
        let mut references = References::default();
        [at(10, 1), at(20, 2), at(30, 3)].into_iter().for_each(|reference| references.push(reference));
        let found: Vec<_> =
            merged(&references, vec![at(40, 7), at(20, 6), at(5, 4), at(5, 5)]).iter().map(|r| r.file).collect();
        assert_eq!(found, [4, 5, 1, 6, 2, 3, 7]);
    }

    #[test]
    fn a_file_that_is_mapped_beyond_what_was_resident_is_left_out() {
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
        let lives = Lives::default();
        let mut seen = SeenInside {
            tracked,
            programs: 1,
            not_ended: 0,
            with_io_uring: 0,
            read_bytes: 0,
            pipe_bytes: 0,
            lives,
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
