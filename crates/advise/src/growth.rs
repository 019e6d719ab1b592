//! How much larger huge pages may make a program's memory: memory that it has freed must not come back through them.

use crate::range::PAGES_PER_HUGE;

/// Allowed growth: this part (1/10) of the program's own memory.
const MAX_GROWTH_PART: u64 = 10;

/// Pages of one process that exist only because of huge pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    pages: u64,
}

impl Growth {
    /// Whether a region with `present_pages` may become a huge page, in a process with `anonymous_pages` in all.
    pub fn allows(self, present_pages: u64, anonymous_pages: u64) -> bool {
        let own = anonymous_pages.saturating_sub(self.pages);
        self.pages + more(present_pages) <= own / MAX_GROWTH_PART
    }

    /// Notes that the region became a huge page.
    pub fn promoted(&mut self, present_pages: u64) {
        self.pages += more(present_pages);
    }

    /// Notes that a huge page was split and `zero_pages` of it were freed.
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
        assert!(growth.allows(PAGES_PER_HUGE, anonymous), "a full region costs nothing");
        assert!(!growth.allows(present, anonymous));
        growth.demoted(480);
        assert!(growth.allows(present, anonymous - 480));
    }
}
