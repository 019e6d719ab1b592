//! How much larger a program's memory may become by huge pages: what it gave back must not come again.

use crate::range::PAGES_PER_HUGE;

/// A part of what the program has by itself.
const MOST: u64 = 10;

/// Of one process: pages that huge pages have brought and nobody had.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    pages: u64,
}

impl Growth {
    /// Whether a region of which so many pages are there may become a huge page, where the process has so many pages of
    /// anonymous memory in all.
    pub fn allows(self, present_pages: u64, anonymous_pages: u64) -> bool {
        let own = anonymous_pages.saturating_sub(self.pages);
        self.pages + more(present_pages) <= own / MOST
    }

    /// It became one.
    pub fn promoted(&mut self, present_pages: u64) {
        self.pages += more(present_pages);
    }

    /// A huge page was split, and so many zero pages of it given back.
    pub fn demoted(&mut self, zero_pages: u64) {
        self.pages = self.pages.saturating_sub(zero_pages);
    }
}

fn more(present_pages: u64) -> u64 {
    PAGES_PER_HUGE.saturating_sub(present_pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_becomes_at_most_a_tenth_larger() {
        // 512 regions of which a sixteenth is left.
        let (regions, present) = (512, 32);
        let own = regions * present;
        let mut growth = Growth::default();
        let mut anonymous = own;
        let promoted = (0..regions).filter(|_| {
            let is_allowed = growth.allows(present, anonymous);
            if is_allowed {
                growth.promoted(present);
                anonymous += PAGES_PER_HUGE - present;
            }
            is_allowed
        });
        assert_eq!(promoted.count(), 3);
        assert!(anonymous <= own + own / 10);
        assert!(growth.allows(PAGES_PER_HUGE, anonymous), "what is full costs nothing");
        assert!(!growth.allows(present, anonymous));
        growth.demoted(480);
        assert!(growth.allows(present, anonymous - 480));
    }
}
