//! Which action is worth most.

use model::Costs;

use crate::estimate::{Action, Estimate, estimate};
use crate::range::Range;
use crate::state::State;

/// What to do about a range, and the estimate behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to do.
    pub action: Action,
    /// Its cost and benefit.
    pub estimate: Estimate,
}

/// The action whose benefit exceeds its cost by most; [`Action::Leave`] if no benefit exceeds its cost.
pub fn decide(range: &Range, state: &State, costs: &Costs) -> Decision {
    best(&Action::ALL, range, state, costs)
}

/// The best of these actions; of equal ones, the first.
pub(crate) fn best(actions: &[Action], range: &Range, state: &State, costs: &Costs) -> Decision {
    let leave = Decision { action: Action::Leave, estimate: Estimate::default() };
    actions.iter().fold(leave, |best, action| {
        let estimate = estimate(*action, range, state, costs);
        if estimate.net_ns() > best.estimate.net_ns() { Decision { action: *action, estimate } } else { best }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HUGE_BYTES;

    fn plenty() -> State {
        State { free_huge: 1000, ..State::default() }
    }

    fn action(range: &Range, state: &State) -> Action {
        decide(range, state, &Costs::reference()).action
    }

    #[test]
    fn unknown_ranges_are_left_alone() {
        for bytes in [0, 4096, HUGE_BYTES, 1 << 40, u64::MAX] {
            assert_eq!(action(&Range::of_bytes(bytes), &State { idle_cores: 8.0, ..plenty() }), Action::Leave);
        }
        // The same holds for present memory, dense or not.
        let present = Range { present_pages: 512, ..Range::of_bytes(HUGE_BYTES) };
        assert_eq!(action(&present, &plenty()), Action::Leave);
    }

    #[test]
    fn growing_ranges_are_populated_by_an_idle_processor() {
        let growing = Range { touched_pages: Some(512 * 16), ..Range::of_bytes(16 * HUGE_BYTES) };
        assert_eq!(action(&growing, &plenty()), Action::HugeAtTouch);
        assert_eq!(action(&growing, &State { idle_cores: 1.0, ..plenty() }), Action::PopulateAhead);
        assert_eq!(action(&growing, &State { pre_zeroed: 16, ..plenty() }), Action::PoolPage);
    }

    #[test]
    fn nothing_is_made_huge_in_fragmented_memory() {
        let dense = Range { touched_pages: Some(512), saved_ns: Some(1e8), ..Range::of_bytes(HUGE_BYTES) };
        assert_eq!(action(&dense, &State::default()), Action::Leave);
        assert_eq!(action(&dense, &plenty()), Action::HugeAtTouch);
    }

    #[test]
    fn dense_cold_ranges_become_huge_and_sparse_ones_do_not() {
        let cold = |touched| Range { touched_pages: Some(touched), saved_ns: Some(0.0), ..Range::of_bytes(HUGE_BYTES) };
        assert_eq!(
            [512, 500, 256, 1].map(|touched| action(&cold(touched), &plenty())),
            [Action::HugeAtTouch, Action::HugeAtTouch, Action::Leave, Action::Leave]
        );
        // A sparse hot range becomes huge because of its page walks.
        let hot = Range { saved_ns: Some(8e6), ..cold(1) };
        assert_eq!(action(&hot, &plenty()), Action::HugeAtTouch);
    }

    #[test]
    fn present_hot_memory_is_promoted_and_cold_is_not() {
        let hot = |misses| Range { present_pages: 512, misses_per_second: Some(misses), ..Range::of_bytes(HUGE_BYTES) };
        assert_eq!(action(&hot(1e5), &plenty()), Action::Promote);
        assert_eq!(action(&hot(1e2), &plenty()), Action::Leave);
    }

    #[test]
    fn a_sparse_huge_page_is_split_and_a_full_one_not() {
        let huge = Range { present_pages: 512, huge_pages: 1, zero_pages: 480, ..Range::of_bytes(HUGE_BYTES) };
        assert_eq!(action(&huge, &plenty()), Action::Demote);
        assert_eq!(action(&Range { zero_pages: 10, ..huge }, &plenty()), Action::Leave);
    }

    #[test]
    fn a_writing_forked_process_gets_its_copies_ahead() {
        let shared =
            Range { present_pages: 4096, shared_pages: 4096, touched_pages: Some(4096), ..Range::of_bytes(1 << 24) };
        assert_eq!(action(&shared, &State { idle_cores: 1.0, ..State::default() }), Action::BreakCow);
        assert_eq!(action(&shared, &State::default()), Action::Leave);
    }
}
