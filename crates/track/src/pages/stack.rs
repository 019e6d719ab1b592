//! The LRU stack of sampled pages, in which pages seen by the same look have the same place.
//!
//! What was seen by old looks is merged as long as it stays little, so that the stack's size follows its precision and not
//! the time.

/// Merged looks hold at most this part of all pages.
const FINENESS: u64 = 1024;
/// Looks that are kept apart before the first merge.
const MOST_LOOKS: usize = 4096;

/// Pages by the look that saw them last. All is O(log of the looks kept) but merging.
#[derive(Debug, Default)]
pub struct Stack {
    /// Oldest first.
    looks: Vec<Look>,
    /// Fenwick's tree (1994) of their pages.
    tree: Vec<u64>,
    pages: u64,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    /// The first look that is merged here.
    first: u64,
    pages: u64,
}

impl Stack {
    /// All pages on it.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Puts pages where a look saw them. A look that is older than all on the stack counts as the oldest.
    pub fn add(&mut self, look: u64, pages: u64) {
        if self.looks.last().is_none_or(|last| last.first < look) {
            if self.looks.len() >= MOST_LOOKS {
                self.merge();
            }
            self.looks.push(Look { first: look, pages: 0 });
            self.tree.resize(MOST_LOOKS + 1, 0);
        }
        if let Some(at) = self.find(look) {
            self.looks[at].pages += pages;
            self.pages += pages;
            up(at).for_each(|at| self.tree[at] += pages);
        }
    }

    /// Takes pages away that this look saw last.
    pub fn remove(&mut self, look: u64, pages: u64) {
        if let Some(at) = self.find(look) {
            let pages = pages.min(self.looks[at].pages);
            self.looks[at].pages -= pages;
            self.pages -= pages;
            up(at).for_each(|at| self.tree[at] -= pages);
        }
    }

    /// Begins anew with these pages, by look and number.
    pub fn rebuild(&mut self, mut pages: Vec<(u64, u64)>) {
        pages.sort_unstable();
        *self = Stack::default();
        pages.iter().for_each(|(look, pages)| self.add(*look, *pages));
    }

    /// Pages seen by later looks than this one, and by the same, itself included.
    pub fn above(&self, look: u64) -> (u64, u64) {
        self.find(look).map_or((self.pages, 0), |at| {
            let down = std::iter::successors(Some(at + 1), |at| Some(at & (at - 1)).filter(|at| *at > 0));
            let older: u64 = down.map(|at| self.tree[at]).sum();
            (self.pages - older, self.looks[at].pages)
        })
    }

    fn find(&self, look: u64) -> Option<usize> {
        let after = self.looks.partition_point(|merged| merged.first <= look);
        (!self.looks.is_empty()).then(|| after.saturating_sub(1))
    }

    fn merge(&mut self) {
        // Two neighbours hold more than this after it: not more than half of the looks are left.
        let most = self.pages / FINENESS;
        let mut merged: Vec<Look> = Vec::with_capacity(MOST_LOOKS);
        for look in self.looks.drain(..) {
            match merged.last_mut() {
                Some(last) if last.pages + look.pages <= most => last.pages += look.pages,
                _ => merged.push(look),
            }
        }
        self.looks = merged;
        self.tree.fill(0);
        for (at, look) in self.looks.iter().enumerate() {
            up(at).for_each(|at| self.tree[at] += look.pages);
        }
    }
}

/// Nodes of the tree that hold the look at this index.
fn up(at: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(at + 1), |at| Some(at + (at & at.wrapping_neg()))).take_while(|at| *at <= MOST_LOOKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_above_are_those_seen_later() {
        let mut stack = Stack::default();
        stack.rebuild(vec![(3, 10), (1, 5), (2, 1), (3, 2)]);
        assert_eq!((stack.above(1), stack.above(2), stack.above(3)), ((13, 5), (12, 1), (0, 12)));
        stack.remove(2, 1);
        stack.add(4, 1);
        assert_eq!((stack.above(1), stack.above(4), stack.pages()), ((13, 5), (0, 1), 18));
    }

    #[test]
    fn a_place_that_is_kept_is_not_among_what_was_seen_before() {
        let mut stack = Stack::default();
        stack.rebuild(vec![(1, 100), (5, 0), (7, 10)]);
        stack.add(5, 1);
        assert_eq!((stack.above(5), stack.above(1)), ((10, 1), (11, 100)));
    }

    #[test]
    fn its_size_follows_its_precision_and_not_the_time() {
        let mut stack = Stack::default();
        for look in 0..100_000 {
            stack.add(look, 3);
            if look >= 10_000 {
                stack.remove(look - 10_000, 3);
            }
        }
        assert!(stack.looks.len() <= MOST_LOOKS + 1);
        assert_eq!(stack.pages(), 30_000);
        let (above, _) = stack.above(95_000);
        assert!((14_900..=15_000).contains(&above), "{above}");
    }
}
