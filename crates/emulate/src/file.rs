//! A file of the job: its pages, as the lists have them, and as the page cache does.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use linux::{cache, procfs};

/// So many pages that were to be dropped before, on each side, are dropped again with others: a large folio goes as a whole.
const FOLIO_PAGES: usize = 512;

/// Where a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Page {
    /// It was not referenced yet.
    #[default]
    Never,
    /// In the lists, as this folio.
    Here(u32),
    /// Dropped at this age of the lists.
    Dropped(u64),
    /// Mapped: it is there until nobody maps it.
    Mapped,
    /// Of a file that could not be opened.
    OutOfReach,
}

/// A file that the job references.
#[derive(Debug, Default)]
pub struct Referenced {
    /// By which it is dropped; `None`: it cannot be opened, or has no name any more.
    open: Option<File>,
    /// The pages, by their number.
    pub pages: Vec<Page>,
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

    /// Makes room for a page.
    pub fn extend_to(&mut self, page: usize) {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, Page::Never);
        }
    }

    /// The page is mapped; whether it was not before.
    pub fn map(&mut self, page: usize) -> bool {
        std::mem::replace(&mut self.pages[page], Page::Mapped) != Page::Mapped
    }

    /// Opens it as a process of the job has it, if that is still this file.
    pub fn open(&mut self, inode: u64, pid: i32, descriptor: i32) {
        let path = format!("/proc/{pid}/fd/{descriptor}");
        let is_it = |path: &str| fs::metadata(path).is_ok_and(|found| found.is_file() && found.ino() == inode);
        if self.open.is_none() && is_it(&path) {
            self.open = File::open(&path).ok().filter(|file| file.metadata().is_ok_and(|found| found.ino() == inode));
        }
    }

    /// Counts its pages in the page cache. Of a file of others, which may not be counted, those that were referenced and not dropped:
    /// what was read ahead is missing. A file without a name is let go: it would be kept from being removed.
    pub fn count(&mut self) -> u64 {
        let Some(file) = &self.open else { return 0 };
        if file.metadata().is_ok_and(|found| found.nlink() == 0) {
            self.open = None;
            return 0;
        }
        cache::cached_pages(file).unwrap_or(self.listed)
    }

    /// Drops all its pages.
    pub fn drop_all(&self) {
        if let Some(file) = &self.open {
            let end = self.pages.len() as u64 * procfs::page_bytes();
            let end = file.metadata().map_or(end, |found| end.max(found.len()));
            self.drop_bytes(file, 0..end);
        }
    }

    /// Drops these pages, with their neighbours that were to be dropped before.
    pub fn drop_pages(&self, pages: Range<usize>) {
        let Some(file) = &self.open else { return };
        let is_dropped = |page: &&Page| matches!(page, Page::Dropped(_));
        let before = self.pages[..pages.start].iter().rev().take(FOLIO_PAGES).take_while(is_dropped).count();
        let after = self.pages[pages.end..].iter().take(FOLIO_PAGES).take_while(is_dropped).count();
        let page = procfs::page_bytes();
        self.drop_bytes(file, (pages.start - before) as u64 * page..(pages.end + after) as u64 * page);
    }

    fn drop_bytes(&self, file: &File, bytes: Range<u64>) {
        if self.is_written {
            // What cannot be written back stays, and is counted.
            let _ = cache::write_back(file, bytes.clone(), true);
        }
        let _ = cache::drop_range(file, bytes);
    }
}
