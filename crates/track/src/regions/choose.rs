//! Which regions a round scans, if it cannot scan all.

use std::collections::BTreeSet;

/// A region that could be scanned.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Pages that a scan of it takes.
    pub pages: usize,
    /// Its apparent access rate if it is hardly known yet; otherwise 0.
    pub promise: f64,
    /// The last round that scanned it; 0: none.
    pub last_round: u64,
    /// Order among regions last scanned in the same round.
    pub order: u64,
}

/// Share of the pages for the regions that promise most.
const PROMISING_SHARE: f64 = 0.5;

/// Chooses as many regions as `pages` allow, at least one. Returns their indices, rising. Half of the pages go to the
/// regions with the highest promise, the others to those not scanned for longest. O(n log n).
pub fn chosen(candidates: &[Candidate], pages: usize) -> Vec<usize> {
    let mut by_promise: Vec<usize> = (0..candidates.len()).filter(|index| candidates[*index].promise > 0.0).collect();
    by_promise.sort_by(|one, other| candidates[*other].promise.total_cmp(&candidates[*one].promise));
    let (promising, taken) = afforded(candidates, &by_promise, (pages as f64 * PROMISING_SHARE) as usize);
    let mut chosen: BTreeSet<usize> = promising.iter().copied().collect();
    let mut by_age: Vec<usize> = (0..candidates.len()).filter(|index| !chosen.contains(index)).collect();
    by_age.sort_unstable_by_key(|index| (candidates[*index].last_round, candidates[*index].order));
    let (others, _) = afforded(candidates, &by_age, pages - taken);
    chosen.extend(others);
    if chosen.is_empty() {
        chosen.extend(by_age.first());
    }
    chosen.into_iter().collect()
}

/// The longest prefix of `order` that fits into `pages`, and the pages it takes.
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

    fn candidate(promise: f64, last_round: u64, order: u64) -> Candidate {
        Candidate { pages: 8, promise, last_round, order }
    }

    #[test]
    fn all_are_chosen_if_they_fit() {
        let all: Vec<Candidate> = (0..10).map(|order| candidate(order as f64, order % 3, order)).collect();
        assert_eq!(chosen(&all, 80), (0..10).collect::<Vec<_>>());
        assert_eq!(chosen(&[], 80), [0; 0]);
    }

    #[test]
    fn regions_not_scanned_for_longest_come_first() {
        let all = [candidate(0.0, 5, 0), candidate(0.0, 0, 9), candidate(0.0, 4, 0), candidate(0.0, 0, 3)];
        assert_eq!(chosen(&all, 8), [3]);
        assert_eq!(chosen(&all, 31), [1, 2, 3]);
        assert_eq!(chosen(&all, 0), [3], "one at least");
    }

    #[test]
    fn half_goes_to_the_highest_promise() {
        let promising = [3.0, 9.0, 1.0, 7.0].map(|promise| candidate(promise, 8, 0));
        let all: Vec<Candidate> = promising.into_iter().chain((0..4).map(|order| candidate(0.0, 1, order))).collect();
        assert_eq!(chosen(&all, 32), [1, 3, 4, 5]);
    }

    #[test]
    fn every_region_has_its_turn() {
        let mut all: Vec<Candidate> = (0..1000).map(|number| candidate(0.0, 0, number * 7919 % 1000)).collect();
        all[7].promise = 1e9;
        for round in 1..=50 {
            chosen(&all, 25 * 8).into_iter().for_each(|index| all[index].last_round = round);
        }
        assert!(all.iter().all(|one| one.last_round > 0));
    }
}
