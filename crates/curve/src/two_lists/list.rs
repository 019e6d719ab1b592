//! A list of folios, the last pushed first; any folio can be removed in O(1).

const NONE: u32 = u32::MAX;

/// Folios by number, each in at most one list.
#[derive(Debug)]
pub struct List {
    /// By folio: (folio pushed after it, folio pushed before it).
    links: Vec<(u32, u32)>,
    first: u32,
    last: u32,
    pages: usize,
}

impl Default for List {
    fn default() -> List {
        List { links: Vec::new(), first: NONE, last: NONE, pages: 0 }
    }
}

impl List {
    /// Pages of all its folios.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// The folio pushed before all others.
    pub fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// Adds a folio of this many pages, which must not be in the list.
    pub fn push(&mut self, folio: u32, pages: u32) {
        let at = folio as usize;
        if self.links.len() <= at {
            self.links.resize(at + 1, (NONE, NONE));
        }
        self.links[at] = (NONE, self.first);
        match self.first {
            NONE => self.last = folio,
            first => self.links[first as usize].0 = folio,
        }
        self.first = folio;
        self.pages += pages as usize;
    }

    /// Removes a folio of this many pages, which must be in the list.
    pub fn remove(&mut self, folio: u32, pages: u32) {
        let (after, before) = self.links[folio as usize];
        match after {
            NONE => self.first = before,
            after => self.links[after as usize].1 = before,
        }
        match before {
            NONE => self.last = after,
            before => self.links[before as usize].0 = after,
        }
        self.pages -= pages as usize;
    }
}
