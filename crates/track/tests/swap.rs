//! Mapped memory that goes to swap and comes back. Separate from other tests, whose memory the machine might also swap
//! out. These tests run one after the other, because their children are busy.

#![allow(unsafe_code)]

#[allow(dead_code, reason = "shared with other tests")]
mod child;
#[path = "../../../tests/support/need.rs"]
mod need;
#[path = "../../../tests/support/zram.rs"]
mod zram;

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{env, fs};

use child::{PATIENCE, Shared, fork, map};
use need::need;
use track::pages::{Pages, Scope, Settings};
use zram::Zram;

const PAGE: usize = 4096;
const ALL: usize = 64 << 20;
static ALONE: Mutex<()> = Mutex::new(());

/// Returns swap to use, if it can be seen what is swapped out.
fn swap() -> Option<Zram> {
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !need("root", is_root) || !need("page tables that BPF can read", linux::pages::available().is_ok()) {
        return None;
    }
    Zram::of(256)
}

/// While it searches for pages to reclaim, the kernel itself clears the Accessed bits of a program that has too little
/// memory.
#[test]
fn pages_back_from_swap_count_as_accessed() {
    let _one_at_a_time = ALONE.lock();
    let Some(_zram) = swap() else { return };
    let shared = Shared::new();
    let step = shared.word(0);
    let mut child = fork(|| {
        // SAFETY: used within its length.
        let memory = unsafe { map(ALL, libc::MAP_PRIVATE) };
        // SAFETY: our own mapping, and writes within it.
        let advise = |at: usize, bytes, advice| unsafe { libc::madvise(memory.add(at).cast(), bytes, advice) };
        // SAFETY: as above.
        let touch = |at: usize| unsafe { memory.add(at).write_volatile(1) };
        advise(0, ALL, libc::MADV_NOHUGEPAGE);
        (0..ALL).step_by(PAGE).for_each(touch);
        step.store(1, Ordering::SeqCst);
        shared.wait_for(0, 2);
        advise(0, ALL, libc::MADV_PAGEOUT);
        step.store(3, Ordering::SeqCst);
        shared.wait_for(0, 4);
        for at in (0..ALL / 2).step_by(PAGE) {
            touch(at);
            advise(at, PAGE, libc::MADV_COLD);
        }
        step.store(5, Ordering::SeqCst);
        std::thread::sleep(Duration::from_secs(60));
    });
    child.go();
    shared.wait_for(0, 1);
    let settings = Settings { overhead: 0.2, ..Settings::default() };
    let pages = Pages::start(Scope::Tree(child.pid), settings).unwrap();
    let touched = || pages.round().unwrap().unwrap().touched_bytes;
    step.store(2, Ordering::SeqCst);
    shared.wait_for(0, 3);
    // Scans come at least every half second.
    std::thread::sleep(Duration::from_secs(2));
    touched();
    step.store(4, Ordering::SeqCst);
    shared.wait_for(0, 5);
    // No page is touched twice, so that rounds add up.
    let (begun, mut all) = (Instant::now(), 0u64);
    let is_near = |bytes: u64| bytes.abs_diff(32 << 20) <= 6 << 20;
    while !is_near(all) {
        assert!(begun.elapsed() < PATIENCE, "{all} of 32 MiB");
        std::thread::sleep(Duration::from_millis(300));
        all += touched();
    }
    std::thread::sleep(Duration::from_secs(1));
    all += touched();
    assert!(is_near(all), "{all} of 32 MiB");
}

/// A loop in which each page goes back to swap at once, so that scans find hardly any page present.
#[test]
fn swap_returns_between_two_scans_are_counted() {
    let _one_at_a_time = ALONE.lock();
    let Some(_zram) = swap() else { return };
    let shared = Shared::new();
    let done = shared.word(0);
    let mut child = fork(|| {
        // SAFETY: used within its length.
        let memory = unsafe { map(ALL, libc::MAP_PRIVATE) };
        // SAFETY: our own mapping.
        unsafe { libc::madvise(memory.cast(), ALL, libc::MADV_NOHUGEPAGE) };
        for at in (0..ALL).step_by(PAGE).cycle() {
            // SAFETY: within the mapping.
            unsafe { memory.add(at).write_volatile(1) };
            // SAFETY: as above.
            unsafe { libc::madvise(memory.add(at).cast(), PAGE, libc::MADV_PAGEOUT) };
            done.fetch_add(1, Ordering::SeqCst);
        }
    });
    child.go();
    shared.wait_for(0, 2 * (ALL / PAGE) as u64);
    let pages = Pages::start(Scope::Tree(child.pid), Settings { overhead: 0.2, ..Settings::default() }).unwrap();
    let round = || (pages.round().unwrap().unwrap(), done.load(Ordering::SeqCst), Instant::now());
    // Time to notice major faults and to find a pace.
    std::thread::sleep(Duration::from_secs(3));
    let (_, before, begun) = round();
    std::thread::sleep(Duration::from_secs(2));
    let (seen, after, ended) = round();
    let made = (after - before) as f64 / (ended - begun).as_secs_f64();
    let share = |bytes: usize| seen.misses_at(bytes as u64) / made;
    assert!(seen.rung.contains("and faults on what was swapped out"), "{}", seen.rung);
    assert!((0.9..1.1).contains(&share(ALL / 2)), "{} of them with a half: {seen:?}", share(ALL / 2));
    assert!((0.9..1.1).contains(&share(ALL * 15 / 16)), "{} of them with nearly all: {seen:?}", share(ALL * 15 / 16));
    assert!(share(ALL * 17 / 16) < 0.01, "{} of them with all and more: {seen:?}", share(ALL * 17 / 16));
}

/// In a PID namespace the kernel's PIDs differ from ours.
#[test]
fn swap_returns_are_counted_in_a_pid_namespace() {
    const INSIDE: [&str; 3] = ["--pid", "--fork", "--mount-proc"];
    let _one_at_a_time = ALONE.lock();
    let unshare = || Command::new("unshare");
    let can = unshare().args(INSIDE).arg("true").output().is_ok_and(|output| output.status.success());
    if !need("unshare", can) {
        return;
    }
    let test = ["--exact", "what_comes_back_and_goes_between_two_looks_is_told"];
    let output = unshare().args(INSIDE).arg(env::current_exe().unwrap()).args(test).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The kernel reclaims sampled pages before other idle pages, because only their Accessed bits are cleared.
#[test]
fn idle_heap_is_found_when_its_sample_is_swapped_out() {
    let _one_at_a_time = ALONE.lock();
    let parent = Path::new("/sys/fs/cgroup/memory");
    let v1 = parent.join("memory.swappiness").exists();
    let Some(_zram) = swap().filter(|_| need("the memory controller of cgroup v1", v1)) else { return };
    let dir = parent.join(format!("test-idle-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    let shared = Shared::new();
    let step = shared.word(0);
    let mut child = fork(|| {
        fs::write(dir.join("cgroup.procs"), "0").unwrap();
        // SAFETY: used within its length.
        let memory = unsafe { map(ALL, libc::MAP_PRIVATE) };
        // SAFETY: our own mapping.
        unsafe { libc::madvise(memory.cast(), ALL, libc::MADV_NOHUGEPAGE) };
        // SAFETY: within the mapping.
        (0..ALL).step_by(PAGE).for_each(|at| unsafe { memory.add(at).write_volatile(1) });
        step.store(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_secs(60));
    });
    child.go();
    shared.wait_for(0, 1);
    let pages = Pages::start(Scope::Tree(child.pid), Settings { overhead: 0.2, ..Settings::default() }).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    fs::write(dir.join("memory.limit_in_bytes"), (ALL * 3 / 4).to_string()).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let idle = pages.idle(Duration::from_secs(1));
    let heap = || idle.iter().filter(|run| run.is_heap);
    let (resident, all) =
        (heap().map(|run| run.resident).sum::<u64>(), heap().map(|run| run.end - run.start).sum::<u64>());
    let status = linux::procfs::status(child.pid).unwrap();
    drop((pages, child));
    fs::remove_dir(&dir).unwrap();
    let held = status.rss_anon.unwrap();
    assert!((ALL as u64 / 2..ALL as u64 * 7 / 8).contains(&held), "{held}");
    assert!(resident <= held && held - resident < 6 << 20, "{resident} of {held}: {idle:?}");
    assert!(all.abs_diff(ALL as u64) < 2 << 20, "{all}: {idle:?}");
}
