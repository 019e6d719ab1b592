//! Tests the tracker against known truths: children of this test read, write and map files of known length.
//!
//! Needs root. Otherwise tests are skipped with a message, or fail if `BURSAR_NO_SKIP=1`.

#![allow(unsafe_code)]

#[allow(dead_code, reason = "shared with other tests")]
mod child;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use linux::bpf::Rung;
use linux::procfs;
use model::ReferenceKind::{self, Fault, Read as Reads, Removal, Write as Writes};
use track::{Loading, Tracked};

use child::{Child, fork};

const PAGE: usize = 4096;

/// Follows a child from before it begins until after it has ended.
fn tracked_from(best: Rung, work: impl FnOnce()) -> Option<(Tracked, Child)> {
    let mut child = fork(work);
    let following = Loading::start(best).and_then(|loading| loading.follow(&[child.pid], procfs::monotonic_ns()));
    let tracker = match following {
        Ok(tracker) => tracker,
        Err(error) => {
            child.go();
            child.wait();
            assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "{error}");
            eprintln!("skipped: {error}");
            return None;
        }
    };
    child.go();
    child.wait();
    let tracked = tracker.finish().unwrap();
    assert_eq!(tracked.lost_events, 0);
    Some((tracked, child))
}

/// Only the best rung sees mapped files; it needs Linux 6.12.
fn sees_mapped(tracked: &Tracked) -> bool {
    let sees = tracked.rung == Rung::Filemap.to_string();
    if !sees {
        assert!(tracked.not_visible.contains(&("mapped files".into(), None)), "{:?}", tracked.not_visible);
        eprintln!("skipped: mapped files are not seen by the {}", tracked.rung);
    }
    sees
}

fn tracked(work: impl FnOnce()) -> Option<(Tracked, Child)> {
    tracked_from(Rung::Filemap, work)
}

/// A directory on the disk of the project, not on a tmpfs.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn file_of(dir: &Path, name: &str, bytes: usize) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, vec![7; bytes]).unwrap();
    path
}

/// Drops the file's clean pages.
fn evict(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: no pointers.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
}

/// The referenced pages of a file, one by one.
fn pages(tracked: &Tracked, path: &Path) -> Vec<(u64, ReferenceKind)> {
    let stat = fs::metadata(path).unwrap();
    let mut pages = Vec::new();
    for reference in &tracked.references {
        let file = &tracked.files[reference.file as usize];
        if (file.device, file.inode) == (stat.dev(), stat.ino()) && reference.kind != Removal {
            let range = reference.first_page..reference.first_page + u64::from(reference.pages);
            pages.extend(range.map(|page| (page, reference.kind)));
        }
    }
    pages
}

fn assert_same(seen: &[(u64, ReferenceKind)], expected: &[(u64, ReferenceKind)], what: &str) {
    let differs = seen.iter().zip(expected).position(|(s, e)| s != e).unwrap_or(seen.len().min(expected.len()));
    let near =
        |all: &[(u64, ReferenceKind)]| all.iter().skip(differs.saturating_sub(3)).take(8).copied().collect::<Vec<_>>();
    assert!(
        seen == expected,
        "{what}: {} references where {} are expected; from {differs} on {:?} instead of {:?}",
        seen.len(),
        expected.len(),
        near(seen),
        near(expected)
    );
}

fn times(rounds: usize, pages: u64, kind: ReferenceKind) -> Vec<(u64, ReferenceKind)> {
    (0..rounds).flat_map(|_| (0..pages).map(move |page| (page, kind))).collect()
}

fn read_through(path: &Path, chunk: usize) {
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; chunk];
    while file.read(&mut buffer).unwrap() > 0 {}
}

#[test]
fn k_reads_of_a_file_reference_each_page_k_times() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 1000 * PAGE);
    for best in [Rung::Filemap, Rung::Syscalls] {
        for chunk in [PAGE, 5000, 16 * PAGE, 1 << 20] {
            for cold in [false, true] {
                if cold {
                    evict(&path);
                }
                let work = || (0..3).for_each(|_| read_through(&path, chunk));
                let Some((tracked, _)) = tracked_from(best, work) else { return };
                assert_same(
                    &pages(&tracked, &path),
                    &times(3, 1000, Reads),
                    &format!("{best}, chunks of {chunk}, cold: {cold}"),
                );
            }
        }
    }
}

#[test]
fn a_request_beyond_the_end_of_the_file_ends_there() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 2 * PAGE + 1);
    let work = || {
        (0..4).for_each(|_| read_through(&path, 128 << 10));
    };
    let Some((tracked, _)) = tracked(work) else { return };
    assert_eq!(pages(&tracked, &path), times(4, 3, Reads));
}

#[test]
fn truncated_dropped_and_deleted_pages_are_removals() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 1000 * PAGE);
    let work = || {
        let file = File::options().read(true).write(true).open(&path).unwrap();
        read_through(&path, 1 << 20);
        // A dirty large folio is not split.
        file.sync_all().unwrap();
        file.set_len(600 * PAGE as u64).unwrap();
        evict(&path);
        read_through(&path, 1 << 20);
        // Its pages stay as long as it is open.
        fs::remove_file(&path).unwrap();
        file.read_exact_at(&mut vec![0; PAGE], 0).unwrap();
        drop(file);
    };
    let Some((tracked, _)) = tracked(work) else { return };
    if !sees_mapped(&tracked) {
        return;
    }
    let name = |file: u32| tracked.files[file as usize].path.clone();
    let of_file =
        tracked.references.iter().filter(|reference| name(reference.file).is_some_and(|at| at.ends_with("data")));
    let all = of_file.flat_map(|reference| {
        (0..u64::from(reference.pages)).map(move |page| (reference.first_page + page, reference.kind))
    });
    let cut = (600..1000).map(|page| (page, Removal));
    let expected: Vec<_> = [times(1, 1000, Reads), cut.collect(), times(1, 600, Removal), times(1, 600, Reads)]
        .concat()
        .into_iter()
        .chain([(0, Reads)])
        .chain(times(1, 600, Removal))
        .collect();
    let mut all: Vec<_> = all.collect();
    // A large folio is split first, and its end is removed before its begin.
    all[1000..1400].sort_by_key(|(page, _)| *page);
    assert_same(&all, &expected, "reads and removals");
}

#[test]
fn preads_at_any_offset_reference_the_pages_read() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 4096 * PAGE);
    evict(&path);
    let mut state = 42u64;
    let offsets: Vec<u64> = (0..3000)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % 4095 * PAGE as u64
        })
        .collect();
    // Two pages each, but a page just read is not referenced again.
    let mut expected = Vec::new();
    let mut last = u64::MAX;
    for offset in &offsets {
        let first = offset / PAGE as u64;
        expected.extend((first..first + 2).skip(usize::from(first == last)).map(|page| (page, Reads)));
        last = first + 1;
    }
    for best in [Rung::Filemap, Rung::Syscalls] {
        let work = || {
            let file = File::open(&path).unwrap();
            let mut buffer = vec![0; 2 * PAGE];
            offsets.iter().for_each(|offset| file.read_exact_at(&mut buffer, *offset).unwrap());
        };
        let Some((tracked, _)) = tracked_from(best, work) else { return };
        assert_same(&pages(&tracked, &path), &expected, &format!("{best}"));
    }
}

#[test]
fn sendfile_references_the_pages_sent() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 500 * PAGE);
    for best in [Rung::Filemap, Rung::Syscalls] {
        let work = || {
            let (from, to) = (File::open(&path).unwrap(), File::create("/dev/null").unwrap());
            loop {
                // SAFETY: both are open; no offset is given.
                let sent =
                    unsafe { libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), std::ptr::null_mut(), 100 * PAGE) };
                assert!(sent >= 0);
                if sent == 0 {
                    break;
                }
            }
        };
        let Some((tracked, _)) = tracked_from(best, work) else { return };
        assert_same(&pages(&tracked, &path), &times(1, 500, Reads), &format!("{best}"));
    }
}

#[test]
fn touching_a_mapped_file_references_its_pages() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 700 * PAGE);
    for cold in [true, false] {
        if cold {
            evict(&path);
        }
        let work = || {
            let file = File::open(&path).unwrap();
            for _ in 0..2 {
                child::touch_mapped(&file, 700 * PAGE, false);
            }
        };
        let Some((tracked, _)) = tracked(work) else { return };
        if !sees_mapped(&tracked) {
            return;
        }
        assert_same(&pages(&tracked, &path), &times(2, 700, Fault), &format!("cold: {cold}"));
    }
}

#[test]
fn storing_through_a_mapping_references_each_page_once() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 300 * PAGE);
    evict(&path);
    let work = || {
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        child::touch_mapped(&file, 300 * PAGE, true);
    };
    let Some((tracked, _)) = tracked(work) else { return };
    if !sees_mapped(&tracked) {
        return;
    }
    let seen: Vec<u64> = pages(&tracked, &path).into_iter().map(|(page, _)| page).collect();
    assert_eq!(seen, (0..300).collect::<Vec<_>>());
}

#[test]
fn all_kinds_of_writes_reference_the_pages_written() {
    let dir = on_disk();
    let path = dir.path().join("data");
    let mut expected = times(2, 256, Writes);
    expected.extend((100..110).map(|page| (page, Writes)));
    expected.extend((256..260).map(|page| (page, Writes)));
    for best in [Rung::Filemap, Rung::Syscalls] {
        for chunk in [PAGE, 1 << 18] {
            let work = || {
                let data = vec![1; 256 * PAGE];
                let mut file = File::create(&path).unwrap();
                for _ in 0..2 {
                    file.seek(SeekFrom::Start(0)).unwrap();
                    data.chunks(chunk).for_each(|part| file.write_all(part).unwrap());
                }
                file.write_all_at(&data[..10 * PAGE], 100 * PAGE as u64).unwrap();
                let mut end = OpenOptions::new().append(true).open(&path).unwrap();
                end.write_all(&data[..4 * PAGE]).unwrap();
            };
            let Some((tracked, _)) = tracked_from(best, work) else { return };
            assert_same(&pages(&tracked, &path), &expected, &format!("{best}, chunks of {chunk}"));
        }
    }
}

#[test]
fn direct_io_is_reported_and_not_referenced() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 64 * PAGE);
    evict(&path);
    for best in [Rung::Filemap, Rung::Syscalls] {
        let work = || {
            let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
            child::read_aligned(&file, 64 * PAGE);
        };
        let Some((tracked, _)) = tracked_from(best, work) else { return };
        assert!(
            tracked.not_visible.contains(&("O_DIRECT".into(), Some(64 * PAGE as u64))),
            "{:?}",
            tracked.not_visible
        );
        assert_eq!(pages(&tracked, &path), []);
    }
}

#[test]
fn a_tmpfs_file_is_reported_and_not_referenced() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = file_of(dir.path(), "data", 64 * PAGE);
    for best in [Rung::Filemap, Rung::Syscalls] {
        let work = || {
            let mut file = File::open(&path).unwrap();
            file.read_to_end(&mut Vec::new()).unwrap();
            // Open until the end.
            std::mem::forget(file);
        };
        let Some((tracked, _)) = tracked_from(best, work) else { return };
        assert!(tracked.not_visible.iter().any(|(name, _)| name == "tmpfs"), "{:?}", tracked.not_visible);
        assert_eq!(pages(&tracked, &path), []);
    }
}

#[test]
fn only_files_cached_before_are_foreign() {
    let dir = on_disk();
    let warm = file_of(dir.path(), "warm with a blank", 777 * PAGE);
    let cold = file_of(dir.path(), "cold", 888 * PAGE);
    evict(&cold);
    read_through(&warm, 1 << 20);
    let work = || {
        read_through(&warm, 1 << 16);
        read_through(&cold, 1 << 16);
        let written = vec![2; 50 * PAGE];
        fs::write(dir.path().join("written"), &written).unwrap();
    };
    let Some((tracked, _)) = tracked(work) else { return };
    let device = fs::metadata(&warm).unwrap().dev();
    let inodes = [&warm, &cold, &dir.path().join("written")].map(|path| fs::metadata(path).unwrap().ino());
    let ours: Vec<_> = tracked.foreign.iter().filter(|f| f.device == device && inodes.contains(&f.inode)).collect();
    assert_eq!(ours.len(), 1, "{ours:?}");
    assert_eq!((ours[0].inode, ours[0].cached_bytes), (inodes[0], 777 * PAGE as u64));
    // The path may lead through another mount of the same file system.
    let path = ours[0].path.as_ref().unwrap();
    assert_eq!(fs::metadata(path).unwrap().ino(), inodes[0], "{path}");
}

#[test]
fn a_reused_inode_number_is_another_file() {
    let dir = on_disk();
    let path = dir.path().join("data");
    let work = || {
        for _ in 0..3 {
            fs::write(&path, vec![3; 10 * PAGE]).unwrap();
            fs::remove_file(&path).unwrap();
        }
    };
    let Some((tracked, _)) = tracked(work) else { return };
    let written = tracked.references.iter().filter(|reference| reference.kind == Writes);
    let mut pages: HashMap<u32, u32> = HashMap::new();
    written.for_each(|reference| *pages.entry(reference.file).or_default() += reference.pages);
    assert_eq!(pages.into_values().collect::<Vec<_>>(), [10; 3]);
}

#[test]
fn children_of_children_are_followed_and_others_are_not() {
    let dir = on_disk();
    let path = file_of(dir.path(), "data", 99 * PAGE);
    let other = file_of(dir.path(), "other", 999 * PAGE);
    let work = || {
        let mut child = fork(|| {
            let mut grandchild = fork(|| read_through(&path, PAGE));
            grandchild.go();
            grandchild.wait();
        });
        child.go();
        child.wait();
    };
    let Some((tracked, child)) = tracked(|| {
        work();
    }) else {
        return;
    };
    read_through(&other, PAGE);
    assert_eq!(pages(&tracked, &path), times(1, 99, Reads));
    let parents: HashMap<i32, Option<i32>> = tracked.processes.iter().map(|p| (p.key.pid, p.parent)).collect();
    assert_eq!(parents.len(), 3);
    let of = |parent| parents.iter().find(|(_, p)| **p == Some(parent)).map(|(pid, _)| *pid);
    assert_eq!(of(of(child.pid).unwrap()).and_then(of), None);
}

#[test]
fn short_processes_have_the_peaks_of_wait4() {
    let truths = tempfile::tempfile().unwrap();
    let work = || {
        for i in 0..200usize {
            let mut short = fork(|| {
                let memory = vec![1u8; (i % 7) << 20];
                std::hint::black_box(&memory);
                child::exit(i as i32 % 5);
            });
            short.go();
            let usage = short.wait();
            (&truths).write_all(format!("{} {} {}\n", short.pid, usage.ru_maxrss * 1024, i % 5).as_bytes()).unwrap();
        }
    };
    let Some((tracked, child)) = tracked(work) else { return };
    let mut text = String::new();
    (&truths).seek(SeekFrom::Start(0)).unwrap();
    (&truths).read_to_string(&mut text).unwrap();
    let seen: HashMap<i32, _> = tracked.processes.iter().map(|p| (p.key.pid, p)).collect();
    assert_eq!(text.lines().count(), 200);
    for line in text.lines() {
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let process = seen[&(numbers[0] as i32)];
        assert_eq!(process.max_rss_bytes, Some(numbers[1]), "{process:?}");
        assert_eq!(process.exit_status, Some(numbers[2] as i32));
        assert_eq!((process.parent, process.source.as_str()), (Some(child.pid), "tracepoint"));
        assert!(
            process.lifetime_seconds.is_some() && process.thread_seconds.is_some() && process.minor_faults.is_some()
        );
    }
    assert_eq!(tracked.processes.len(), 201);
    // wait4 returns the greatest peak of a process and those it waited for.
    let greatest = tracked.processes.iter().filter_map(|p| p.max_rss_bytes).max();
    assert_eq!(greatest, Some(child.usage.unwrap().ru_maxrss as u64 * 1024));
}

#[test]
fn threads_are_summed_and_exec_sets_the_name() {
    let work = || {
        let threads: Vec<_> =
            (0..4).map(|_| std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_millis(200)))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        child::exec("sleep", "0.01");
    };
    let Some((tracked, child)) = tracked(work) else { return };
    let process = tracked.processes.iter().find(|p| p.key.pid == child.pid).unwrap();
    assert_eq!(process.command, "sleep");
    // Four threads of 0.2 s each besides the first.
    let (threads, life) = (process.thread_seconds.unwrap(), process.lifetime_seconds.unwrap());
    assert!(threads > life + 0.8, "{threads} {life}");
}

#[test]
fn a_killed_process_has_the_status_of_a_shell() {
    let Some((tracked, child)) = tracked(child::kill_self) else { return };
    let process = tracked.processes.iter().find(|p| p.key.pid == child.pid).unwrap();
    assert_eq!(process.exit_status, Some(128 + libc::SIGKILL));
}
