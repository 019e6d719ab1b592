//! The order in which the pages that a scan found were referenced.
//!
//! A scan shows which pages were referenced since the last scan, not their order. Bursar learns the order from pairs of
//! pages that two earlier scans put in order. If most pairs keep their order, as in a loop, or if no such pair was
//! found, pages are ordered by their previous references. In a loop that is the true order, and for any program a
//! distance is never underestimated. Pages found for the first time come first, in the order of the file. If pairs keep
//! their order no more often than by chance, the order is random.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::pages::choice::mix;
use crate::pages::order::Order;

/// A page: number of its file, and its number in the file.
pub type Page = (u32, u64);

/// A page that is mapped, and whether its Accessed bit is set.
pub type Present = (Page, bool);

/// The order is taken to be random if at least this many pairs were found, as a part of the square of all pages, and if
/// a smaller share of them keeps its order than this.
const MIN_PAIRS_PART: f64 = 1.0 / 16.0;
const MIN_SHARE_IN_ORDER: f64 = 0.75;

/// When pages were found accessed.
#[derive(Debug, Default)]
pub struct Arranger {
    last: HashMap<Page, LastAccess, RandomState>,
    order: Order,
    scan: u64,
    place: u64,
}

#[derive(Clone, Copy, Debug)]
struct LastAccess {
    scan: u64,
    place: u64,
}

impl Arranger {
    /// Orders the pages that were referenced since the last scan; a page of several processes counts once. A page that
    /// no scan has found before is new, so it was referenced, whatever its bit says.
    pub fn arrange(&mut self, mut present: Vec<Present>) -> Vec<Page> {
        present.sort_unstable();
        present.reverse();
        present.dedup_by_key(|(page, _)| *page);
        self.scan += 1;
        let mut arranged: Vec<(Option<LastAccess>, Page)> = present
            .into_iter()
            .rev()
            .map(|(page, is_accessed)| (self.last.get(&page).copied(), page, is_accessed))
            .filter(|(seen, _, is_accessed)| *is_accessed || seen.is_none())
            .map(|(seen, page, _)| (seen, page))
            .collect();
        // The sort is stable: new pages stay in the order of the file.
        arranged.sort_by_key(|(seen, _)| seen.map(|seen| seen.place));
        let seen: Vec<u64> = arranged.iter().filter_map(|(seen, _)| seen.map(|seen| seen.scan)).collect();
        // A scan that finds most pages accessed shows nothing about their order.
        let groups = match 2 * seen.len() < self.last.len() {
            true => seen.chunk_by(|one, other| one == other).map(|group| (group[0], group.len() as u32)).collect(),
            false => Vec::new(),
        };
        self.order.learn(self.scan, groups);
        if self.order.pairs() > MIN_PAIRS_PART * (self.last.len() as f64).powi(2)
            && self.order.kept() < MIN_SHARE_IN_ORDER
        {
            let scan = self.scan;
            arranged.sort_by_key(|(_, (file, page))| mix(page ^ mix(u64::from(*file) ^ scan << 32)));
        }
        let Arranger { last, scan, place, .. } = self;
        arranged
            .into_iter()
            .map(|(_, page)| {
                *place += 1;
                last.insert(page, LastAccess { scan: *scan, place: *place });
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
    fn a_loop_keeps_its_order_wherever_scans_cut_it() {
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
    fn a_page_counts_once_and_new_pages_were_referenced() {
        let mut arranger = Arranger::default();
        let present = vec![((1, 5), false), ((0, 7), true), ((1, 5), true), ((0, 3), false)];
        assert_eq!(arranger.arrange(present), [(0, 3), (0, 7), (1, 5)]);
        let present = vec![((0, 7), false), ((1, 5), false), ((0, 3), true), ((0, 4), true), ((1, 5), true)];
        assert_eq!(arranger.arrange(present), [(0, 4), (0, 3), (1, 5)]);
    }

    #[test]
    fn pages_without_order_get_a_random_order() {
        let mut arranger = Arranger::default();
        for scan in 0..200 {
            arranger.arrange((0..100).map(|at| ((0, mix(scan * 100 + at) % PAGES), true)).collect());
        }
        let again = arranger.arrange(accessed(found(0, PAGES)));
        let rising = again.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&rising), "{rising} of 999");
    }
}
