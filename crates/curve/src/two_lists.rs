//! Linux's page cache under a limit: an inactive and an active list instead of one LRU stack.
//!
//! After the kernel's `mm/vmscan.c` and `mm/workingset.c`, for pages that are only read. A page enters the inactive
//! list. Read a second time there, it moves to the active list. Reclaim takes the end of the inactive list. A page that
//! returns before as many pages were reclaimed or activated as the active list is long enters the active list at once.
//! The active list gives up its end if it is the longer list and, in proportion, as long as pages return in this way.
//! Pages read in order are read ahead together, in folios, which have one place for all their pages; reading on in the
//! same folio is one access.
//!
//! So some pages are kept that an LRU stack of that size would have lost, and others are lost because readahead brings
//! pages that are not read before they are reclaimed. There is no curve for all sizes: each limit is a simulation of
//! its own.

mod list;
mod lists;

pub use lists::{CLUSTER, Folio, Lists};

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Pages read together when a file is read in order (the device's `read_ahead_kb`).
    pub ahead: u32,
    /// Maximum pages of a folio, a power of two: 1 if the file system has no large folios.
    pub folio: u32,
}

/// Pages of one file under a limit.
#[derive(Debug)]
pub struct TwoLists {
    limit: usize,
    reading: Reading,
    /// By page.
    pages: Vec<Page>,
    lists: Lists,
    read: u64,
    read_again: u64,
    last: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Page {
    #[default]
    Never,
    /// Cached, in this folio.
    Here(u32),
    /// Reclaimed at this age.
    Reclaimed(u64),
}

impl TwoLists {
    /// A limit that leaves room for this many file pages.
    pub fn new(limit: usize, reading: Reading) -> TwoLists {
        TwoLists {
            limit: limit.max(CLUSTER),
            reading,
            pages: Vec::new(),
            lists: Lists::default(),
            read: 0,
            read_again: 0,
            last: None,
        }
    }

    /// The program reads a page of a file that has `of` pages. Takes O(1), plus reclaim if the page is not cached.
    pub fn access(&mut self, page: u32, of: u32) {
        if self.pages.len() < of.max(page + 1) as usize {
            self.pages.resize(of.max(page + 1) as usize, Page::Never);
        }
        if self.folio(page).is_none() {
            self.fetch(page);
        }
        let Some(folio) = self.folio(page) else { return };
        // The kernel marks a folio only once while a file is read on within it.
        let goes_on = self.last.and_then(|last| self.folio(last)) == Some(folio);
        self.last = Some(page);
        if !goes_on {
            self.lists.access(folio);
        }
    }

    /// Pages read from the device.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Number of these that had been reclaimed before: the kernel's refaults.
    pub fn read_again(&self) -> u64 {
        self.read_again
    }

    fn folio(&self, page: u32) -> Option<u32> {
        match self.pages[page as usize] {
            Page::Here(folio) => Some(folio),
            _ => None,
        }
    }

    fn is_absent(&self, pages: std::ops::Range<u32>) -> bool {
        pages.end as usize <= self.pages.len() && pages.into_iter().all(|page| self.folio(page).is_none())
    }

    /// Reads a page from the device, and the pages after it if the file is read in order.
    fn fetch(&mut self, page: u32) {
        let is_in_order = self.last.is_some_and(|last| last + 1 == page);
        let end = page + if is_in_order { self.reading.ahead.max(1) } else { 1 };
        let mut at = page;
        while at < end.min(self.pages.len() as u32) {
            if self.folio(at).is_some() {
                at += 1;
                continue;
            }
            let mut pages = 1;
            while pages < self.reading.folio
                && at % (2 * pages) == 0
                && at + 2 * pages <= end
                && self.is_absent(at..at + 2 * pages)
            {
                pages *= 2;
            }
            self.insert(at, pages);
            at += pages;
        }
        // Pages read ahead may have pushed it out already.
        if self.folio(page).is_none() {
            self.insert(page, 1);
        }
    }

    fn insert(&mut self, first: u32, pages: u32) {
        let over = (self.lists.pages() + pages as usize).saturating_sub(self.limit);
        if over > 0 {
            let all = &mut self.pages;
            self.lists.reclaim(over.max(CLUSTER), &mut |folio, age| {
                folio.range().for_each(|page| all[page as usize] = Page::Reclaimed(age));
            });
        }
        let mut since = None;
        for page in &self.pages[first as usize..(first + pages) as usize] {
            if let Page::Reclaimed(age) = *page {
                self.read_again += 1;
                since = Some(age);
            }
        }
        let number = self.lists.insert(Folio { file: 0, first: first.into(), pages }, since);
        self.pages[first as usize..(first + pages) as usize].fill(Page::Here(number));
        self.read += u64::from(pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Reading = Reading { ahead: 1, folio: 1 };

    fn read_again(limit: usize, reading: Reading, file: u32, pages: impl IntoIterator<Item = u32>) -> u64 {
        let mut lists = TwoLists::new(limit, reading);
        pages.into_iter().for_each(|page| lists.access(page, file));
        lists.read_again()
    }

    fn rounds(file: u32, count: usize) -> impl Iterator<Item = u32> {
        (0..count).flat_map(move |_| 0..file)
    }

    #[test]
    fn a_file_that_fits_is_read_once() {
        assert_eq!(read_again(2000, SMALL, 1900, rounds(1900, 5)), 0);
    }

    #[test]
    fn a_loop_that_does_not_fit_keeps_nothing() {
        // Each page is read once before it is reclaimed. So the active list stays empty, and no page returns soon
        // enough.
        assert_eq!(read_again(1000, SMALL, 2000, rounds(2000, 4)), 3 * 2000);
    }

    #[test]
    fn pages_read_twice_survive_scans() {
        let hot = || (0..100).chain(0..100);
        let scan = (0..10).flat_map(|_| hot().chain(500..3000));
        let mut lists = TwoLists::new(1000, SMALL);
        scan.for_each(|page| lists.access(page, 3000));
        assert_eq!(lists.read(), 100 + 10 * 2500, "the hundred are read once");
    }

    #[test]
    fn readahead_pages_and_folios_age_together() {
        let reading = Reading { ahead: 64, folio: 16 };
        let mut lists = TwoLists::new(4000, reading);
        rounds(2048, 3).for_each(|page| lists.access(page, 2048));
        assert_eq!((lists.read(), lists.read_again()), (2048, 0));
        // From page 1 on 64 at a time: 1, 2 to 3, 4 to 7, 8 to 15, three of 16, and one.
        let folios: std::collections::HashSet<_> = (0..2048).map(|page| lists.folio(page)).collect();
        assert!(folios.len() <= 2048 / 64 * 8 + 1, "{}", folios.len());
    }

    #[test]
    fn every_page_is_in_one_place() {
        let mut state = 1u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % end
        };
        for reading in [SMALL, Reading { ahead: 32, folio: 8 }, Reading { ahead: 512, folio: 512 }] {
            let mut lists = TwoLists::new(700, reading);
            let mut distinct = std::collections::HashSet::new();
            for _ in 0..3000 {
                let first = below(5000) as u32;
                for page in first..(first + 1 + below(40) as u32).min(5000) {
                    lists.access(page, 5000);
                    distinct.insert(page);
                    assert!(lists.folio(page).is_some());
                }
                let here = (0..5000).filter(|page| lists.folio(*page).is_some()).count();
                assert_eq!(here, lists.lists.pages());
                assert!(here <= 700 + reading.folio as usize, "{here}");
            }
            assert!(lists.read() - lists.read_again() >= distinct.len() as u64);
        }
    }
}
