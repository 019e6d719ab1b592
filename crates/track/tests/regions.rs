//! Tests regions against known truths: a child of this test fills memory on request.
//!
//! Needs root. Otherwise tests are skipped with a message, or fail if `BURSAR_NO_SKIP=1`.

#![allow(unsafe_code)]

#[allow(dead_code, reason = "shared with other tests")]
mod child;

use std::sync::atomic::Ordering;
use std::time::Duration;

use child::{LOADING, Shared, fork, map};
use track::pages::Scope;
use track::regions::Regions;

const REGION: usize = 2 << 20;
/// More than twice as many as a child of this test has of its own.
const FILLED: usize = 64;
const LATER: usize = 20;

/// Maps memory of small pages, and fills one region more on each request. Word 2 is its address.
fn fill(shared: Shared) {
    // SAFETY: used within its length; a region more than is filled, for it may begin within one.
    let memory = unsafe { map((FILLED + 1) * REGION, libc::MAP_PRIVATE) };
    // SAFETY: our own mapping.
    unsafe { libc::madvise(memory.cast(), (FILLED + 1) * REGION, libc::MADV_NOHUGEPAGE) };
    let first = memory.align_offset(REGION);
    shared.word(2).store(memory as u64 + first as u64, Ordering::SeqCst);
    for filled in 0..FILLED {
        shared.wait_for(1, filled as u64 + 1);
        for page in (0..REGION).step_by(4096) {
            // SAFETY: within the mapping.
            unsafe { memory.add(first + filled * REGION + page).write_volatile(1) };
        }
        shared.word(0).store(filled as u64 + 1, Ordering::SeqCst);
    }
    shared.wait_for(1, u64::MAX);
}

#[test]
fn samples_are_discarded_when_memory_is_filled() {
    let shared = Shared::new();
    let mut child = fork(|| fill(shared));
    let started = {
        let _none_forks = LOADING.lock();
        Regions::of(Scope::Tree(child.pid), 0.2)
    };
    let mut regions = match started {
        Ok(regions) => regions,
        Err(why) => {
            assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "{why}");
            eprintln!("skipped: {why}");
            return;
        }
    };
    child.go();
    let mut counts = Vec::new();
    for round in 1..=FILLED + LATER {
        if round <= FILLED {
            shared.word(1).store(round as u64, Ordering::SeqCst);
            shared.wait_for(0, round as u64);
        }
        assert!(regions.round(Duration::from_millis(30), || false).unwrap());
        let first = shared.word(2).load(Ordering::SeqCst);
        let known = regions.known(1e6);
        counts.push(known.iter().find(|region| region.start == first).map_or(0, |region| region.rounds));
    }
    let anew: Vec<usize> = (1..counts.len()).filter(|round| counts[*round] < counts[round - 1]).collect();
    assert!(matches!(anew[..], [round] if round >= FILLED), "{counts:?}");
    assert!(!regions.is_behind());
}
