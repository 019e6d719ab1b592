//! An estimate of a budget where no trial may be made.

use crate::round_up;

/// The unreclaimable memory and the active file pages, in whole MiB. No run has confirmed it: it is too high where file pages were used
/// twice long ago and nothing has reclaimed them since, and too low while pages refault.
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
