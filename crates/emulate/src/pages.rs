//! The pages of a file, by their number. In parts: a file may be referenced anywhere in it, and a process that notes references may say
//! anything.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

/// The most pages of a part, and the fewest that it has room for: most files are small.
const PART: u64 = 512;
const LEAST: u64 = 8;

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
    /// Of a file that could not be opened, or was removed.
    OutOfReach,
}

/// All pages of a file.
#[derive(Debug, Default)]
pub struct Pages {
    parts: HashMap<u64, Vec<Page>, RandomState>,
}

impl Pages {
    /// Pages that it has room for, 16 bytes each.
    pub fn room(&self) -> usize {
        self.parts.values().map(Vec::len).sum()
    }

    /// How many more that would be with this page.
    pub fn room_for(&self, page: u64) -> usize {
        let now = self.parts.get(&(page / PART)).map_or(0, Vec::len);
        wanted(page).saturating_sub(now)
    }

    /// Where a page is.
    pub fn get(&self, page: u64) -> Page {
        self.parts.get(&(page / PART)).and_then(|part| part.get((page % PART) as usize)).copied().unwrap_or_default()
    }

    /// Shows those of these pages that it has room for.
    pub fn for_each(&mut self, pages: Range<u64>, mut see: impl FnMut(&mut Page)) {
        for (number, part) in &mut self.parts {
            let first = number * PART;
            let within = |page: u64| (page.clamp(first, first + PART) - first).min(part.len() as u64) as usize;
            let within = within(pages.start)..within(pages.end);
            part[within].iter_mut().for_each(&mut see);
        }
    }

    /// The page, for which room is made.
    pub fn entry(&mut self, page: u64) -> &mut Page {
        let part = self.parts.entry(page / PART).or_default();
        let room = wanted(page).max(part.len());
        part.resize(room, Page::Never);
        &mut part[(page % PART) as usize]
    }
}

/// How long its part has to be for this page.
fn wanted(page: u64) -> usize {
    (page % PART + 1).next_power_of_two().max(LEAST) as usize
}
