//! The inactive and the active list, and the moves between them.

use std::ops::Range;

use super::list::List;

/// Reclaim scans a part of the lists at a time, first one in 2^this.
const PRIORITY: u32 = 12;
/// Reclaim takes this many pages at a time.
pub const CLUSTER: usize = 32;

/// Pages that share one place in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folio {
    /// Number of its file.
    pub file: u32,
    /// Its first page in the file.
    pub first: u64,
    /// Number of pages.
    pub pages: u32,
}

impl Folio {
    /// Its pages.
    pub fn range(&self) -> Range<u64> {
        self.first..self.first + u64::from(self.pages)
    }
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    folio: Folio,
    is_active: bool,
    was_accessed: bool,
}

/// The two lists (`mm/swap.c`, `mm/vmscan.c`, `mm/workingset.c`). The owner reports references and new folios, and
/// requests reclaim.
#[derive(Debug, Default)]
pub struct Lists {
    all: Vec<Listed>,
    free: Vec<u32>,
    inactive: List,
    active: List,
    /// Number of pages reclaimed and activated so far.
    age: u64,
    /// Number of pages that returned to the active list at once: now, and at the last reclaim.
    restored: u64,
    restored_before: u64,
}

impl Lists {
    /// Pages of all folios.
    pub fn pages(&self) -> usize {
        self.inactive.pages() + self.active.pages()
    }

    /// Adds a folio and returns its number, valid until it is reclaimed. `since`: the age at which it was reclaimed
    /// before, if it was. O(1).
    pub fn insert(&mut self, folio: Folio, since: Option<u64>) -> u32 {
        let listed = Listed { folio, is_active: false, was_accessed: false };
        let number = self.free.pop().unwrap_or(self.all.len() as u32);
        match self.all.get_mut(number as usize) {
            Some(place) => *place = listed,
            None => self.all.push(listed),
        }
        self.inactive.push(number, folio.pages);
        if since.is_some_and(|since| self.age - since <= self.active.pages() as u64) {
            self.restored += u64::from(folio.pages);
            self.activate(number);
        }
        number
    }

    /// Notes a reference to a folio. O(1).
    pub fn access(&mut self, number: u32) {
        let Listed { is_active, was_accessed, .. } = self.all[number as usize];
        if was_accessed && !is_active {
            self.activate(number);
        }
        self.all[number as usize].was_accessed = !was_accessed || is_active;
    }

    /// Removes a folio that is gone without reclaim. O(1).
    pub fn remove(&mut self, number: u32) {
        let Listed { folio, is_active, .. } = self.all[number as usize];
        let list = if is_active { &mut self.active } else { &mut self.inactive };
        list.remove(number, folio.pages);
        self.free.push(number);
    }

    fn activate(&mut self, number: u32) {
        let listed = &mut self.all[number as usize];
        listed.is_active = true;
        let pages = listed.folio.pages;
        self.inactive.remove(number, pages);
        self.active.push(number, pages);
        self.age += u64::from(pages);
    }

    /// Reclaims at least this many pages, or all. Calls `reclaimed` for each folio with the age. Linear in the pages
    /// reclaimed and moved.
    pub fn reclaim(&mut self, pages: usize, reclaimed: &mut dyn FnMut(Folio, u64)) {
        let is_restoring = self.restored != self.restored_before;
        let mut got = 0;
        for priority in (0..=PRIORITY).rev() {
            let may_deactivate = is_restoring || self.inactive.pages() < self.active.pages();
            let mut of_inactive = self.inactive.pages() >> priority;
            let mut of_active = if may_deactivate { self.active.pages() >> priority } else { 0 };
            while of_inactive + of_active > 0 {
                of_active -= self.deactivate(of_active.min(CLUSTER)).min(of_active);
                let some = self.evict(of_inactive.min(CLUSTER), reclaimed);
                of_inactive -= some.min(of_inactive);
                got += some;
                if self.active.pages() == 0 {
                    of_active = 0;
                }
                if self.inactive.pages() == 0 {
                    of_inactive = 0;
                }
            }
            if got >= pages {
                break;
            }
        }
        self.restored_before = self.restored;
    }

    /// Moves at least this many pages from the end of the active list to the inactive one.
    fn deactivate(&mut self, pages: usize) -> usize {
        let mut moved = 0;
        while moved < pages {
            let Some(number) = self.active.last() else { break };
            let listed = &mut self.all[number as usize];
            listed.is_active = false;
            let pages = listed.folio.pages;
            self.active.remove(number, pages);
            self.inactive.push(number, pages);
            moved += pages as usize;
        }
        moved
    }

    /// Reclaims at least this many pages from the end of the inactive list.
    fn evict(&mut self, pages: usize, reclaimed: &mut dyn FnMut(Folio, u64)) -> usize {
        let mut got = 0;
        while got < pages {
            let Some(number) = self.inactive.last() else { break };
            let folio = self.all[number as usize].folio;
            self.inactive.remove(number, folio.pages);
            self.free.push(number);
            self.age += u64::from(folio.pages);
            reclaimed(folio, self.age);
            got += folio.pages as usize;
        }
        got
    }
}
