//! Cgroups in the running kernel.

use std::time::{Duration, Instant};

use linux::cgroup::{Cgroup, Swap};
use linux::journal::Journal;
use linux::place::Place;

use crate::support::{job_cgroup, skip, spawn_in};

const MIB: u64 = 1 << 20;

/// 200 MiB of heap, held until it is killed: nothing reads the pipe that it writes to.
const ALLOCATE: [&str; 4] = ["if=/dev/zero", "bs=200M", "count=1", "status=none"];

#[test]
fn a_job_is_charged_for_its_heap() {
    let Some(cgroup) = job_cgroup("heap") else { return };
    let mut child = spawn_in(&cgroup, "dd", &ALLOCATE);
    let deadline = Instant::now() + Duration::from_secs(20);
    while cgroup.memory().unwrap().anon.unwrap() < 200 * MIB {
        assert!(Instant::now() < deadline, "the heap was never charged: {:?}", cgroup.memory());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(cgroup.processes().unwrap(), [child.id() as i32]);
    assert_eq!(Cgroup::of(child.id() as i32).unwrap().unwrap().dir(), cgroup.dir());
    let state = cgroup.memory().unwrap();
    assert!(state.usage >= state.anon && state.peak >= state.usage, "{state:?}");
    let parts = state.anon.unwrap() + state.file.unwrap() + state.shmem.unwrap() + state.kernel.unwrap();
    assert!(parts.abs_diff(state.usage.unwrap()) < 2 * MIB, "{parts} is not {state:?}");
    cgroup.kill_all().unwrap();
    child.wait().unwrap();
    assert!(cgroup.processes().unwrap().is_empty());
    assert!(cgroup.memory().unwrap().anon.unwrap() < MIB);
}

#[test]
fn oom_kills_are_counted_also_in_child_cgroups() {
    let Some(cgroup) = job_cgroup("limit") else { return };
    cgroup.set_limit(Some(64 * MIB), Swap::Forbidden).unwrap();
    assert_eq!(cgroup.effective_limit(), Some(64 * MIB));
    let killed = |status: std::process::ExitStatus| std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    assert!(killed(spawn_in(&cgroup, "dd", &ALLOCATE).wait().unwrap()));
    let state = cgroup.memory().unwrap();
    assert_eq!(state.oom_kills, Some(1));
    assert_ne!(state.limit_hits, Some(0));
    assert!(state.peak.unwrap() <= 64 * MIB && state.peak.unwrap() > 60 * MIB, "{state:?}");
    if cgroup.version() == linux::cgroup::Version::V1 {
        let child = cgroup.create_child("inner").unwrap();
        assert_eq!(child.effective_limit(), Some(64 * MIB));
        assert!(killed(spawn_in(&child, "dd", &ALLOCATE).wait().unwrap()));
        assert_eq!(cgroup.memory().unwrap().oom_kills, Some(2));
    }
}

#[test]
fn meeting_the_limit_is_counted_where_swap_is_allowed() {
    let Some(cgroup) = job_cgroup("hits") else { return };
    assert_eq!(cgroup.memory().unwrap().limit_hits, Some(0));
    cgroup.set_limit(Some(64 * MIB), Swap::Allowed).unwrap();
    let mut child = spawn_in(&cgroup, "dd", &ALLOCATE);
    let deadline = Instant::now() + Duration::from_secs(20);
    while cgroup.memory().unwrap().limit_hits.is_none_or(|hits| hits == 0) {
        assert!(Instant::now() < deadline, "no hit was counted: {:?}", cgroup.memory());
        std::thread::sleep(Duration::from_millis(10));
    }
    cgroup.kill_all().unwrap();
    child.wait().unwrap();
}

#[test]
fn limits_can_be_lowered_raised_and_removed_in_any_order() {
    let Some(cgroup) = job_cgroup("limits") else { return };
    for swap in [Swap::Forbidden, Swap::Allowed, Swap::Forbidden] {
        for limit in [Some(64 * MIB), Some(512 * MIB), Some(32 * MIB), None, Some(128 * MIB), Some(128 * MIB), None] {
            cgroup.set_limit(limit, swap).unwrap();
            assert_eq!(cgroup.effective_limit(), limit, "{swap:?}");
        }
        cgroup.set_limit(Some(96 * MIB), swap).unwrap();
    }
}

#[test]
fn the_page_cache_that_a_job_left_is_reclaimed() {
    let Some(cgroup) = job_cgroup("cache") else { return };
    // A disk, not a tmpfs; the test may also run on another machine than it was built on.
    let disk = std::env::var_os("CARGO_TARGET_TMPDIR").unwrap_or(env!("CARGO_TARGET_TMPDIR").into());
    let dir = tempfile::tempdir_in(disk).unwrap();
    let path = dir.path().join("file");
    let output = format!("of={}", path.display());
    assert!(
        spawn_in(&cgroup, "dd", &["if=/dev/zero", &output, "bs=1M", "count=100", "status=none"])
            .wait()
            .unwrap()
            .success()
    );
    let before = cgroup.memory().unwrap().file.unwrap();
    if before < 90 * MIB {
        return skip("this file system's page cache is not charged to the cgroup");
    }
    let left = cgroup.reclaim_all().unwrap();
    assert!(left < 4 * MIB, "{left} bytes are left of {before}");
    assert!(cgroup.memory().unwrap().file.unwrap() < MIB);
}

#[test]
fn a_cgroup_is_removed_with_its_children_and_keeps_its_daemon() {
    let Some(cgroup) = job_cgroup("daemon") else { return };
    let dir = cgroup.dir().to_path_buf();
    std::fs::create_dir_all(dir.join("one/two")).unwrap();
    let mut daemon = spawn_in(&cgroup, "sleep", &["60"]);
    drop(cgroup);
    assert!(!dir.exists(), "{} is still there", dir.display());
    assert_eq!(daemon.try_wait().unwrap(), None);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn two_jobs_do_not_disturb_each_other() {
    let (place, journal) = (Place::find(), Journal::open().unwrap());
    let job = |name: &str| place.new_cgroup(&journal, name).unwrap();
    let (Some(one), Some(two)) = (job("one"), job("two")) else { return skip(&place.missing().join("; ")) };
    one.set_limit(Some(64 * MIB), Swap::Forbidden).unwrap();
    assert_eq!(two.effective_limit(), None);
    drop(one);
    assert!(two.memory().unwrap().usage.is_some());
    assert!(spawn_in(&two, "true", &[]).wait().unwrap().success());
}

#[test]
fn pressure_is_the_jobs_own() {
    let Some(cgroup) = job_cgroup("pressure") else { return };
    match cgroup.pressure() {
        Some(pressure) => assert_eq!(pressure.memory_some_seconds, Some(0.0)),
        None => skip("the kernel has no pressure per cgroup here"),
    }
}
