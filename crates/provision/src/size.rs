//! The pool that a command would take.

use std::collections::BTreeSet;

use linux::own_numbers::OwnNumber;

use crate::state::segment_bytes;
use crate::told::Told;

/// Pages of a pool, unless others are asked for.
const PAGE_BYTES: u64 = 2 << 20;
/// Which process told it.
pub fn own_number(told: &Told) -> OwnNumber {
    OwnNumber { pid: told.pid as i32, namespace: told.namespace, start_ticks: told.ticks }
}

/// The pool that processes take that were there at the same time: each the most it came to, in whole segments. One that
/// no look saw was short, and is counted as if it had been there beside the others, but alone of its kind.
pub fn needed(told: &[Told], together: &BTreeSet<BTreeSet<OwnNumber>>) -> u64 {
    let most = told.iter().map(|told| told.figures.demand_bytes_peak).max().unwrap_or(0);
    let mut segment = segment_bytes(0, PAGE_BYTES);
    loop {
        // A process may tell any number.
        let whole = |told: &Told| told.figures.demand_bytes_peak.checked_next_multiple_of(segment).unwrap_or(u64::MAX);
        let sum = |there: &BTreeSet<OwnNumber>| {
            told.iter().filter(|told| there.contains(&own_number(told))).map(whole).fold(0, u64::saturating_add)
        };
        let seen: u64 = together.iter().map(sum).max().unwrap_or(0);
        let is_unseen = |told: &&Told| !together.iter().any(|there| there.contains(&own_number(told)));
        let unseen = told.iter().filter(is_unseen).map(whole).max().unwrap_or(0);
        let pool = seen.saturating_add(unseen);
        // A larger pool has larger segments, which leave more unused; more processes than segments never come to an end.
        match segment_bytes(pool, PAGE_BYTES) {
            larger if larger > segment && segment < most => segment = larger,
            _ => return pool,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::Figures;

    fn told(pid: u64, demand_bytes_peak: u64) -> Told {
        Told {
            executable: "a".into(),
            pid,
            parent: 1,
            ticks: 7,
            namespace: 0,
            rank: None,
            node: None,
            left_alone: None,
            figures: Figures { demand_bytes_peak, ..Figures::default() },
        }
    }

    #[test]
    fn a_pool_is_for_those_that_ran_together_in_whole_segments() {
        let processes = [told(1, 65 << 20), told(2, 1 << 20), told(3, 200 << 20)];
        let of = |pid: &u64| own_number(&told(*pid, 0));
        let seen = |sets: &[&[u64]]| sets.iter().map(|set| set.iter().map(of).collect()).collect();
        assert_eq!(needed(&processes, &seen(&[&[1, 2], &[3]])), 256 << 20);
        assert_eq!(needed(&processes, &seen(&[&[1, 2], &[2, 3]])), 320 << 20);
        assert_eq!(needed(&processes, &seen(&[&[1, 2]])), (128 + 64 + 256) << 20, "the third was too short to be seen");
        assert_eq!(needed(&[], &BTreeSet::new()), 0);
        let wrong = [told(1, u64::MAX), told(2, u64::MAX)];
        assert_eq!(needed(&wrong, &seen(&[&[1, 2]])), u64::MAX, "what a process tells may be any number");
    }

    #[test]
    fn a_large_pool_has_larger_segments() {
        let processes: Vec<Told> = (0..40).map(|pid| told(pid, 520 << 20)).collect();
        let all = [processes.iter().map(own_number).collect()].into();
        // 40 times 576 MiB in segments of 64; a pool of that has some of 128, of which each takes five.
        assert_eq!(needed(&processes, &all), 40 * (640 << 20));
    }
}
