//! Holding the page cache of a job to what its limit leaves.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use curve::two_lists::{CLUSTER, Folio, Lists};
use linux::procfs;
use model::{EmulatedLimit, FileReference, ReferenceKind};
use track::{Follower, Opened};

use crate::file::Referenced;
use crate::pages::Page;

/// Counting what is cached may take one part in this of the time: it takes longer the smaller the folios are.
const COUNTING_PART: u32 = 20;
/// Of more files than these no descriptor is kept.
const MOST_KEPT: usize = 512;
/// Pages that are known, in 512 MiB of memory: what is beyond them is told as out of reach.
const MOST_PAGES: usize = 1 << 25;
/// The job has to wait where it is beyond the limit by one part in this of its page cache, and by more pages than these.
const BEHIND_PART: u64 = 50;
const BEHIND_PAGES: u64 = 256;

/// What the holder and whoever observes the job tell each other.
#[derive(Debug, Default)]
pub struct Shared {
    held_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    peak_cached_bytes: AtomicU64,
    most_cached_bytes: AtomicU64,
    read_again_pages: AtomicU64,
    dropped_pages: AtomicU64,
    above_bytes: AtomicU64,
    out_of_reach_pages: AtomicU64,
    mapped_pages: AtomicU64,
    loaded_pages: AtomicU64,
}

impl Shared {
    /// What the job has now that reclaim cannot take, bytes.
    pub fn set_held(&self, bytes: u64) {
        self.held_bytes.store(bytes, Relaxed);
    }

    /// File pages that were dropped and referenced again so far.
    pub fn read_again_pages(&self) -> u64 {
        self.read_again_pages.load(Relaxed)
    }

    /// How it went so far.
    pub fn emulated(&self) -> EmulatedLimit {
        let page = procfs::page_bytes();
        EmulatedLimit {
            peak_bytes: self.peak_bytes.load(Relaxed),
            peak_cached_bytes: self.peak_cached_bytes.load(Relaxed),
            most_cached_bytes: Some(self.most_cached_bytes.load(Relaxed)),
            read_again_pages: self.read_again_pages.load(Relaxed),
            dropped_bytes: self.dropped_pages.load(Relaxed) * page,
            above_bytes: self.above_bytes.load(Relaxed),
            out_of_reach_bytes: self.out_of_reach_pages.load(Relaxed) * page,
            mapped_bytes: self.mapped_pages.load(Relaxed) * page,
            loaded_bytes: self.loaded_pages.load(Relaxed) * page,
        }
    }
}

/// Follows a job's references, and drops what has no room.
#[derive(Debug)]
pub struct Hold {
    /// `None`: nothing is dropped, and the peak is found.
    limit_bytes: Option<u64>,
    clean_up: bool,
    shared: Arc<Shared>,
    lists: Lists,
    /// By the number of the file.
    files: HashMap<u32, Referenced>,
    /// Of how many a descriptor is kept.
    kept: usize,
    /// Pages that all files have room for.
    room: usize,
    /// Pages of its files in the page cache: counted, with what came and went since.
    cached: u64,
    count_due: Instant,
    acted: Instant,
    /// Time so far, and bytes above the limit times seconds.
    seconds: f64,
    above: f64,
}

impl Hold {
    /// To this limit, or to none. `clean_up`: what the job leaves in the page cache is dropped at its end, as a trial's cgroup would be
    /// emptied, so that the next run begins cold.
    pub fn new(limit_bytes: Option<u64>, clean_up: bool, shared: Arc<Shared>) -> Hold {
        let now = Instant::now();
        Hold {
            limit_bytes,
            clean_up,
            shared,
            lists: Lists::default(),
            files: HashMap::new(),
            kept: 0,
            room: 0,
            cached: 0,
            count_due: now,
            acted: now,
            seconds: 0.0,
            above: 0.0,
        }
    }

    /// The file, with room for this page; `None`, which is counted, if there are too many.
    fn file_with(&mut self, file: u32, page: u64) -> Option<&mut Referenced> {
        let referenced = self.files.entry(file).or_default();
        let room = self.room + referenced.pages.room_for(page);
        if room > MOST_PAGES {
            self.shared.out_of_reach_pages.fetch_add(1, Relaxed);
            return None;
        }
        self.room = room;
        Some(referenced)
    }

    fn count_kept(&mut self) {
        self.kept = self.files.values().filter(|file| file.is_kept()).count();
    }

    fn reference(&mut self, file: u32, page: u64, kind: ReferenceKind) {
        let shared = self.shared.clone();
        let Some(referenced) = self.file_with(file, page) else { return };
        if kind == ReferenceKind::Fault {
            shared.mapped_pages.fetch_add(u64::from(referenced.map(page)), Relaxed);
            return;
        }
        let since = match referenced.pages.get(page) {
            Page::Here(folio) => return self.lists.access(folio),
            Page::Mapped | Page::OutOfReach => return,
            Page::Never => None,
            Page::Dropped(age) => Some(age),
        };
        if !referenced.is_within_reach() {
            *referenced.pages.entry(page) = Page::OutOfReach;
            shared.out_of_reach_pages.fetch_add(1, Relaxed);
            return;
        }
        if since.is_some() {
            shared.read_again_pages.fetch_add(1, Relaxed);
        }
        referenced.listed += 1;
        let folio = self.lists.insert(Folio { file, first: page, pages: 1 }, since);
        self.lists.access(folio);
        self.cached += 1;
        if let Some(referenced) = self.files.get_mut(&file) {
            *referenced.pages.entry(page) = Page::Here(folio);
        }
    }

    /// Counts what is cached, if it is time.
    fn count(&mut self, now: Instant) {
        if now < self.count_due {
            return;
        }
        self.cached = self.files.values_mut().map(Referenced::count).sum();
        self.count_kept();
        self.room = self.files.values().map(|file| file.pages.room()).sum();
        let after = Instant::now();
        self.count_due = after + (after - now) * COUNTING_PART;
    }

    /// Takes so many pages from the lists and drops them. How many it were.
    fn reclaim(&mut self, pages: usize) -> u64 {
        let mut dropped: Vec<(u32, u64)> = Vec::new();
        let files = &mut self.files;
        self.lists.reclaim(pages.max(CLUSTER), &mut |folio, age| {
            let Some(file) = files.get_mut(&folio.file) else { return };
            dropped.extend(folio.range().filter(|page| file.reclaim(*page, age)).map(|page| (folio.file, page)));
        });
        dropped.sort_unstable();
        for run in dropped.chunk_by(|a, b| a.0 == b.0 && a.1 + 1 == b.1) {
            let (file, first) = run[0];
            if let Some(file) = self.files.get(&file) {
                file.drop_pages(first..first + run.len() as u64);
            }
        }
        let count = dropped.len() as u64;
        self.cached = self.cached.saturating_sub(count);
        self.shared.dropped_pages.fetch_add(count, Relaxed);
        count
    }

    /// Keeps the mean of what is above the limit over time.
    fn above(&mut self, now: Instant, pages: u64) {
        let passed = now.saturating_duration_since(self.acted).as_secs_f64();
        self.acted = now;
        self.seconds += passed;
        self.above += passed * (pages * procfs::page_bytes()) as f64;
        if self.seconds > Duration::from_millis(1).as_secs_f64() {
            self.shared.above_bytes.store((self.above / self.seconds) as u64, Relaxed);
        }
    }
}

fn pages(reference: &FileReference) -> Range<u64> {
    reference.first_page..reference.first_page.saturating_add(u64::from(reference.pages))
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.clean_up {
            self.files.values().for_each(Referenced::drop_all);
        }
    }
}

impl Follower for Hold {
    fn opened(&mut self, file: u32, opened: Opened) {
        if self.kept == MOST_KEPT {
            self.files.values_mut().for_each(Referenced::let_go);
            self.count_kept();
        }
        let referenced = self.files.entry(file).or_default();
        let kept = referenced.is_kept();
        if self.kept < MOST_KEPT {
            referenced.open(opened);
            self.kept += usize::from(referenced.is_kept() && !kept);
        }
    }

    fn referenced(&mut self, reference: &FileReference) {
        if let Some(file) = self.files.get_mut(&reference.file).filter(|_| reference.kind == ReferenceKind::Write) {
            file.is_written = true;
        }
        for page in pages(reference) {
            self.reference(reference.file, page, reference.kind);
        }
    }

    fn removed(&mut self, gone: &FileReference) {
        let Some(file) = self.files.get_mut(&gone.file) else { return };
        let folios = file.remove(pages(gone));
        self.cached = self.cached.saturating_sub(folios.len() as u64);
        folios.into_iter().for_each(|folio| self.lists.remove(folio));
    }

    fn loaded(&mut self, reference: &FileReference) {
        let shared = self.shared.clone();
        for page in pages(reference) {
            let is_new = self.file_with(reference.file, page).is_some_and(|file| file.map(page));
            shared.loaded_pages.fetch_add(u64::from(is_new), Relaxed);
        }
    }

    fn act(&mut self) -> bool {
        let now = Instant::now();
        self.count(now);
        let (page, held) = (procfs::page_bytes(), self.shared.held_bytes.load(Relaxed));
        let cached = self.cached * page;
        self.shared.most_cached_bytes.fetch_max(cached, Relaxed);
        if self.shared.peak_bytes.fetch_max(held + cached, Relaxed) < held + cached {
            self.shared.peak_cached_bytes.store(cached, Relaxed);
        }
        let Some(limit) = self.limit_bytes else { return false };
        let room = limit.saturating_sub(held) / page;
        let over = self.cached.saturating_sub(room);
        self.above(now, over);
        let dropped = if over > 0 { self.reclaim(over as usize) } else { 0 };
        dropped > 0 && over > room / BEHIND_PART + BEHIND_PAGES
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use linux::cache::cached_bytes;

    use super::*;

    const MIB: u64 = 1 << 20;
    const PAGES: u32 = 2048;

    /// A file of 8 MiB that this process has open.
    struct Input {
        _folder: tempfile::TempDir,
        path: PathBuf,
        file: File,
    }

    impl Input {
        fn new() -> Input {
            let folder = tempfile::tempdir_in("/var/tmp").unwrap();
            let path = folder.path().join("file");
            fs::write(&path, vec![7u8; 8 << 20]).unwrap();
            let file = File::open(&path).unwrap();
            file.sync_all().unwrap();
            linux::cache::evict(&path).unwrap();
            Input { _folder: folder, path, file }
        }

        /// Reads it, and tells.
        fn read(&self, hold: &mut Hold) {
            fs::read(&self.path).unwrap();
            self.open(hold);
            hold.referenced(&reference(ReferenceKind::Read));
        }

        fn open(&self, hold: &mut Hold) {
            let inode = self.file.metadata().unwrap().ino();
            hold.opened(0, Opened { inode, ..opened(self.file.as_raw_fd()) });
        }
    }

    /// By this process.
    fn opened(descriptor: i32) -> Opened<'static> {
        Opened { inode: 0, pid: std::process::id() as i32, descriptor, path: None }
    }

    fn reference(kind: ReferenceKind) -> FileReference {
        FileReference { t_ns: 0, file: 0, first_page: 0, pages: PAGES, kind }
    }

    fn hold(limit_mib: Option<u64>) -> (Hold, Arc<Shared>) {
        let shared = Arc::new(Shared::default());
        (Hold::new(limit_mib.map(|mib| mib * MIB), true, shared.clone()), shared)
    }

    #[test]
    fn what_is_beyond_the_limit_is_dropped_and_read_again() {
        let (input, (mut hold, shared)) = (Input::new(), hold(Some(6)));
        shared.set_held(2 * MIB);
        input.read(&mut hold);
        assert_eq!(cached_bytes(&input.path), Some(8 * MIB));
        hold.act();
        // Of a large folio all pages go together.
        let left = cached_bytes(&input.path).unwrap();
        assert!((2 * MIB..=6 * MIB).contains(&left), "{left}");
        assert!(shared.emulated().dropped_bytes >= 4 * MIB, "{:?}", shared.emulated());
        assert_eq!(shared.read_again_pages(), 0);
        input.read(&mut hold);
        assert!(shared.read_again_pages() >= 1024, "{:?}", shared.emulated());
        assert_eq!(shared.emulated().out_of_reach_bytes, 0);
    }

    #[test]
    fn what_fits_is_kept_until_the_end_of_the_run() {
        let (input, (mut hold, shared)) = (Input::new(), hold(Some(11)));
        shared.set_held(2 * MIB);
        input.read(&mut hold);
        assert!(!hold.act());
        assert_eq!(cached_bytes(&input.path), Some(8 * MIB));
        assert_eq!((shared.emulated().dropped_bytes, shared.emulated().above_bytes), (0, 0));
        drop(hold);
        assert_eq!(cached_bytes(&input.path), Some(0));
    }

    #[test]
    fn without_a_limit_the_peak_is_what_it_held_and_had_cached() {
        let (input, (mut hold, shared)) = (Input::new(), hold(None));
        shared.set_held(3 * MIB);
        input.read(&mut hold);
        assert!(!hold.act());
        let emulated = shared.emulated();
        assert_eq!((emulated.peak_bytes, emulated.peak_cached_bytes), (11 * MIB, 8 * MIB));
        assert_eq!(emulated.most_cached_bytes, Some(8 * MIB));
    }

    #[test]
    fn mapped_files_stay_and_those_that_cannot_be_opened_are_told() {
        let (input, (mut held, shared)) = (Input::new(), hold(Some(1)));
        fs::read(&input.path).unwrap();
        input.open(&mut held);
        held.referenced(&reference(ReferenceKind::Fault));
        held.act();
        assert_eq!(cached_bytes(&input.path), Some(8 * MIB));
        assert_eq!(shared.emulated().mapped_bytes, 8 * MIB);
        let (mut other, shared) = hold(Some(1));
        other.opened(0, Opened { inode: 1, ..opened(input.file.as_raw_fd()) });
        other.referenced(&reference(ReferenceKind::Read));
        other.referenced(&reference(ReferenceKind::Read));
        assert_eq!(shared.emulated().out_of_reach_bytes, 8 * MIB);
    }

    #[test]
    fn dirty_pages_are_written_back_and_dropped() {
        let (input, (mut hold, shared)) = (Input::new(), hold(Some(4)));
        fs::write(&input.path, vec![8u8; 8 << 20]).unwrap();
        input.open(&mut hold);
        hold.referenced(&reference(ReferenceKind::Write));
        hold.act();
        assert!(cached_bytes(&input.path).unwrap() <= 4 * MIB);
        assert!(shared.emulated().dropped_bytes >= 4 * MIB);
        assert_eq!(fs::read(&input.path).unwrap(), vec![8u8; 8 << 20]);
    }

    #[test]
    fn references_anywhere_take_no_more_memory_than_is_meant_for_them() {
        let (mut hold, shared) = hold(Some(1));
        let parts = MOST_PAGES as u64 / 512;
        for part in 0..=parts {
            let first_page = (part << 24) + 511 - part % 7;
            hold.referenced(&FileReference { first_page, pages: 1, ..reference(ReferenceKind::Read) });
        }
        assert_eq!(hold.room, MOST_PAGES);
        assert_eq!(shared.emulated().out_of_reach_bytes, (parts + 1) * procfs::page_bytes());
    }

    #[test]
    fn files_that_were_closed_are_held_by_their_paths_however_many_there_are() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let (mut hold, shared) = hold(Some(4));
        let count = MOST_KEPT as u32 + 300;
        let path = |number: u32| folder.path().join(number.to_string());
        for number in 0..count {
            fs::write(path(number), [7; 16384]).unwrap();
            File::open(path(number)).unwrap().sync_all().unwrap();
            let inode = fs::metadata(path(number)).unwrap().ino();
            hold.opened(number, Opened { inode, path: Some(&path(number)), ..opened(-1) });
            hold.referenced(&FileReference { file: number, pages: 4, ..reference(ReferenceKind::Read) });
        }
        assert!(hold.kept <= MOST_KEPT);
        count_now(&mut hold);
        count_now(&mut hold);
        let cached = || (0..count).filter_map(|number| cached_bytes(&path(number))).sum::<u64>();
        assert!(cached() <= 4 * MIB, "{}", cached());
        assert_eq!(shared.emulated().out_of_reach_bytes, 0);
        drop(hold);
        assert_eq!(cached(), 0);
    }

    #[test]
    fn a_file_whose_name_another_has_is_out_of_reach_until_it_is_opened_again() {
        let (input, (mut hold, shared)) = (Input::new(), hold(Some(4)));
        let inode = input.file.metadata().unwrap().ino();
        let open = |hold: &mut Hold, path: &Path| hold.opened(0, Opened { inode, path: Some(path), ..opened(-1) });
        open(&mut hold, &input.path);
        hold.files.values_mut().for_each(Referenced::let_go);
        let renamed = input.path.with_extension("old");
        fs::rename(&input.path, &renamed).unwrap();
        fs::write(&input.path, "another").unwrap();
        count_now(&mut hold);
        open(&mut hold, &input.path);
        hold.referenced(&reference(ReferenceKind::Read));
        assert_eq!(shared.emulated().out_of_reach_bytes, 8 * MIB);
        open(&mut hold, &renamed);
        assert!(hold.files[&0].is_kept());
    }

    /// So that the next look counts.
    fn count_now(hold: &mut Hold) {
        hold.count_due = Instant::now();
        hold.act();
    }

    #[test]
    fn a_removed_file_is_let_go_when_it_is_closed() {
        let (input, (mut hold, shared)) = (Input::new(), hold(Some(4)));
        input.read(&mut hold);
        count_now(&mut hold);
        fs::remove_file(&input.path).unwrap();
        count_now(&mut hold);
        assert_eq!((hold.kept, hold.lists.pages() > 0), (1, true));
        drop(input);
        count_now(&mut hold);
        assert_eq!((hold.kept, hold.cached), (0, 0));
        hold.referenced(&reference(ReferenceKind::Read));
        assert_eq!(shared.emulated().out_of_reach_bytes, 8 * MIB);
        hold.act();
    }

    #[test]
    fn a_file_without_a_name_is_held_to_the_limit_as_others_are() {
        let (input, (mut hold, shared)) = (Input::new(), hold(Some(4)));
        input.read(&mut hold);
        fs::remove_file(&input.path).unwrap();
        count_now(&mut hold);
        count_now(&mut hold);
        assert!(hold.cached * procfs::page_bytes() <= 4 * MIB, "{}", hold.cached);
        hold.referenced(&reference(ReferenceKind::Read));
        assert_eq!(shared.emulated().out_of_reach_bytes, 0);
        assert!(shared.read_again_pages() >= 1024);
    }

    #[test]
    fn what_was_cut_off_is_neither_cached_nor_read_again() {
        let (input, (mut hold, shared)) = (Input::new(), hold(Some(8)));
        input.read(&mut hold);
        let half = PAGES / 2;
        hold.removed(&FileReference { first_page: half.into(), pages: half, ..reference(ReferenceKind::Removal) });
        assert_eq!((hold.lists.pages() as u32, hold.cached as u32), (half, half));
        hold.referenced(&reference(ReferenceKind::Write));
        assert_eq!((hold.lists.pages() as u32, shared.read_again_pages()), (PAGES, 0));
    }
}
