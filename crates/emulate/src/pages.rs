//! The pages of a file, by their number. In parts: a file may be referenced anywhere in it, and a process that notes references may say
//! anything.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

/// Pages of a part.
const PART: u64 = 512;

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
    parts: HashMap<u64, Box<[Page; PART as usize]>, RandomState>,
}

impl Pages {
    /// How many parts there are: 8 KiB each.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Whether its part is there.
    pub fn has_part_of(&self, page: u64) -> bool {
        self.parts.contains_key(&(page / PART))
    }

    /// Where a page is.
    pub fn get(&self, page: u64) -> Page {
        self.parts.get(&(page / PART)).map_or(Page::Never, |part| part[(page % PART) as usize])
    }

    /// Shows those of these pages whose parts are there.
    pub fn for_each(&mut self, pages: Range<u64>, mut see: impl FnMut(&mut Page)) {
        for (number, part) in &mut self.parts {
            let first = number * PART;
            let within = |page: u64| page.clamp(first, first + PART) - first;
            part[within(pages.start) as usize..within(pages.end) as usize].iter_mut().for_each(&mut see);
        }
    }

    /// The page, in a part that is made if it is not there.
    pub fn entry(&mut self, page: u64) -> &mut Page {
        let part = self.parts.entry(page / PART).or_insert_with(|| Box::new([Page::Never; PART as usize]));
        &mut part[(page % PART) as usize]
    }
}
