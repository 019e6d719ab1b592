//! What there is to say of a budget where nothing may be tried.

use crate::round_up;

/// What cannot be reclaimed, and the file pages that the kernel keeps as active, in whole MiB. No run has confirmed it: too high
/// where file pages were used twice long ago and nothing has pushed them out since; too low while pages are read again.
pub fn estimate(unreclaimable: u64, active_file: u64) -> u64 {
    round_up(unreclaimable.saturating_add(active_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_whole_mebibytes() {
        assert_eq!(estimate(5 << 20, 3 << 20), 8 << 20);
        assert_eq!(estimate((5 << 20) + 1, 3 << 20), 9 << 20);
    }
}
