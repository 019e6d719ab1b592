//! A file of the job: its pages, as the lists have them, and as the page cache does.

use std::fs::{self, File, Metadata, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use linux::{cache, procfs};
use rustix::fs::OFlags;
use track::Opened;

use crate::pages::{Page, Pages};

/// So many pages that were to be dropped before, on each side, are dropped again with others: a large folio goes as a whole.
const FOLIO_PAGES: u64 = 512;

/// Where it can be opened, if it is still there.
#[derive(Debug)]
struct Place {
    inode: u64,
    path: Option<PathBuf>,
    /// As a process of the job has it, until that one closes it.
    of_job: PathBuf,
    /// A descriptor of it that is kept.
    kept: Option<File>,
}

impl Place {
    fn is_it(&self, found: &Metadata) -> bool {
        found.is_file() && found.ino() == self.inode
    }

    fn open(&self) -> Option<File> {
        let at = |path: &PathBuf| {
            // Its name may be another's by now, and its descriptor that of a pipe, on which others would wait.
            fs::metadata(path).ok().filter(|found| self.is_it(found))?;
            let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).ok()?;
            opened.metadata().is_ok_and(|found| self.is_it(&found)).then_some(opened)
        };
        self.path.as_ref().and_then(at).or_else(|| at(&self.of_job))
    }

    /// Does something with it open; `None` if it cannot be opened.
    fn with<R>(&self, act: impl FnOnce(&File) -> R) -> Option<R> {
        match &self.kept {
            Some(file) => Some(act(file)),
            None => self.open().as_ref().map(act),
        }
    }

    /// Whether it has no name any more, and that process has closed it.
    fn is_removed(&self) -> bool {
        self.kept.as_ref().is_some_and(|file| file.metadata().is_ok_and(|found| found.nlink() == 0))
            && !fs::metadata(&self.of_job).is_ok_and(|found| self.is_it(&found))
    }
}

/// A file that the job references.
#[derive(Debug, Default)]
pub struct Referenced {
    /// By which it is counted and dropped; `None`: it could not be opened, or was removed.
    place: Option<Place>,
    is_removed: bool,
    /// Its pages.
    pub pages: Pages,
    /// Whether any may be dirty.
    pub is_written: bool,
    /// Pages of it in the lists.
    pub listed: u64,
}

impl Referenced {
    /// Whether it can be counted and dropped.
    pub fn is_within_reach(&self) -> bool {
        self.place.is_some()
    }

    /// Whether a descriptor of it is kept.
    pub fn is_kept(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.kept.is_some())
    }

    /// Keeps no descriptor of it where its path is known: it is opened again when it is needed.
    pub fn let_go(&mut self) {
        if let Some(place) = self.place.as_mut().filter(|place| place.path.is_some()) {
            place.kept = None;
        }
    }

    /// The page is mapped; whether it was not before.
    pub fn map(&mut self, page: u64) -> bool {
        let before = std::mem::replace(self.pages.entry(page), Page::Mapped);
        self.listed -= u64::from(matches!(before, Page::Here(_)));
        before != Page::Mapped
    }

    /// The lists have reclaimed a page at this age. Whether it is to be dropped: one that was mapped since, or whose file was removed, is not.
    pub fn reclaim(&mut self, page: u64, age: u64) -> bool {
        let is_here = matches!(self.pages.get(page), Page::Here(_));
        if is_here {
            *self.pages.entry(page) = Page::Dropped(age);
            self.listed -= 1;
        }
        is_here
    }

    /// Pages of it are gone; what they were in the lists. Those that are mapped stay until nobody maps them.
    pub fn remove(&mut self, pages: Range<u64>) -> Vec<u32> {
        let mut folios = Vec::new();
        self.pages.for_each(pages, |page| {
            if let Page::Here(folio) = page {
                folios.push(*folio);
            }
            if *page != Page::Mapped {
                *page = Page::Never;
            }
        });
        self.listed -= folios.len() as u64;
        folios
    }

    /// A process of the job has opened it.
    pub fn open(&mut self, opened: Opened) {
        if self.is_removed || self.is_kept() {
            return;
        }
        let Opened { inode, pid, descriptor, path } = opened;
        let of_job = format!("/proc/{pid}/fd/{descriptor}").into();
        let mut place = Place { inode, path: path.map(Path::to_path_buf), of_job, kept: None };
        place.kept = place.open();
        if place.kept.is_some() {
            self.place = Some(place);
        }
    }

    /// Counts its pages in the page cache. Of a file of others, which may not be counted, those that were referenced and not dropped:
    /// what was read ahead is missing. A removed file that was closed is let go, for it would be kept on the storage: what others
    /// reference of it from then on is out of reach. So is one that cannot be opened any more, until it is opened again.
    pub fn count(&mut self) -> u64 {
        let Some(place) = &self.place else { return 0 };
        let is_removed = place.is_removed();
        match place.with(cache::cached_pages).filter(|_| !is_removed) {
            Some(pages) => pages.unwrap_or(self.listed),
            None => {
                *self = Referenced { is_removed, ..Referenced::default() };
                0
            }
        }
    }

    /// Drops all its pages.
    pub fn drop_all(&self) {
        self.drop(|file| 0..file.metadata().map_or(0, |found| found.len()));
    }

    /// Drops these pages, with their neighbours that were to be dropped before.
    pub fn drop_pages(&self, pages: Range<u64>) {
        let is_dropped = |page: &u64| matches!(self.pages.get(*page), Page::Dropped(_));
        let before = (pages.start.saturating_sub(FOLIO_PAGES)..pages.start).rev().take_while(is_dropped).count() as u64;
        let after = (pages.end..pages.end + FOLIO_PAGES).take_while(is_dropped).count() as u64;
        let page = procfs::page_bytes();
        self.drop(|_| (pages.start - before) * page..(pages.end + after) * page);
    }

    fn drop(&self, bytes: impl FnOnce(&File) -> Range<u64>) {
        let Some(place) = &self.place else { return };
        place.with(|file| {
            let bytes = bytes(file);
            if self.is_written {
                // What cannot be written back stays, and is counted.
                let _ = cache::write_back(file, bytes.clone(), true);
            }
            let _ = cache::drop_range(file, bytes);
        });
    }
}
