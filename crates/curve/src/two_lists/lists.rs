//! The inactive and the active list, and what moves between them.

use std::ops::Range;

use super::list::List;

/// Reclaim scans lists by parts of them, the first one by 2^this.
const PRIORITY: u32 = 12;
/// Reclaim gives up so many pages at a time.
pub const CLUSTER: usize = 32;

/// Pages that have one place in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folio {
    /// The number of its file.
    pub file: u32,
    /// Its first page there.
    pub first: u64,
    /// How many it has.
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

/// The two lists (`mm/swap.c`, `mm/vmscan.c`, `mm/workingset.c`). Whoever has them says what is referenced, what comes in and how much
/// is to be reclaimed.
#[derive(Debug, Default)]
pub struct Lists {
    all: Vec<Listed>,
    free: Vec<u32>,
    inactive: List,
    active: List,
    /// Pages reclaimed and activated so far.
    age: u64,
    /// Pages that came back to the active list at once: now, and when there was reclaim last.
    restored: u64,
    restored_before: u64,
}

impl Lists {
    /// Pages of all folios.
    pub fn pages(&self) -> usize {
        self.inactive.pages() + self.active.pages()
    }

    /// A folio comes in; its number, until it is reclaimed. `since`: the age at which it was reclaimed, if it was. O(1).
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

    /// A folio that is there is referenced. O(1).
    pub fn access(&mut self, number: u32) {
        let Listed { is_active, was_accessed, .. } = self.all[number as usize];
        if was_accessed && !is_active {
            self.activate(number);
        }
        self.all[number as usize].was_accessed = !was_accessed || is_active;
    }

    /// A folio is gone by itself. O(1).
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

    /// Reclaims so many pages at least, or all; `reclaimed` is given each folio, and the age then. Linear in what is reclaimed and moved.
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

    /// Moves so many pages at least from the end of the active list to the inactive one.
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

    /// Reclaims so many pages at least from the end of the inactive list.
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
