//! Measures memory access latencies, what huge pages save of them, and the effective size of the last-level cache.

use std::hint::black_box;

use super::processor_ns;
use super::region::{PAGES, Region, next};
use crate::cgroup::Cgroup;
use crate::{core_cache, numa};

/// Exceeds every TLB's reach with 4 KiB pages by far, with page tables that do not fit into the L2 cache beside the data. Two such areas
/// exist for some 400 ms.
const REGIONS: usize = 256;
/// Exceeds every TLB's reach, with page tables that fit into the L2 cache.
const NEAR_REGIONS: usize = 32;
/// Memory that must be available many times over, so that it is not taken from other programs.
const LEAST_BYTES: u64 = 8 << 30;

const WORDS_PER_LINE: usize = 8;
/// Pages whose page table entries share a cache line.
const PAGES_PER_LINE: usize = 8;
const WORDS_PER_PAGE: usize = 512;

/// Minimum for a near walk, which may vanish in the noise: some cycles, where a far one takes hundreds.
const FINEST: f64 = 16.0;

const ACCESSES: usize = 30_000;
const ROUNDS: usize = 5;
/// Rounds of measurements of a millisecond each, which resolve a difference of nanoseconds.
const NEAR_ROUNDS: usize = 25;
/// Rounds of measurements that read all of the memory first.
const CACHE_ROUNDS: usize = 3;

/// For a dependent access: what a huge page saves, in ns, with the page table entry in the last-level cache, in the L2 cache, and in no
/// cache; and the latency without page walk. Then the same for an independent access. Last, the bytes that the last-level cache keeps.
/// `None` if memory is short or there are no huge pages.
pub fn measured() -> Option<[f64; 9]> {
    if room() < LEAST_BYTES {
        return None;
    }
    let (base, huge) = (Region::new(REGIONS)?, Region::new(REGIONS)?);
    base.advise(libc::MADV_NOHUGEPAGE)?;
    huge.advise(libc::MADV_HUGEPAGE)?;
    (0..REGIONS).for_each(|number| huge.touch_region(number));
    if !huge.is_huge() {
        return None;
    }
    base.touch(REGIONS * PAGES);
    // Alternating, and the minimum of each: other programs can only make it longer.
    let least = |rounds: usize, walk: fn(&[u64], bool) -> usize, waits: bool, is_cached: bool| {
        let timed = |memory: &Region| {
            if !is_cached {
                push_out(huge.words());
            }
            let mut accesses = 0;
            processor_ns(|| accesses = walk(memory.words(), waits)) / accesses as f64
        };
        let rounds = (0..rounds).map(|_| (timed(&base), timed(&huge)));
        let (base, huge) =
            rounds.fold((f64::INFINITY, f64::INFINITY), |least, round| (least.0.min(round.0), least.1.min(round.1)));
        [(base - huge).max(0.0), base]
    };
    let of = |waits| {
        let [last, access] = least(ROUNDS, far, waits, true);
        let [near, _] = least(NEAR_ROUNDS, near, waits, true);
        let [memory, _] = least(ROUNDS, behind, waits, false);
        [last, near.clamp(last / FINEST, last), memory.max(last), access]
    };
    [&of(true)[..], &of(false), &[last_cache(huge.words())]].concat().try_into().ok()
}

/// Bytes that the last-level cache keeps of randomly accessed memory. Many processors share it, and most of what a virtual machine believes
/// to have may belong to its neighbours. Of twice as much memory as it keeps, half of the accesses miss.
fn last_cache(words: &[u64]) -> f64 {
    let all = size_of_val(words);
    let doubled = std::iter::successors(Some(2 * core_cache::second_bytes() as usize), |bytes| Some(2 * bytes));
    let sizes: Vec<usize> = doubled.take_while(|bytes| *bytes < all).chain([all]).collect();
    let mut taken = vec![f64::INFINITY; sizes.len()];
    for _ in 0..CACHE_ROUNDS {
        for (bytes, least) in sizes.iter().zip(&mut taken) {
            let words = &words[..bytes / size_of::<u64>()];
            read_all(words);
            *least = least.min(processor_ns(|| _ = random(words, true)) / ACCESSES as f64);
        }
    }
    kept_bytes(&sizes, &taken).min(core_cache::last_bytes() as f64)
}

/// From the access time at each memory size; the first size is kept whole, and almost nothing of the last.
fn kept_bytes(sizes: &[usize], taken: &[f64]) -> f64 {
    let (Some(kept), Some(not)) = (taken.first(), taken.last()) else { return 0.0 };
    let share = |ns: &f64| if not > kept { ((not - ns) / (not - kept)).clamp(0.0, 1.0) } else { 1.0 };
    sizes.iter().zip(taken).map(|(bytes, ns)| *bytes as f64 * share(ns)).fold(0.0, f64::max)
}

/// Memory available without taking it from other programs, on the machine and in the cgroup.
fn room() -> u64 {
    let machine = numa::nodes().map_or(0, |nodes| nodes.iter().map(|node| node.available).sum());
    let cgroup = Cgroup::of(std::process::id() as i32).ok().flatten();
    cgroup.and_then(|cgroup| cgroup.effective_limit()).map_or(machine, |limit| limit.min(machine))
}

/// Random addresses in the first regions.
fn near(words: &[u64], waits: bool) -> usize {
    random(&words[..NEAR_REGIONS * PAGES * WORDS_PER_PAGE], waits)
}

/// If each access waits for the previous one, its address depends on the value read.
fn random(words: &[u64], waits: bool) -> usize {
    let (mut random, mut read) = (88_172_645_463_325_252, 0u64);
    for _ in 0..ACCESSES {
        random = next(if waits { random ^ read & 1 } else { random });
        read = words[(random >> 8) as usize % (words.len() / WORDS_PER_LINE) * WORDS_PER_LINE + 1]
            .wrapping_add(if waits { 0 } else { read });
    }
    black_box(read);
    ACCESSES
}

/// Addresses in random order, without two whose page table entries share a cache line before all lines were used: by then a line has been
/// evicted.
fn far(words: &[u64], waits: bool) -> usize {
    let lines = words.len() / (PAGES_PER_LINE * WORDS_PER_PAGE);
    let (mut random, mut line, mut read) = (88_172_645_463_325_252, 0, 0u64);
    for _ in 0..lines {
        random = next(if waits { random ^ read & 1 } else { random });
        // Each once, because their number is a power of two.
        line = (line * 1_664_525 + 1_013_904_223) % lines;
        let within = random as usize % (PAGES_PER_LINE * WORDS_PER_PAGE / WORDS_PER_LINE) * WORDS_PER_LINE + 1;
        read = words[line * PAGES_PER_LINE * WORDS_PER_PAGE + within].wrapping_add(if waits { 0 } else { read });
    }
    black_box(read);
    lines
}

/// The same in the half that [`push_out`] does not read.
fn behind(words: &[u64], waits: bool) -> usize {
    far(&words[words.len() / 2..], waits)
}

/// Reads twice the last-level cache's size from the first half, which evicts everything else.
fn push_out(words: &[u64]) {
    read_all(&words[..(2 * core_cache::last_bytes() as usize / size_of::<u64>()).min(words.len() / 2)]);
}

fn read_all(words: &[u64]) {
    black_box(words.iter().step_by(WORDS_PER_LINE).fold(0u64, |sum, word| sum.wrapping_add(*word)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_size_follows_from_access_times() {
        let sizes: Vec<usize> = (1..=9).map(|power| 1 << power).collect();
        let keeps = |bytes: f64| {
            let ns = |all: &usize| 20.0 + 80.0 * (1.0 - bytes / *all as f64).max(0.0);
            kept_bytes(&sizes, &sizes.iter().map(ns).collect::<Vec<f64>>())
        };
        for bytes in [4.0, 24.0, 64.0] {
            assert!((0.85 * bytes..=bytes).contains(&keeps(bytes)), "{} of {bytes}", keeps(bytes));
        }
        assert_eq!(kept_bytes(&sizes, &[20.0; 9]), 512.0, "all of it");
        assert_eq!((kept_bytes(&[], &[]), kept_bytes(&[4], &[1.0])), (0.0, 4.0));
    }
}
