//! Shared memory that was there before a run: files on tmpfs and System V segments. It is charged to whoever made it, so a job
//! that only reads it has it for nothing.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::Named;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::mounts;

/// Smaller files and segments are not looked for, bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// Folders and files that are looked at, at most.
const MOST_ENTRIES: usize = 20_000;
/// File systems of the system's own, in which no program keeps large files for another.
const NOT_SEARCHED: [&str; 4] = ["/sys", "/proc", "/dev", "/run/credentials"];

/// What there was before a run; it is noted whether it is used from then on.
#[derive(Debug)]
pub struct Before {
    notifier: Option<OwnedFd>,
    /// By watch.
    files: BTreeMap<i32, Named>,
    segments: BTreeMap<u64, Segment>,
}

/// A line of `/proc/sysvipc/shm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    resident_bytes: u64,
    last_pid: i32,
    attached: u64,
    attached_at: u64,
    detached_at: u64,
}

impl Before {
    /// Notes what there is now. Costs a look at each file on tmpfs.
    pub fn note() -> Before {
        let notifier = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let mut files = BTreeMap::new();
        for (path, bytes) in large_files() {
            let Some(notifier) = &notifier else { break };
            if let Ok(watch) = inotify::add_watch(notifier, &path, WatchFlags::OPEN | WatchFlags::ACCESS) {
                files.insert(watch, Named { name: path.to_string_lossy().into_owned(), bytes: Some(bytes) });
            }
        }
        Before { notifier, files, segments: segments() }
    }

    /// What of it was opened, read or attached since then, by whomever, largest first.
    pub fn used(self) -> Vec<Named> {
        let mut used: Vec<Named> =
            self.notified().into_iter().filter_map(|watch| self.files.get(&watch).cloned()).collect();
        let now = segments();
        for (id, before) in self.segments {
            let same = |now: &Segment| Segment { resident_bytes: 0, ..*now } == Segment { resident_bytes: 0, ..before };
            if before.resident_bytes >= LEAST_BYTES && !now.get(&id).is_some_and(same) {
                let name = format!("System V segment {id}");
                used.push(Named { name, bytes: Some(before.resident_bytes) });
            }
        }
        used.sort_by_key(|used| std::cmp::Reverse(used.bytes));
        used
    }

    /// The watches that saw something.
    fn notified(&self) -> Vec<i32> {
        let mut found = Vec::new();
        let Some(notifier) = &self.notifier else { return found };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(notifier, &mut buffer);
        while let Ok(event) = reader.next() {
            let of_use = event.events().intersects(ReadFlags::OPEN | ReadFlags::ACCESS);
            if of_use && !found.contains(&event.wd()) {
                found.push(event.wd());
            }
        }
        found
    }
}

/// Files on tmpfs with memory of their own.
fn large_files() -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut entries = 0;
    let is_searched =
        |point: &PathBuf| point == Path::new("/dev/shm") || !NOT_SEARCHED.iter().any(|not| point.starts_with(not));
    for point in mounts::points_of("tmpfs").into_iter().filter(is_searched) {
        let Ok(device) = fs::symlink_metadata(&point).map(|found| found.dev()) else { continue };
        let mut folders = vec![point];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                entries += 1;
                if entries > MOST_ENTRIES {
                    return found;
                }
                let Ok(facts) = entry.metadata() else { continue };
                // Other file systems may be mounted beneath.
                if facts.dev() != device {
                    continue;
                }
                let bytes = facts.blocks() * 512;
                if facts.is_dir() {
                    folders.push(entry.path());
                } else if facts.is_file() && bytes >= LEAST_BYTES {
                    found.push((entry.path(), bytes));
                }
            }
        }
    }
    found
}

fn segments() -> BTreeMap<u64, Segment> {
    fs::read_to_string("/proc/sysvipc/shm").map(|text| parse(&text)).unwrap_or_default()
}

/// Columns by their heading (ipc/shm.c, `sysvipc_shm_proc_show`).
fn parse(text: &str) -> BTreeMap<u64, Segment> {
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let at = |name: &str| heading.iter().position(|heading| *heading == name);
    let columns = ["shmid", "rss", "lpid", "nattch", "atime", "dtime"].map(at);
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let field = |column: usize| fields.get(columns[column]?)?.parse::<u64>().ok();
        let segment = Segment {
            resident_bytes: field(1)?,
            last_pid: field(2)? as i32,
            attached: field(3)?,
            attached_at: field(4)?,
            detached_at: field(5)?,
        };
        Some((field(0)?, segment))
    };
    lines.filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_file_on_tmpfs_that_was_read() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let (read, untouched) = (folder.path().join("read"), folder.path().join("untouched"));
        for path in [&read, &untouched] {
            fs::write(path, vec![1; 3 << 20]).unwrap();
        }
        let before = Before::note();
        fs::read(&read).unwrap();
        let used = before.used();
        let is = |path: &PathBuf| used.iter().find(|used| used.name == path.to_string_lossy());
        assert_eq!(is(&read).and_then(|used| used.bytes), Some(3 << 20));
        assert_eq!(is(&untouched), None);
    }

    #[test]
    fn segments_are_read_by_their_headings() {
        let text = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
                    \x20 -12          3   600              67108864   100   200      1     0     0     0     0         10         11         12              67108864                     0\n";
        let segment = parse(text)[&3];
        assert_eq!((segment.resident_bytes, segment.last_pid, segment.attached), (64 << 20, 200, 1));
        assert!(parse("").is_empty());
    }
}
