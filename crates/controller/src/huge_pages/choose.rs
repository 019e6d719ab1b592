//! Which regions to promote to huge pages, and which huge pages to split.

use advise::{Action, Costs, Estimate, HUGE_BYTES, PAGES_PER_HUGE, Range, State, estimate};
use track::regions::Region;

use super::walks::walks;

/// Rounds that must have scanned a region before a decision: one round may have caught an unusual moment.
pub const ROUNDS: u32 = 3;

/// A region, with the cost and benefit of making it a huge page.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<'a> {
    pub region: &'a Region,
    pub estimate: Estimate,
}

/// All regions of 4 KiB pages, best first; those not worth a huge page are last. Free huge pages go to the best
/// regions.
pub fn promotions<'a>(regions: impl Iterator<Item = &'a Region>, state: &State, costs: &Costs) -> Vec<Choice<'a>> {
    let mut choices: Vec<Choice> = regions
        .filter(|region| !region.is_huge && region.rounds >= ROUNDS)
        .map(|region| Choice { region, estimate: promotion(region, region.present_pages, state, costs) })
        .collect();
    choices.sort_by(|one, other| other.estimate.net_ns().total_cmp(&one.estimate.net_ns()));
    let mut left = state.clone();
    for choice in choices.iter_mut().filter(|choice| choice.estimate.net_ns() > 0.0) {
        choice.estimate = promotion(choice.region, choice.region.present_pages, &left, costs);
        left.free_huge = left.free_huge.saturating_sub(1);
        left.free_bytes = left.free_bytes.saturating_sub(HUGE_BYTES);
    }
    choices
}

/// Cost and least benefit of making a region a huge page if `present_pages` of its pages are present. The lower bound
/// is used because among many regions scanned again and again some look hot by chance, and a region made huge is not
/// scanned any more.
pub fn promotion(region: &Region, present_pages: u64, state: &State, costs: &Costs) -> Estimate {
    let misses_per_second = Some(region.misses_per_second * region.lower_bound_share);
    let range = Range { present_pages, misses_per_second, walks: walks(region), ..Range::of_bytes(HUGE_BYTES) };
    estimate(Action::Promote, &range, state, costs)
}

/// Cost and benefit of splitting a huge page that was idle for the horizon of a decision, of which `zero_pages` are
/// zero. It is taken to stay idle for as long again.
pub fn demotion(zero_pages: u64, state: &State, costs: &Costs) -> Estimate {
    let range = Range {
        present_pages: PAGES_PER_HUGE,
        huge_pages: 1,
        zero_pages,
        touched_pages: Some(PAGES_PER_HUGE - zero_pages.min(PAGES_PER_HUGE)),
        misses_per_second: Some(0.0),
        ..Range::of_bytes(HUGE_BYTES)
    };
    estimate(Action::Demote, &range, state, costs)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn region(start: u64, misses_per_second: f64) -> Region {
        Region {
            pid: 7,
            start,
            is_huge: false,
            present_pages: 512,
            accessed: 1.0,
            misses_per_second,
            lower_bound_share: 1.0,
            ns_per_miss: 0.0,
            ns_per_memory_miss: 0.0,
            near: 0.0,
            memory: 1.0,
            idle: Duration::ZERO,
            rounds: ROUNDS,
        }
    }

    fn worth(regions: &[Region], free_huge: u64) -> Vec<u64> {
        let state = State { free_huge, ..State::default() };
        let choices = promotions(regions.iter(), &state, &Costs::reference());
        choices.iter().filter(|choice| choice.estimate.net_ns() > 0.0).map(|choice| choice.region.start).collect()
    }

    #[test]
    fn the_hottest_is_first_and_cold_regions_are_left_alone() {
        let regions = [region(1, 1e4), region(2, 0.0), region(3, 1e5), region(4, 100.0)];
        assert_eq!(worth(&regions, 100), [3, 1]);
    }

    #[test]
    fn chance_accesses_are_not_worth_a_huge_page() {
        let chance = Region { lower_bound_share: 0.01, ..region(1, 1e4) };
        assert_eq!(worth(&[chance], 100), [0; 0]);
    }

    #[test]
    fn free_huge_pages_go_to_the_best_regions() {
        let regions = [region(1, 1e4), region(2, 2e4), region(3, 1e5)];
        assert_eq!(worth(&regions, 2), [3, 2]);
        assert_eq!(worth(&regions, 0), [0; 0]);
    }

    #[test]
    fn regions_scanned_once_wait_and_huge_ones_stay() {
        let once = Region { rounds: 1, ..region(1, 1e6) };
        let huge = Region { is_huge: true, ..region(2, 1e6) };
        assert_eq!(worth(&[once, huge], 100), [0; 0]);
    }

    #[test]
    fn a_sparse_region_must_be_hotter() {
        let sparse = Region { present_pages: 8, ..region(1, 1e4) };
        assert_eq!(worth(std::slice::from_ref(&sparse), 100), [0; 0]);
        assert_eq!(worth(&[Region { misses_per_second: 1e5, ..sparse }], 100), [1]);
    }

    #[test]
    fn a_cold_huge_page_is_split_for_its_zero_pages_alone() {
        let net = |zero_pages| demotion(zero_pages, &State::default(), &Costs::reference()).net_ns();
        assert!(net(0) < 0.0 && net(10) < 0.0 && net(400) > 0.0 && net(u64::MAX) > 0.0);
    }
}
