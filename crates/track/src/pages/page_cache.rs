//! Pages of files that are read and written: the page cache's part of what a program needs.
//!
//! The tracepoints of the page cache tell every read and write, so nothing is looked at or cleared. What is mapped is left out: its
//! pages have Accessed bits. So that all stand on one stack, a page counts once from look to look here, too, and only pages
//! chosen by hash are kept.

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

/// Pages that are kept; beyond, one of twice as many.
const MOST_PAGES: usize = 4096;
/// Files have no more pages than this many bits; the others tell files apart.
const PAGE_BITS: u32 = 34;
/// What an event takes the program: what `bpf_stats_enabled` said of those of a compile, about.
const EVENT_SECONDS: f64 = 0.3e-6;

/// The reader of the tracepoints, and the pages they told of.
pub struct PageCache {
    observer: Observer<'static>,
    follower: Follower,
    followed: BTreeSet<i32>,
    told: Rc<RefCell<Told>>,
    places: HashMap<u64, Seen, RandomState>,
    /// More than the machine has is not worth knowing.
    most_depth: u64,
    lost: u64,
}

/// When a page was referenced last.
#[derive(Clone, Copy)]
pub struct Seen {
    /// By look.
    pub look: u64,
    /// Since tracking began.
    pub ns: u64,
}

/// What the tracepoints told since the last look.
#[derive(Default)]
struct Told {
    level: u32,
    pages: HashSet<u64, RandomState>,
    events: u64,
}

impl Told {
    fn take(&mut self, event: Event<'_>) {
        self.events += 1;
        if let Event::Reference { file, first, pages, kind: ReferenceKind::Read | ReferenceKind::Write, .. } = event {
            let first = number(file, first);
            self.pages.extend(chosen_within(first, first + u64::from(pages), self.level));
        }
    }
}

impl PageCache {
    /// Begins to listen; to no process yet.
    ///
    /// # Errors
    /// Why reads and writes cannot be seen.
    pub fn listen() -> Result<PageCache, Error> {
        let programs = Programs::load(Rung::Filemap)?;
        let follower = programs.follower()?;
        let told = Rc::new(RefCell::new(Told::default()));
        let sink = Rc::clone(&told);
        let observer = programs.observe(move |event| sink.borrow_mut().take(event))?;
        let memory = procfs::meminfo().map_or(u64::MAX, |info| info.total);
        Ok(PageCache {
            observer,
            follower,
            followed: BTreeSet::new(),
            told,
            places: HashMap::default(),
            most_depth: memory / procfs::page_bytes(),
            lost: 0,
        })
    }

    /// The rung of the ladder that tells.
    pub fn rung(&self) -> Rung {
        self.observer.rung()
    }

    /// Listens to these processes, and to what they fork.
    pub fn follow(&mut self, living: impl Iterator<Item = i32>) {
        if let Err(error) = self.observer.resume() {
            tracing::warn!("{error}");
        }
        let living: BTreeSet<i32> = living.collect();
        for pid in living.difference(&self.followed) {
            // One that cannot be is not seen to read; the others are.
            let _ = self.follower.follow(*pid);
        }
        self.followed = living;
    }

    /// Takes in what was told, before there is no room for more. Gives what telling took the program, in seconds.
    pub fn take_in(&mut self) -> f64 {
        if let Err(error) = self.observer.poll(Duration::ZERO) {
            tracing::warn!("{error}");
        }
        std::mem::take(&mut self.told.borrow_mut().events) as f64 * EVENT_SECONDS
    }

    /// The pages referenced since the last look, with when they were before. From now on this look has seen them.
    pub fn referenced(&mut self, now: Seen) -> Vec<Option<Seen>> {
        self.told.borrow_mut().pages.drain().map(|page| self.places.insert(page, now)).collect()
    }

    /// Listens to nobody, and costs nobody anything, until processes are [followed](PageCache::follow) anew.
    pub fn pause(&mut self) {
        if let Err(error) = self.observer.pause() {
            tracing::warn!("{error}");
        }
        self.followed.clear();
    }

    /// Forgets what was told since the last look.
    pub fn skip(&mut self) {
        self.take_in();
        self.told.borrow_mut().pages.clear();
    }

    /// Events that found no room since the last call.
    pub fn lost(&mut self) -> u64 {
        let lost = self.observer.lost_events().unwrap_or(self.lost);
        lost - std::mem::replace(&mut self.lost, lost).min(lost)
    }

    /// How many pages each that is kept stands for.
    pub fn weight(&self) -> u64 {
        1 << self.told.borrow().level
    }

    /// When each page that is kept was referenced last.
    pub fn seen(&self) -> impl Iterator<Item = Seen> {
        self.places.values().copied()
    }

    /// All that are known, in pages.
    pub fn pages(&self) -> u64 {
        self.places.len() as u64 * self.weight()
    }

    /// Keeps fewer if there are too many; then the stack must be made anew.
    pub fn thin_out(&mut self, stack: &Stack) -> bool {
        if self.places.len() <= MOST_PAGES {
            return false;
        }
        self.places.retain(|_, seen| stack.above(seen.look).0 <= self.most_depth);
        let mut told = self.told.borrow_mut();
        while self.places.len() > MOST_PAGES {
            told.level += 1;
            let level = told.level;
            let stays = |page: u64| chosen(page >> level, level) == page;
            self.places.retain(|page, _| stays(*page));
            told.pages.retain(|page| stays(*page));
        }
        true
    }
}

/// A page of a file as one of all pages of all files.
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
    fn small_files_are_in_the_sample_as_often_as_their_share() {
        let mut told = Told { level: 6, ..Told::default() };
        (0..64_000).for_each(|inode| told.take(read(inode, 0, 2, ReferenceKind::Read)));
        let stands_for = told.pages.len() * 64;
        assert!((115_000..=141_000).contains(&stands_for), "{stands_for} of 128000 pages");
    }

    #[test]
    fn of_a_large_file_the_share_is_exact_and_what_is_mapped_is_left_out() {
        let mut told = Told { level: 5, ..Told::default() };
        told.take(read(7, 0, 1 << 16, ReferenceKind::Write));
        told.take(read(8, 0, 1 << 16, ReferenceKind::Fault));
        assert_eq!(told.pages.len(), 1 << 11);
        assert_eq!(told.events, 2);
    }

    #[test]
    fn while_it_pauses_nothing_is_told_and_afterwards_all_is() {
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
            let told = std::mem::take(&mut *cache.told.borrow_mut());
            (told.pages.len(), told.events)
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
