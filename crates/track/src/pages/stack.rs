//! The LRU stack of sampled pages. Pages found by the same scan have the same place.
//!
//! Old scans are merged as long as they hold few pages, so that the stack's size depends on its precision and not on
//! time.

/// Merged scans hold at most this part (1/1024) of all pages.
const FINENESS: u64 = 1024;
/// Number of scans kept before the first merge.
const MAX_SCANS: usize = 4096;

/// Pages by the last scan that found them accessed. Every operation is O(log of the scans kept), except merging.
#[derive(Debug, Default)]
pub struct Stack {
    /// Oldest first.
    scans: Vec<Scan>,
    /// Fenwick tree (1994) of their pages.
    tree: Vec<u64>,
    pages: u64,
}

#[derive(Clone, Copy, Debug)]
struct Scan {
    /// The first of the scans merged here.
    first: u64,
    pages: u64,
}

impl Stack {
    /// Number of all pages on the stack.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Adds pages found by a scan. A scan older than all on the stack counts as the oldest.
    pub fn add(&mut self, scan: u64, pages: u64) {
        if self.scans.last().is_none_or(|last| last.first < scan) {
            if self.scans.len() >= MAX_SCANS {
                self.merge();
            }
            self.scans.push(Scan { first: scan, pages: 0 });
            self.tree.resize(MAX_SCANS + 1, 0);
        }
        if let Some(at) = self.find(scan) {
            self.scans[at].pages += pages;
            self.pages += pages;
            up(at).for_each(|at| self.tree[at] += pages);
        }
    }

    /// Removes pages that this scan found last.
    pub fn remove(&mut self, scan: u64, pages: u64) {
        if let Some(at) = self.find(scan) {
            let pages = pages.min(self.scans[at].pages);
            self.scans[at].pages -= pages;
            self.pages -= pages;
            up(at).for_each(|at| self.tree[at] -= pages);
        }
    }

    /// Starts again with these pages, as (scan, number of pages).
    pub fn rebuild(&mut self, mut pages: Vec<(u64, u64)>) {
        pages.sort_unstable();
        *self = Stack::default();
        pages.iter().for_each(|(scan, pages)| self.add(*scan, *pages));
    }

    /// Pages found by later scans than this one, and by this one.
    pub fn above(&self, scan: u64) -> (u64, u64) {
        self.find(scan).map_or((self.pages, 0), |at| {
            let down = std::iter::successors(Some(at + 1), |at| Some(at & (at - 1)).filter(|at| *at > 0));
            let older: u64 = down.map(|at| self.tree[at]).sum();
            (self.pages - older, self.scans[at].pages)
        })
    }

    fn find(&self, scan: u64) -> Option<usize> {
        let after = self.scans.partition_point(|merged| merged.first <= scan);
        (!self.scans.is_empty()).then(|| after.saturating_sub(1))
    }

    fn merge(&mut self) {
        // Afterwards any two neighbours hold more than this, so at most half of the scans are left.
        let most = self.pages / FINENESS;
        let mut merged: Vec<Scan> = Vec::with_capacity(MAX_SCANS);
        for scan in self.scans.drain(..) {
            match merged.last_mut() {
                Some(last) if last.pages + scan.pages <= most => last.pages += scan.pages,
                _ => merged.push(scan),
            }
        }
        self.scans = merged;
        self.tree.fill(0);
        for (at, scan) in self.scans.iter().enumerate() {
            up(at).for_each(|at| self.tree[at] += scan.pages);
        }
    }
}

/// Nodes of the tree that include the scan at this index.
fn up(at: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(at + 1), |at| Some(at + (at & at.wrapping_neg()))).take_while(|at| *at <= MAX_SCANS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_above_were_found_by_later_scans() {
        let mut stack = Stack::default();
        stack.rebuild(vec![(3, 10), (1, 5), (2, 1), (3, 2)]);
        assert_eq!((stack.above(1), stack.above(2), stack.above(3)), ((13, 5), (12, 1), (0, 12)));
        stack.remove(2, 1);
        stack.add(4, 1);
        assert_eq!((stack.above(1), stack.above(4), stack.pages()), ((13, 5), (0, 1), 18));
    }

    #[test]
    fn a_reserved_place_is_not_merged_with_older_scans() {
        let mut stack = Stack::default();
        stack.rebuild(vec![(1, 100), (5, 0), (7, 10)]);
        stack.add(5, 1);
        assert_eq!((stack.above(5), stack.above(1)), ((10, 1), (11, 100)));
    }

    #[test]
    fn size_depends_on_precision_and_not_on_time() {
        let mut stack = Stack::default();
        for scan in 0..100_000 {
            stack.add(scan, 3);
            if scan >= 10_000 {
                stack.remove(scan - 10_000, 3);
            }
        }
        assert!(stack.scans.len() <= MAX_SCANS + 1);
        assert_eq!(stack.pages(), 30_000);
        let (above, _) = stack.above(95_000);
        assert!((14_900..=15_000).contains(&above), "{above}");
    }
}
