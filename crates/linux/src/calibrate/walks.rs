//! What huge pages save of page walks.

use std::hint::black_box;

use super::processor_ns;
use super::region::{PAGES, Region, next};

/// Much more than any TLB covers with pages of 4 KiB, and about what they cover with huge ones. It takes page tables alone:
/// what is only read is one page of zeroes, or one huge page, wherever it is mapped.
const REGIONS: usize = 512;

const WORDS_PER_PAGE: usize = 512;
const WORDS_PER_LINE: usize = 8;
const LINES: usize = WORDS_PER_PAGE / WORDS_PER_LINE;

const ACCESSES: usize = 50_000;
const ROUNDS: usize = 7;

/// What huge pages save, in ns: of an access to a random page that waits for the one before, and of one that does not.
/// `None` if the kernel maps no huge page of zeroes.
pub fn saved() -> Option<[f64; 2]> {
    let (base, huge) = (Region::of_zeroes(REGIONS)?, Region::of_zeroes(REGIONS)?);
    base.advise(libc::MADV_NOHUGEPAGE)?;
    huge.advise(libc::MADV_HUGEPAGE)?;
    base.read(REGIONS * PAGES);
    if huge.faults_of_reading() > REGIONS as i64 {
        return None;
    }
    // In turn, and the least of each: others can only make it longer.
    let least = |walk: fn(&[u64])| {
        let timed = |memory: &Region| processor_ns(|| walk(memory.words())) / ACCESSES as f64;
        let rounds = (0..ROUNDS).map(|_| (timed(&base), timed(&huge)));
        let (base, huge) =
            rounds.fold((f64::INFINITY, f64::INFINITY), |least, round| (least.0.min(round.0), least.1.min(round.1)));
        (base - huge).max(0.0)
    };
    Some([least(dependent), least(independent)])
}

/// Where the next access goes is not known before what was read is there, though it is always 0.
fn dependent(words: &[u64]) {
    let mut random = 88_172_645_463_325_252;
    for _ in 0..ACCESSES {
        random = next(random ^ words[word(random)]);
    }
    black_box(random);
}

fn independent(words: &[u64]) {
    let (mut random, mut sum) = (88_172_645_463_325_252, 0u64);
    for _ in 0..ACCESSES {
        random = next(random);
        sum = sum.wrapping_add(words[word(random)]);
    }
    black_box(sum);
}

/// Of a random page, one of the few lines that then stay in the first cache.
fn word(random: u64) -> usize {
    let page = random as usize % (REGIONS * PAGES);
    page * WORDS_PER_PAGE + page % LINES * WORDS_PER_LINE
}
