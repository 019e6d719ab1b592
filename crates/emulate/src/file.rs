//! A file of the job: its pages, as the lists have them, and as the page cache does.

use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use linux::{cache, procfs};
use rustix::fs::OFlags;

use crate::pages::{Page, Pages};

/// So many pages that were to be dropped before, on each side, are dropped again with others: a large folio goes as a whole.
const FOLIO_PAGES: u64 = 512;

/// By a descriptor of its own, and by that of the job's process through which it was opened.
#[derive(Debug)]
struct Open {
    own: File,
    of_job: String,
    inode: u64,
}

impl Open {
    /// Whether it has no name any more, and that process has closed it.
    fn is_gone(&self) -> bool {
        self.own.metadata().is_ok_and(|found| found.nlink() == 0)
            && !fs::metadata(&self.of_job).is_ok_and(|found| found.is_file() && found.ino() == self.inode)
    }
}

/// A file that the job references.
#[derive(Debug, Default)]
pub struct Referenced {
    /// By which it is dropped; `None`: it cannot be opened, or was removed.
    open: Option<Open>,
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
        self.open.is_some()
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

    /// Opens it as a process of the job has it, if that is still this file.
    pub fn open(&mut self, inode: u64, pid: i32, descriptor: i32) {
        let path = format!("/proc/{pid}/fd/{descriptor}");
        let is_it = |found: fs::Metadata| found.is_file() && found.ino() == inode;
        if self.open.is_none() && !self.is_removed && fs::metadata(&path).is_ok_and(is_it) {
            // The descriptor may be of a pipe by now, on which others would wait.
            let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path);
            let own = opened.ok().filter(|file| file.metadata().is_ok_and(is_it));
            self.open = own.map(|own| Open { own, of_job: path, inode });
        }
    }

    /// Counts its pages in the page cache. Of a file of others, which may not be counted, those that were referenced and not dropped:
    /// what was read ahead is missing. A removed file that was closed is let go, for it would be kept on the storage: what others
    /// reference of it from then on is out of reach.
    pub fn count(&mut self) -> u64 {
        let Some(open) = &self.open else { return 0 };
        if open.is_gone() {
            *self = Referenced { is_removed: true, ..Referenced::default() };
            return 0;
        }
        cache::cached_pages(&open.own).unwrap_or(self.listed)
    }

    /// Drops all its pages.
    pub fn drop_all(&self) {
        if let Some(Open { own, .. }) = &self.open {
            let end = own.metadata().map_or(0, |found| found.len());
            self.drop_bytes(own, 0..end);
        }
    }

    /// Drops these pages, with their neighbours that were to be dropped before.
    pub fn drop_pages(&self, pages: Range<u64>) {
        let Some(Open { own, .. }) = &self.open else { return };
        let is_dropped = |page: &u64| matches!(self.pages.get(*page), Page::Dropped(_));
        let before = (pages.start.saturating_sub(FOLIO_PAGES)..pages.start).rev().take_while(is_dropped).count() as u64;
        let after = (pages.end..pages.end + FOLIO_PAGES).take_while(is_dropped).count() as u64;
        let page = procfs::page_bytes();
        self.drop_bytes(own, (pages.start - before) * page..(pages.end + after) * page);
    }

    fn drop_bytes(&self, file: &File, bytes: Range<u64>) {
        if self.is_written {
            // What cannot be written back stays, and is counted.
            let _ = cache::write_back(file, bytes.clone(), true);
        }
        let _ = cache::drop_range(file, bytes);
    }
}
