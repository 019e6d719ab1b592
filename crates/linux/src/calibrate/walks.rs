//! What accesses take, and what huge pages save of that.

use std::hint::black_box;

use super::processor_ns;
use super::region::{PAGES, Region, next};
use crate::cgroup::Cgroup;
use crate::numa;

/// Much more than any TLB covers with pages of 4 KiB; and so much that its page tables do not stay in the caches that the data
/// go through, as with programs that this matters for. It is there twice, some 300 ms long.
const REGIONS: usize = 256;
/// There must be much more, for it must not be taken from anybody.
const LEAST_BYTES: u64 = 8 << 30;

const WORDS_PER_LINE: usize = 8;

const ACCESSES: usize = 30_000;
const ROUNDS: usize = 5;

/// Of an access at a random place that waits for the one before: what a huge page saves, in ns, and what it takes without; then the same
/// of one that does not wait. `None` if there is not the memory, or no huge page.
pub fn measured() -> Option<[f64; 4]> {
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
    // In turn, and the least of each: others can only make it longer.
    let least = |walk: fn(&[u64])| {
        let timed = |memory: &Region| processor_ns(|| walk(memory.words())) / ACCESSES as f64;
        let rounds = (0..ROUNDS).map(|_| (timed(&base), timed(&huge)));
        let (base, huge) =
            rounds.fold((f64::INFINITY, f64::INFINITY), |least, round| (least.0.min(round.0), least.1.min(round.1)));
        [(base - huge).max(0.0), base]
    };
    let ([dependent_saved, dependent], [independent_saved, independent]) = (least(dependent), least(independent));
    Some([dependent_saved, dependent, independent_saved, independent])
}

/// What can be had without taking it from others, by the machine and by the cgroup.
fn room() -> u64 {
    let machine = numa::nodes().map_or(0, |nodes| nodes.iter().map(|node| node.available).sum());
    let cgroup = Cgroup::of(std::process::id() as i32).ok().flatten();
    cgroup.and_then(|cgroup| cgroup.effective_limit()).map_or(machine, |limit| limit.min(machine))
}

/// Where the next access goes is not known before what was read is there, though it is always 0.
fn dependent(words: &[u64]) {
    let mut random = 88_172_645_463_325_252;
    for _ in 0..ACCESSES {
        random = next(random ^ words[word(words, random)]);
    }
    black_box(random);
}

fn independent(words: &[u64]) {
    let (mut random, mut sum) = (88_172_645_463_325_252, 0u64);
    for _ in 0..ACCESSES {
        random = next(random);
        sum = sum.wrapping_add(words[word(words, random)]);
    }
    black_box(sum);
}

/// Of any line the second: the first is written to.
fn word(words: &[u64], random: u64) -> usize {
    (random >> 8) as usize % (words.len() / WORDS_PER_LINE) * WORDS_PER_LINE + 1
}
