//! The pool size that a command needs.

use std::collections::BTreeSet;

use linux::own_numbers::OwnNumber;

use crate::state::segment_bytes;
use crate::stats::ProcessStats;

/// Page size of a pool by default.
const PAGE_BYTES: u64 = 2 << 20;
/// The identity of the process that wrote the statistics.
pub fn own_number(process: &ProcessStats) -> OwnNumber {
    OwnNumber { pid: process.pid as i32, namespace: process.namespace, start_ticks: process.ticks }
}

/// The pool size, in bytes, for the processes that ran at the same time (`together`): the sum of their peaks, each in whole segments. A
/// process that no sample saw was short; only the largest of these is added.
pub fn needed(processes: &[ProcessStats], together: &BTreeSet<BTreeSet<OwnNumber>>) -> u64 {
    let most = processes.iter().map(|process| process.figures.demand_bytes_peak).max().unwrap_or(0);
    let mut segment = segment_bytes(0, PAGE_BYTES);
    loop {
        // A process may report any number.
        let whole = |process: &ProcessStats| {
            process.figures.demand_bytes_peak.checked_next_multiple_of(segment).unwrap_or(u64::MAX)
        };
        let sum = |there: &BTreeSet<OwnNumber>| {
            processes
                .iter()
                .filter(|process| there.contains(&own_number(process)))
                .map(whole)
                .fold(0, u64::saturating_add)
        };
        let sampled: u64 = together.iter().map(sum).max().unwrap_or(0);
        let is_unsampled = |process: &&ProcessStats| !together.iter().any(|there| there.contains(&own_number(process)));
        let unsampled = processes.iter().filter(is_unsampled).map(whole).max().unwrap_or(0);
        let pool = sampled.saturating_add(unsampled);
        // A larger pool has larger segments, which waste more; with more processes than segments this would not terminate.
        match segment_bytes(pool, PAGE_BYTES) {
            larger if larger > segment && segment < most => segment = larger,
            _ => return pool,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Figures;

    fn stats(pid: u64, demand_bytes_peak: u64) -> ProcessStats {
        ProcessStats {
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
    fn the_pool_fits_simultaneous_processes_in_whole_segments() {
        let processes = [stats(1, 65 << 20), stats(2, 1 << 20), stats(3, 200 << 20)];
        let of = |pid: &u64| own_number(&stats(*pid, 0));
        let seen = |sets: &[&[u64]]| sets.iter().map(|set| set.iter().map(of).collect()).collect();
        assert_eq!(needed(&processes, &seen(&[&[1, 2], &[3]])), 256 << 20);
        assert_eq!(needed(&processes, &seen(&[&[1, 2], &[2, 3]])), 320 << 20);
        assert_eq!(
            needed(&processes, &seen(&[&[1, 2]])),
            (128 + 64 + 256) << 20,
            "the third was too short for a sample"
        );
        assert_eq!(needed(&[], &BTreeSet::new()), 0);
        let wrong = [stats(1, u64::MAX), stats(2, u64::MAX)];
        assert_eq!(needed(&wrong, &seen(&[&[1, 2]])), u64::MAX, "a process may report any number");
    }

    #[test]
    fn a_large_pool_has_larger_segments() {
        let processes: Vec<ProcessStats> = (0..40).map(|pid| stats(pid, 520 << 20)).collect();
        let all = [processes.iter().map(own_number).collect()].into();
        // 40 times 576 MiB in segments of 64 MiB; a pool of that size has segments of 128 MiB, of which each process takes five.
        assert_eq!(needed(&processes, &all), 40 * (640 << 20));
    }
}
