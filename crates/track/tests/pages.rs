//! Tests mapped memory against known truths: children of this test touch a known number of pages. Tests assert bytes,
//! never times.
//!
//! The best rung needs root. Otherwise tests are skipped with a message, or fail if `BURSAR_NO_SKIP=1`.

#![allow(unsafe_code)]

#[allow(dead_code, reason = "shared with other tests")]
mod child;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use child::{Child, LOADING, PATIENCE, Shared, fork, map};
use model::PagesRound;
use track::pages::{Error, Pages, Rung, Scope, Settings};

const PAGE: usize = 4096;
const MIB: u64 = 1 << 20;
const ALL: usize = 16384;

fn touch(memory: *mut u8, pages: std::ops::Range<usize>) {
    for page in pages {
        // SAFETY: callers give pages of their own mapping.
        unsafe { memory.add(page * PAGE).write_volatile(1) };
    }
}

/// Maps 64 MiB of small pages and touches them all.
fn filled() -> *mut u8 {
    // SAFETY: used within its length.
    let memory = unsafe { map(ALL * PAGE, libc::MAP_PRIVATE) };
    // SAFETY: our own mapping.
    unsafe { libc::madvise(memory.cast(), ALL * PAGE, libc::MADV_NOHUGEPAGE) };
    touch(memory, 0..ALL);
    memory
}

fn pages(rung: Rung, child: &mut Child) -> Option<Pages> {
    let settings = Settings { best: rung, overhead: 0.2, ..Settings::default() };
    let started = {
        let _none_forks = LOADING.lock();
        Pages::start(Scope::Tree(child.pid), settings)
    };
    match started {
        Ok(pages) if rung == Rung::Smaps || pages.fallback().is_none() => Some(pages),
        Ok(pages) => skip(child, pages.fallback().unwrap_or_default()),
        Err(error) => skip(child, &error.to_string()),
    }
}

fn skip(child: &Child, why: &str) -> Option<Pages> {
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(child.pid, libc::SIGKILL) };
    assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "{why}");
    eprintln!("skipped: {why}");
    None
}

fn end(child: &mut Child) {
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(child.pid, libc::SIGKILL) };
    child.wait();
}

/// Rounds until one fulfils the condition.
fn until(pages: &Pages, what: &str, mut shows: impl FnMut(&PagesRound) -> bool) -> PagesRound {
    let begin = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let round = pages.round().unwrap().unwrap_or_else(|| panic!("it ended before it showed {what}"));
        if shows(&round) {
            return round;
        }
        assert!(begin.elapsed() < PATIENCE, "no round shows {what}; the last: {round:#?}");
    }
}

/// Resident memory of a test besides what it maps.
const OWN: u64 = 4 * MIB;

/// One page in 32 is sampled: 16 MiB are 128 sampled pages, plus or minus 11, always the same ones. The tolerance is
/// four times that.
fn is_near(bytes: u64, truth: u64) -> bool {
    bytes.abs_diff(truth) <= truth / 5 + 3 * MIB
}

/// Whether `touched` MiB of `mapped` MiB were touched.
fn sees(round: &PagesRound, touched: u64, mapped: u64) -> bool {
    is_near(round.touched_bytes, touched * MIB) && is_near(round.tracked_bytes, OWN + mapped * MIB)
}

/// A child that repeatedly touches the first `pages` of its 64 MiB.
fn touching(shared: Shared, pages: usize) -> Child {
    let mut child = fork(move || {
        let memory = filled();
        shared.word(0).store(1, Ordering::SeqCst);
        loop {
            touch(memory, 0..pages);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    child.go();
    shared.wait_for(0, 1);
    child
}

fn n_of_m_pages(rung: Rung) {
    let mut child = touching(Shared::new(), ALL / 4);
    let Some(pages) = pages(rung, &mut child) else { return };
    let round = until(&pages, "16 of 64 MiB touched", |round| sees(round, 16, 64));
    let heat = round.heat.iter().max_by_key(|heat| heat.resident).unwrap();
    assert!(is_near(heat.touched, 16 * MIB) && heat.pid == child.pid, "{heat:?}");
    end(&mut child);
}

#[test]
fn touched_bytes_match_the_program() {
    n_of_m_pages(Rung::Tables);
}

#[test]
fn touched_bytes_match_the_program_by_smaps() {
    n_of_m_pages(Rung::Smaps);
}

#[test]
fn a_loop_misses_below_its_size_and_nowhere_above() {
    let shared = Shared::new();
    let mut child = fork(move || {
        let memory = filled();
        shared.word(0).store(1, Ordering::SeqCst);
        loop {
            for page in (0..ALL / 2).step_by(32) {
                touch(memory, page..page + 32);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    until(&pages, "a cliff at 32 MiB", |round| {
        let at = |mib: u64| {
            let after = round.misses.partition_point(|point| point.bytes <= mib * MIB);
            after.checked_sub(1).map_or(0.0, |at| round.misses[at].misses_per_second)
        };
        let below = at(24);
        below > 0.0 && at(40) < below / 10.0
    });
    end(&mut child);
}

#[test]
fn formerly_hot_pages_are_not_above_hot_ones() {
    let shared = Shared::new();
    let mut child = fork(move || {
        let memory = filled();
        shared.word(0).store(1, Ordering::SeqCst);
        loop {
            let is_small = shared.word(1).load(Ordering::SeqCst) == 1;
            touch(memory, 0..if is_small { ALL / 8 } else { ALL });
        }
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    // Long enough for all pages to rest for the longest time.
    std::thread::sleep(Duration::from_secs(4));
    shared.word(1).store(1, Ordering::SeqCst);
    until(&pages, "8 MiB needed", |round| round.wss_bytes.is_some_and(|wss| is_near(wss, 8 * MIB)));
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(200));
        let wss = pages.round().unwrap().unwrap().wss_bytes;
        assert!(wss.is_none_or(|wss| wss < 24 * MIB), "{wss:?}");
    }
    end(&mut child);
}

#[test]
fn read_files_and_mapped_memory_share_one_curve() {
    let shared = Shared::new();
    let mut child = fork(move || {
        use std::os::unix::fs::FileExt;
        let memory = filled();
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        let page = [1; PAGE];
        (0..ALL / 2).for_each(|at| file.write_all_at(&page, (at * PAGE) as u64).unwrap());
        shared.word(0).store(1, Ordering::SeqCst);
        let mut read = [0; 32 * PAGE];
        loop {
            for at in (0..ALL / 2).step_by(32) {
                touch(memory, at / 2..at / 2 + 16);
                file.read_exact_at(&mut read, (at * PAGE) as u64).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    if let Some(why) = pages.without_files() {
        assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "{why}");
        eprintln!("skipped: {why}");
        return end(&mut child);
    }
    // A loop over 16 MiB of mapped memory and 32 MiB of a file.
    let round = until(&pages, "a cliff at 48 MiB, in a round that sees all of the file", |round| {
        round.misses_at(36 * MIB) > 0.0
            && round.misses_at(58 * MIB) < round.misses_at(36 * MIB) / 10.0
            && is_near(round.file_touched_bytes.unwrap(), 32 * MIB)
    });
    assert!(is_near(round.file_bytes.unwrap(), 32 * MIB), "{round:?}");
    assert_eq!(round.lost_events, 0);
    let ages: u64 = round.ages.iter().map(|age| age.bytes).sum();
    assert!(ages > 80 * MIB, "{:?}", round.ages);
    pages.track(false);
    pages.track(true);
    until(&pages, "all of the file after a pause", |round| is_near(round.file_touched_bytes.unwrap(), 32 * MIB));
    end(&mut child);
}

#[test]
fn accesses_of_a_child_process_count() {
    let shared = Shared::new();
    let mut child = fork(move || {
        // SAFETY: the child does nothing but touch memory of its own.
        if unsafe { libc::fork() } == 0 {
            let memory = filled();
            shared.word(0).store(1, Ordering::SeqCst);
            // The test kills its parent, and it dies with it.
            // SAFETY: no pointers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            loop {
                touch(memory, 0..ALL / 2);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    let round = until(&pages, "32 of 64 MiB touched", |round| is_near(round.touched_bytes, 32 * MIB));
    assert!(round.heat.iter().any(|heat| heat.pid != child.pid && is_near(heat.touched, 32 * MIB)), "{:?}", round.heat);
    end(&mut child);
}

#[test]
fn unmapped_memory_leaves_and_new_memory_joins() {
    let shared = Shared::new();
    let mut child = fork(move || {
        let memory = filled();
        shared.word(0).store(1, Ordering::SeqCst);
        while shared.word(1).load(Ordering::SeqCst) == 0 {
            touch(memory, 0..ALL);
        }
        // Many times, so that some of it happens during a scan.
        let mut last = memory;
        for _ in 0..20 {
            // SAFETY: our own mapping, used no more.
            unsafe { libc::munmap(last.cast(), ALL * PAGE) };
            last = filled();
        }
        // SAFETY: as above.
        unsafe { libc::munmap(last.cast(), ALL / 2 * PAGE) };
        loop {
            // SAFETY: the second half is mapped still.
            touch(unsafe { last.add(ALL / 2 * PAGE) }, 0..ALL / 2);
        }
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    until(&pages, "64 MiB", |round| is_near(round.tracked_bytes, OWN + 64 * MIB));
    shared.word(1).store(1, Ordering::SeqCst);
    until(&pages, "32 MiB", |round| sees(round, 32, 32));
    end(&mut child);
}

#[test]
fn a_huge_page_counts_as_a_whole() {
    let shared = Shared::new();
    let mut child = fork(move || {
        const HUGE: usize = 2 << 20;
        // SAFETY: used within its length.
        let memory = unsafe { map(33 * HUGE, libc::MAP_PRIVATE) };
        let aligned = memory.wrapping_add(memory.align_offset(HUGE));
        // SAFETY: our own mapping.
        unsafe { libc::madvise(aligned.cast(), 32 * HUGE, libc::MADV_HUGEPAGE) };
        touch(aligned, 0..32 * HUGE / PAGE);
        shared.word(0).store(1, Ordering::SeqCst);
        loop {
            (0..8).for_each(|huge| touch(aligned, huge * 512..huge * 512 + 1));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    child.go();
    shared.wait_for(0, 1);
    let huge = linux::procfs::smaps_rollup(child.pid).is_ok_and(|_| {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", child.pid)).unwrap_or_default();
        text.lines().any(|line| line.starts_with("AnonHugePages:") && line.split_whitespace().nth(1) == Some("65536"))
    });
    if !huge {
        skip(&child, "the kernel gave no huge pages");
        return;
    }
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    until(&pages, "8 of 32 huge pages touched", |round| sees(round, 16, 64));
    end(&mut child);
}

#[test]
fn accesses_of_every_thread_count() {
    let shared = Shared::new();
    let mut child = fork(move || {
        let memory = filled() as usize;
        let threads = (0..3).map(|number| {
            std::thread::spawn(move || {
                loop {
                    touch(memory as *mut u8, number * ALL / 8..(number + 1) * ALL / 8);
                    std::thread::sleep(Duration::from_millis(1));
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        shared.word(0).store(1, Ordering::SeqCst);
        threads.into_iter().for_each(|thread| _ = thread.join());
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    until(&pages, "24 of 64 MiB touched", |round| sees(round, 24, 64));
    end(&mut child);
}

#[test]
fn shared_memory_of_one_process_is_seen_like_private() {
    let shared = Shared::new();
    let mut child = fork(move || {
        // SAFETY: used within its length.
        let memory = unsafe { map(ALL * PAGE, libc::MAP_SHARED) };
        touch(memory, 0..ALL);
        shared.word(0).store(1, Ordering::SeqCst);
        loop {
            touch(memory, 0..ALL / 4);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    let round = until(&pages, "16 of 64 MiB touched", |round| sees(round, 16, 64));
    let heat = round.heat.iter().max_by_key(|heat| heat.resident).unwrap();
    assert!(is_near(heat.touched, 16 * MIB) && heat.blind == 0, "{heat:?}");
    end(&mut child);
}

/// A child with 64 MiB, a quarter of them locked, all shared with a child of its own that only waits. It touches the
/// first `pages`.
fn sharing(shared: Shared, pages: usize) -> Child {
    let mut child = fork(move || {
        let memory = filled();
        // SAFETY: our own mapping.
        assert_eq!(unsafe { libc::mlock(memory.cast(), ALL / 4 * PAGE) }, 0);
        // SAFETY: the child does nothing but wait.
        if unsafe { libc::fork() } == 0 {
            // SAFETY: no pointers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        shared.word(0).store(1, Ordering::SeqCst);
        loop {
            // Reads leave the pages shared.
            // SAFETY: within the mapping.
            (0..pages).for_each(|page| _ = unsafe { memory.add(page * PAGE).read_volatile() });
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    child.go();
    shared.wait_for(0, 1);
    child
}

#[test]
fn shared_and_locked_memory_that_is_idle_is_not_hot() {
    let mut child = sharing(Shared::new(), 0);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    // Twice 64 MiB, because each process maps all of it.
    until(&pages, "128 MiB of which none is touched", |round| {
        is_near(round.tracked_bytes, OWN + 128 * MIB) && round.blind_bytes < 8 * MIB && round.touched_bytes < 8 * MIB
    });
    end(&mut child);
}

#[test]
fn shared_and_locked_memory_that_is_touched_is_seen() {
    let mut child = sharing(Shared::new(), ALL / 2);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    let round = until(&pages, "32 of 128 MiB touched", |round| sees(round, 32, 128));
    assert!(round.blind_bytes < 8 * MIB, "{round:#?}");
    end(&mut child);
}

#[test]
fn an_exec_restarts_the_scans() {
    let shared = Shared::new();
    let mut child = fork(move || {
        let memory = filled();
        shared.word(0).store(1, Ordering::SeqCst);
        while shared.word(1).load(Ordering::SeqCst) == 0 {
            touch(memory, 0..ALL);
        }
        // It repeatedly fills one buffer of 32 MiB.
        let arguments = [c"dd", c"if=/dev/zero", c"of=/dev/null", c"bs=32M"].map(|text| text.as_ptr());
        let [program, first, second, third] = arguments;
        // SAFETY: the list is ended by null.
        unsafe { libc::execlp(program, program, first, second, third, std::ptr::null::<libc::c_char>()) };
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    until(&pages, "64 MiB", |round| is_near(round.touched_bytes, 64 * MIB));
    shared.word(1).store(1, Ordering::SeqCst);
    until(&pages, "32 MiB", |round| sees(round, 32, 32));
    end(&mut child);
}

#[test]
fn memory_no_longer_shared_is_scanned_by_page() {
    let shared = Shared::new();
    let mut child = fork(move || {
        let memory = filled();
        // SAFETY: the child does nothing but wait to be killed.
        let other = unsafe { libc::fork() };
        if other == 0 {
            // SAFETY: no pointers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        shared.word(0).store(1, Ordering::SeqCst);
        let mut ended = false;
        loop {
            if !ended && shared.word(1).load(Ordering::SeqCst) != 0 {
                // SAFETY: our own child.
                unsafe { libc::kill(other, libc::SIGKILL) };
                // SAFETY: no status is asked for.
                ended = unsafe { libc::waitpid(other, std::ptr::null_mut(), 0) } == other;
            }
            (0..ALL / 4).for_each(|page| {
                // SAFETY: within the mapping.
                let _ = unsafe { memory.add(page * PAGE).read_volatile() };
            });
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    child.go();
    shared.wait_for(0, 1);
    let Some(pages) = pages(Rung::Tables, &mut child) else { return };
    until(&pages, "128 MiB", |round| is_near(round.tracked_bytes, OWN + 128 * MIB));
    shared.word(1).store(1, Ordering::SeqCst);
    until(&pages, "16 of 64 MiB touched", |round| sees(round, 16, 64));
    end(&mut child);
}

#[test]
fn a_program_that_ends_during_a_scan_has_a_last_round() {
    for rung in [Rung::Tables, Rung::Smaps] {
        let mut child = touching(Shared::new(), ALL);
        let Some(pages) = pages(rung, &mut child) else { continue };
        until(&pages, "64 MiB", |round| is_near(round.tracked_bytes, OWN + 64 * MIB));
        end(&mut child);
        let begin = Instant::now();
        while pages.round().unwrap().is_some() {
            assert!(begin.elapsed() < PATIENCE, "its end is not noticed");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(pages.round().unwrap(), None);
    }
}

#[test]
fn missing_and_foreign_processes_are_refused() {
    let gone = Pages::start(Scope::Tree(i32::MAX), Settings::default()).unwrap_err();
    assert!(matches!(gone, Error::NoProcess(i32::MAX)), "{gone}");
    let parent = std::os::unix::process::parent_id() as i32;
    let foreign = Pages::start(Scope::Tree(parent), Settings::default()).unwrap_err();
    assert!(matches!(foreign, Error::NotOurs(pid) if pid == parent), "{foreign}");
    assert!(foreign.to_string().contains("--intrusive"));
}
