//! Which regions a round looks at, if it cannot look at all.

use std::collections::BTreeSet;

/// One that could be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Pages that looking at it takes.
    pub pages: usize,
    /// How often it seems to be accessed, if that is hardly known yet; else 0.
    pub promise: f64,
    /// The round that looked at it last; 0: none.
    pub looked: u64,
    /// Of those that were looked at in the same round, the least is first.
    pub order: u64,
}

/// Of the pages that may be looked at, the part for what promises most.
const PROMISING: f64 = 0.5;

/// As many as so many pages are enough for, one at least; by index, rising. What seems to be accessed most comes first, so that what
/// matters is soon known of a large program; then what was not looked at for longest. O(n log n).
pub fn chosen(candidates: &[Candidate], pages: usize) -> Vec<usize> {
    let mut by_promise: Vec<usize> = (0..candidates.len()).filter(|index| candidates[*index].promise > 0.0).collect();
    by_promise.sort_by(|one, other| candidates[*other].promise.total_cmp(&candidates[*one].promise));
    let (promising, taken) = afforded(candidates, &by_promise, (pages as f64 * PROMISING) as usize);
    let mut chosen: BTreeSet<usize> = promising.iter().copied().collect();
    let mut by_age: Vec<usize> = (0..candidates.len()).filter(|index| !chosen.contains(index)).collect();
    by_age.sort_unstable_by_key(|index| (candidates[*index].looked, candidates[*index].order));
    let (others, _) = afforded(candidates, &by_age, pages - taken);
    chosen.extend(others);
    if chosen.is_empty() {
        chosen.extend(by_age.first());
    }
    chosen.into_iter().collect()
}

/// The first of these that so many pages are enough for, and what they take.
fn afforded<'a>(candidates: &[Candidate], order: &'a [usize], pages: usize) -> (&'a [usize], usize) {
    let mut taken = 0;
    for (count, index) in order.iter().enumerate() {
        if taken + candidates[*index].pages > pages {
            return (&order[..count], taken);
        }
        taken += candidates[*index].pages;
    }
    (order, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(promise: f64, looked: u64, order: u64) -> Candidate {
        Candidate { pages: 8, promise, looked, order }
    }

    #[test]
    fn all_are_chosen_if_that_is_not_too_much() {
        let all: Vec<Candidate> = (0..10).map(|order| candidate(order as f64, order % 3, order)).collect();
        assert_eq!(chosen(&all, 80), (0..10).collect::<Vec<_>>());
        assert_eq!(chosen(&[], 80), [0; 0]);
    }

    #[test]
    fn what_was_not_looked_at_for_longest_comes_first() {
        let all = [candidate(0.0, 5, 0), candidate(0.0, 0, 9), candidate(0.0, 4, 0), candidate(0.0, 0, 3)];
        assert_eq!(chosen(&all, 8), [3]);
        assert_eq!(chosen(&all, 31), [1, 2, 3]);
        assert_eq!(chosen(&all, 0), [3], "one at least");
    }

    #[test]
    fn half_is_for_what_promises_most() {
        let promising = [3.0, 9.0, 1.0, 7.0].map(|promise| candidate(promise, 8, 0));
        let all: Vec<Candidate> = promising.into_iter().chain((0..4).map(|order| candidate(0.0, 1, order))).collect();
        assert_eq!(chosen(&all, 32), [1, 3, 4, 5]);
    }

    #[test]
    fn each_has_its_turn() {
        let mut all: Vec<Candidate> = (0..1000).map(|number| candidate(0.0, 0, number * 7919 % 1000)).collect();
        all[7].promise = 1e9;
        for round in 1..=50 {
            chosen(&all, 25 * 8).into_iter().for_each(|index| all[index].looked = round);
        }
        assert!(all.iter().all(|one| one.looked > 0));
    }
}
