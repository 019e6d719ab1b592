//! Pages of files that are read and written: the page cache's part of a program's working set.
//!
//! The page cache tracepoints report every read and write, so nothing is scanned or cleared. Mapped pages are left out,
//! because they have Accessed bits. So that all pages stand on one stack, a page counts once between two scans here
//! too, and only pages chosen by hash are kept.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use foldhash::fast::RandomState;
use linux::bpf::{Error, Event, FileKey, Follower, Observer, Programs, Rung};
use linux::procfs;
use model::ReferenceKind;

use super::choice::{chosen, chosen_within, mix};
use super::stack::Stack;

/// Maximum number of pages kept; beyond that the sample is halved.
const MAX_PAGES: usize = 4096;
/// Bits for the page number within a file; the other bits distinguish files.
const PAGE_BITS: u32 = 34;
/// Cost of an event to the program, as `bpf_stats_enabled` measured it for a compile.
const EVENT_SECONDS: f64 = 0.3e-6;

/// The reader of the tracepoints, and the pages they reported.
pub struct PageCache {
    observer: Observer<'static>,
    follower: Follower,
    followed: BTreeSet<i32>,
    pending: Rc<RefCell<Pending>>,
    places: HashMap<u64, LastReference, RandomState>,
    /// Pages deeper on the stack than the machine's memory are dropped.
    most_depth: u64,
    lost: u64,
}

/// Last reference of a page.
#[derive(Clone, Copy)]
pub struct LastReference {
    /// Number of the scan.
    pub scan: u64,
    /// Nanoseconds since tracking began.
    pub ns: u64,
}

/// Events since the last scan.
#[derive(Default)]
struct Pending {
    level: u32,
    pages: HashSet<u64, RandomState>,
    events: u64,
}

impl Pending {
    fn take(&mut self, event: Event<'_>) {
        self.events += 1;
        if let Event::Reference { file, first, pages, kind: ReferenceKind::Read | ReferenceKind::Write, .. } = event {
            let first = number(file, first);
            self.pages.extend(chosen_within(first, first + u64::from(pages), self.level));
        }
    }
}

impl PageCache {
    /// Starts to listen, to no process yet.
    ///
    /// # Errors
    /// Why reads and writes cannot be seen.
    pub fn listen() -> Result<PageCache, Error> {
        let programs = Programs::load(Rung::Filemap)?;
        let follower = programs.follower()?;
        let pending = Rc::new(RefCell::new(Pending::default()));
        let sink = Rc::clone(&pending);
        let observer = programs.observe(move |event| sink.borrow_mut().take(event))?;
        let memory = procfs::meminfo().map_or(u64::MAX, |info| info.total);
        Ok(PageCache {
            observer,
            follower,
            followed: BTreeSet::new(),
            pending,
            places: HashMap::default(),
            most_depth: memory / procfs::page_bytes(),
            lost: 0,
        })
    }

    /// The rung of the ladder in use.
    pub fn rung(&self) -> Rung {
        self.observer.rung()
    }

    /// Listens to these processes and their later children.
    pub fn follow(&mut self, living: impl Iterator<Item = i32>) {
        if let Err(error) = self.observer.resume() {
            tracing::warn!("{error}");
        }
        let living: BTreeSet<i32> = living.collect();
        for pid in living.difference(&self.followed) {
            // If one process cannot be followed, only its reads are missed.
            let _ = self.follower.follow(*pid);
        }
        self.followed = living;
    }

    /// Takes in events before the kernel's buffer overflows. Returns the cost of the events to the program, in seconds.
    pub fn take_in(&mut self) -> f64 {
        if let Err(error) = self.observer.poll(Duration::ZERO) {
            tracing::warn!("{error}");
        }
        std::mem::take(&mut self.pending.borrow_mut().events) as f64 * EVENT_SECONDS
    }

    /// The pages referenced since the last scan, each as its previous reference. Their last reference is now `now`.
    pub fn referenced(&mut self, now: LastReference) -> Vec<Option<LastReference>> {
        self.pending.borrow_mut().pages.drain().map(|page| self.places.insert(page, now)).collect()
    }

    /// Stops listening, and so costs nothing, until processes are [followed](PageCache::follow) again.
    pub fn pause(&mut self) {
        if let Err(error) = self.observer.pause() {
            tracing::warn!("{error}");
        }
        self.followed.clear();
    }

    /// Discards events since the last scan.
    pub fn skip(&mut self) {
        self.take_in();
        self.pending.borrow_mut().pages.clear();
    }

    /// Events lost since the last call, because the buffer was full.
    pub fn lost(&mut self) -> u64 {
        let lost = self.observer.lost_events().unwrap_or(self.lost);
        lost - std::mem::replace(&mut self.lost, lost).min(lost)
    }

    /// How many pages each kept page stands for.
    pub fn weight(&self) -> u64 {
        1 << self.pending.borrow().level
    }

    /// Last reference of each kept page.
    pub fn seen(&self) -> impl Iterator<Item = LastReference> {
        self.places.values().copied()
    }

    /// Number of known pages, estimated from the sample.
    pub fn pages(&self) -> u64 {
        self.places.len() as u64 * self.weight()
    }

    /// Halves the sample while it is too large. Returns whether it has changed: then the stack must be rebuilt.
    pub fn thin_out(&mut self, stack: &Stack) -> bool {
        if self.places.len() <= MAX_PAGES {
            return false;
        }
        self.places.retain(|_, seen| stack.above(seen.scan).0 <= self.most_depth);
        let mut pending = self.pending.borrow_mut();
        while self.places.len() > MAX_PAGES {
            pending.level += 1;
            let level = pending.level;
            let stays = |page: u64| chosen(page >> level, level) == page;
            self.places.retain(|page, _| stays(*page));
            pending.pages.retain(|page| stays(*page));
        }
        true
    }
}

/// Numbers a page of a file among the pages of all files.
fn number(file: FileKey, page: u64) -> u64 {
    let file = mix(file.inode ^ mix(u64::from(file.device) << 32 | u64::from(file.generation)));
    file << PAGE_BITS | page & ((1 << PAGE_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64) -> FileKey {
        FileKey { inode, device: 1, generation: 0 }
    }

    fn read(inode: u64, first: u64, pages: u32, kind: ReferenceKind) -> Event<'static> {
        Event::Reference { file: file(inode), t_ns: 0, first, pages, kind }
    }

    #[test]
    fn small_files_are_sampled_in_proportion() {
        let mut pending = Pending { level: 6, ..Pending::default() };
        (0..64_000).for_each(|inode| pending.take(read(inode, 0, 2, ReferenceKind::Read)));
        let stands_for = pending.pages.len() * 64;
        assert!((115_000..=141_000).contains(&stands_for), "{stands_for} of 128000 pages");
    }

    #[test]
    fn large_files_have_an_exact_share_without_mapped_pages() {
        let mut pending = Pending { level: 5, ..Pending::default() };
        pending.take(read(7, 0, 1 << 16, ReferenceKind::Write));
        pending.take(read(8, 0, 1 << 16, ReferenceKind::Fault));
        assert_eq!(pending.pages.len(), 1 << 11);
        assert_eq!(pending.events, 2);
    }

    #[test]
    fn a_pause_drops_events_and_follow_resumes_them() {
        use std::os::unix::fs::FileExt;
        let mut cache = match PageCache::listen() {
            Ok(cache) if cache.rung() == Rung::Filemap => cache,
            other => {
                let is_here = std::env::var_os("BURSAR_NO_SKIP").is_none();
                assert!(is_here, "{:?}", other.map(|cache| cache.rung()));
                return eprintln!("skipped: reads cannot be seen");
            }
        };
        let files = [(); 2].map(|()| tempfile::tempfile_in("/var/tmp").unwrap());
        files.iter().for_each(|file| file.write_all_at(&[1; 64 << 12], 0).unwrap());
        let read = |cache: &mut PageCache| {
            for page in 0..64 {
                files.iter().for_each(|file| file.read_exact_at(&mut [0; 1 << 12], page << 12).unwrap());
            }
            cache.take_in();
            let pending = std::mem::take(&mut *cache.pending.borrow_mut());
            (pending.pages.len(), pending.events)
        };
        let own = || [std::process::id() as i32].into_iter();
        cache.follow(own());
        let (pages, _) = read(&mut cache);
        assert!(pages > 100, "{pages} of 128");
        cache.pause();
        assert_eq!(read(&mut cache), (0, 0));
        cache.follow(own());
        let (pages, _) = read(&mut cache);
        assert!(pages > 100, "{pages} of 128");
    }
}
