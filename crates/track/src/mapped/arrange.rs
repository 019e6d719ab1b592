//! In which order the pages that a scan found were referenced.
//!
//! A scan shows which pages were referenced since the last, not in which order. If pairs of pages that two scans told apart mostly keep
//! their order, as in a loop, or if no such pair was seen, pages are taken to be referenced in the order of their last references: in
//! a loop that is the true order, and in no program is a distance taken for shorter than it can be. Pages that were never seen
//! come first, in the order of the file. If pairs keep their order no more often than by chance, the order is drawn by chance.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::pages::choice::mix;
use crate::pages::order::Order;

/// A page: number of its file, and its number in the file.
pub type Page = (u32, u64);

/// A page that is mapped, and whether its Accessed bit is set.
pub type Present = (Page, bool);

/// Pairs that must be seen before the order is believed to be by chance, as a part of the square of all pages, and the share
/// that keeps its order then.
const ENOUGH_PAIRS: f64 = 1.0 / 16.0;
const BY_CHANCE: f64 = 0.75;

/// When pages were found accessed.
#[derive(Debug, Default)]
pub struct Arranger {
    last: HashMap<Page, Seen, RandomState>,
    order: Order,
    scan: u64,
    place: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    scan: u64,
    place: u64,
}

impl Arranger {
    /// Puts the pages that were referenced since the last scan into order, a page of several processes once. A page that was never seen
    /// has come since, and was referenced, whatever its bit says.
    pub fn arrange(&mut self, mut present: Vec<Present>) -> Vec<Page> {
        present.sort_unstable();
        present.reverse();
        present.dedup_by_key(|(page, _)| *page);
        self.scan += 1;
        let mut arranged: Vec<(Option<Seen>, Page)> = present
            .into_iter()
            .rev()
            .map(|(page, is_accessed)| (self.last.get(&page).copied(), page, is_accessed))
            .filter(|(seen, _, is_accessed)| *is_accessed || seen.is_none())
            .map(|(seen, page, _)| (seen, page))
            .collect();
        // Stable: what was never seen stays in the order of the file.
        arranged.sort_by_key(|(seen, _)| seen.map(|seen| seen.place));
        let seen: Vec<u64> = arranged.iter().filter_map(|(seen, _)| seen.map(|seen| seen.scan)).collect();
        // A scan that finds most pages says nothing of their order.
        let groups = match 2 * seen.len() < self.last.len() {
            true => seen.chunk_by(|one, other| one == other).map(|group| (group[0], group.len() as u32)).collect(),
            false => Vec::new(),
        };
        self.order.see(self.scan, groups);
        if self.order.pairs() > ENOUGH_PAIRS * (self.last.len() as f64).powi(2) && self.order.kept() < BY_CHANCE {
            let scan = self.scan;
            arranged.sort_by_key(|(_, (file, page))| mix(page ^ mix(u64::from(*file) ^ scan << 32)));
        }
        let Arranger { last, scan, place, .. } = self;
        arranged
            .into_iter()
            .map(|(_, page)| {
                *place += 1;
                last.insert(page, Seen { scan: *scan, place: *place });
                page
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u64 = 1000;

    fn found(from: u64, count: u64) -> Vec<Page> {
        (from..from + count).map(|page| (0, page % PAGES)).collect()
    }

    fn accessed(pages: Vec<Page>) -> Vec<Present> {
        pages.into_iter().map(|page| (page, true)).collect()
    }

    #[test]
    fn a_loop_is_in_its_own_order_wherever_scans_cut_it() {
        for count in [90, 310, 770, 1000, 1700] {
            let mut arranger = Arranger::default();
            let scans: Vec<_> = (0..100).map(|scan| arranger.arrange(accessed(found(scan * count, count)))).collect();
            let whole = scans.iter().map(|scan| scan.len() as u64);
            assert!(whole.eq((0..100).map(|_| count.min(PAGES))), "{count}");
            let pages: Vec<u64> = scans.concat().into_iter().map(|(_, page)| page).collect();
            let breaks = pages.windows(2).filter(|pair| pair[1] != (pair[0] + 1) % PAGES).count();
            assert_eq!(breaks, 0, "{count}");
        }
    }

    #[test]
    fn a_page_counts_once_and_what_is_new_was_referenced() {
        let mut arranger = Arranger::default();
        let present = vec![((1, 5), false), ((0, 7), true), ((1, 5), true), ((0, 3), false)];
        assert_eq!(arranger.arrange(present), [(0, 3), (0, 7), (1, 5)]);
        let present = vec![((0, 7), false), ((1, 5), false), ((0, 3), true), ((0, 4), true), ((1, 5), true)];
        assert_eq!(arranger.arrange(present), [(0, 4), (0, 3), (1, 5)]);
    }

    #[test]
    fn pages_without_order_are_put_in_an_order_by_chance() {
        let mut arranger = Arranger::default();
        for scan in 0..200 {
            arranger.arrange((0..100).map(|at| ((0, mix(scan * 100 + at) % PAGES), true)).collect());
        }
        let again = arranger.arrange(accessed(found(0, PAGES)));
        let rising = again.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&rising), "{rising} of 999");
    }
}
