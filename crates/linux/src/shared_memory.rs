//! Memory that a job uses and that is charged to others: files on tmpfs and ramfs, memfds, System V segments. It is charged to the process
//! that first touched it, so a job that only reads it gets it for free.
//!
//! fanotify names the process that opens a file, if root allows it. For ramfs, which has no file handles, and without root there is only
//! inotify, which shows that some process opened a file; the caller then bounds that by what the job read, wrote or mapped.

mod charged;
mod opens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::Named;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::holders::FileId;
use crate::{mounts, procfs};
use opens::Opens;

/// Segments smaller than this are ignored, bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// Maximum number of folders and files inspected.
const MOST_ENTRIES: usize = 20_000;
/// Maximum number of descriptors of other processes inspected: 0.2 s at most. Servers may have a million sockets.
const MOST_DESCRIPTORS: usize = 100_000;
/// Maximum number of memfds followed.
const MOST_NAMELESS: usize = 1_000;
/// System file systems, in which no program keeps large files for another.
const NOT_SEARCHED: [&str; 4] = ["/sys", "/proc", "/dev", "/run/credentials"];
/// Type numbers of `statfs` (linux/magic.h).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The files and segments that existed before a run; records whether they are used from then on.
#[derive(Debug)]
pub struct Before {
    opens: Option<Opens>,
    ramfs: Watched,
    tmpfs: Watched,
    inherited: Vec<Named>,
    segments: BTreeMap<u64, Segment>,
}

/// The parts that were used, largest first.
#[derive(Debug, Default)]
pub struct Used {
    /// Files that processes of the job opened, with the bytes charged elsewhere at that time.
    pub by_job: Vec<Named>,
    /// Whether there may be more of those.
    pub is_incomplete: bool,
    /// Files on tmpfs that an unknown process opened, and those that the job inherited open.
    pub perhaps: Vec<Named>,
    /// Files on ramfs that some process opened.
    pub ramfs: Vec<Named>,
    /// System V segments that some process used; and whether the job was the last to do so.
    pub segments: Vec<(Named, bool)>,
}

/// Files watched by inotify, which reports opens by any process.
#[derive(Debug, Default)]
struct Watched {
    notifier: Option<OwnedFd>,
    /// By watch descriptor; folders report their files.
    paths: BTreeMap<i32, PathBuf>,
    /// Their memory before, bytes.
    files: BTreeMap<PathBuf, u64>,
}

/// A line of `/proc/sysvipc/shm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    resident_bytes: u64,
    owner: u32,
    made_by: i32,
    last_pid: i32,
    attached: u64,
    attached_at: u64,
    detached_at: u64,
}

impl Before {
    /// Records what exists now. `stub`: the process that will become the job; `group`: the directory of the job's memory cgroup. Scans all
    /// files on ramfs, and without root on tmpfs, and the descriptors of all processes.
    pub fn note(stub: i32, group: Option<&Path>) -> Before {
        let nameless = nameless(stub);
        let opens = Opens::watch(&points("tmpfs"), &nameless, group);
        let tmpfs = match &opens {
            Some(_) => Watched::default(),
            None => Watched::of(&points("tmpfs"), &nameless),
        };
        let ramfs = Watched::of(&points("ramfs"), &[]);
        Before { opens, ramfs, tmpfs, inherited: inherited(stub), segments: segments() }
    }

    /// Reads the events so far, before the kernel's queue is full.
    pub fn drain(&mut self) {
        if let Some(opens) = &mut self.opens {
            opens.drain();
        }
    }

    /// What was opened, read or attached since then. `is_job`: whether a process is, or was, of the job.
    pub fn used(self, is_job: &dyn Fn(i32) -> bool) -> Used {
        let (by_job, is_incomplete) = self.opens.map(|opens| opens.by(is_job)).unwrap_or_default();
        let now = segments();
        let same = |id: &u64, before: &Segment| {
            now.get(id)
                .is_some_and(|now| Segment { resident_bytes: 0, ..*now } == Segment { resident_bytes: 0, ..*before })
        };
        let segments =
            self.segments.into_iter().filter(|(id, before)| before.resident_bytes >= LEAST_BYTES && !same(id, before));
        let segments = segments.map(|(id, before)| {
            let named = Named { name: name_of_segment(id), bytes: Some(before.resident_bytes) };
            // It is unknown which process removed a missing one.
            (named, now.get(&id).is_some_and(|now| is_job(now.last_pid)))
        });
        let mut used = Used {
            by_job,
            is_incomplete,
            perhaps: self.tmpfs.opened().into_iter().chain(self.inherited).collect(),
            ramfs: self.ramfs.opened(),
            segments: segments.collect(),
        };
        used.perhaps.sort_by_key(|used| std::cmp::Reverse(used.bytes));
        used
    }
}

impl Watched {
    fn of(points: &[PathBuf], nameless: &[PathBuf]) -> Watched {
        if points.is_empty() && nameless.is_empty() {
            return Watched::default();
        }
        let notifier = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let mut watched = Watched { notifier, ..Watched::default() };
        let (folders, files) = files_of(points);
        watched.files = files;
        for path in nameless {
            let bytes = fs::metadata(path).map_or(0, |facts| facts.blocks() * 512);
            watched.files.insert(path.clone(), bytes);
        }
        let Some(notifier) = &watched.notifier else { return watched };
        for path in folders.iter().chain(nameless) {
            if let Ok(watch) = inotify::add_watch(notifier, path, WatchFlags::OPEN) {
                watched.paths.insert(watch, path.clone());
            }
        }
        watched
    }

    /// The files that existed before and were opened since, largest first.
    fn opened(&self) -> Vec<Named> {
        let mut found = BTreeSet::new();
        let Some(notifier) = &self.notifier else { return Vec::new() };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(notifier, &mut buffer);
        while let Ok(event) = reader.next() {
            let Some(path) = self.paths.get(&event.wd()).filter(|_| event.events().contains(ReadFlags::OPEN)) else {
                continue;
            };
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
            found.insert(name.map_or_else(|| path.clone(), |name| path.join(name)));
        }
        let of_path = |path: PathBuf| {
            let bytes = *self.files.get(&path)?;
            Some(Named { name: path.to_string_lossy().into_owned(), bytes: Some(bytes) })
        };
        let mut found: Vec<Named> = found.into_iter().filter_map(of_path).collect();
        found.sort_by_key(|named| std::cmp::Reverse(named.bytes));
        found
    }
}

/// Mount points of this type in which programs keep files.
fn points(kind: &str) -> Vec<PathBuf> {
    let is_searched =
        |point: &PathBuf| point == Path::new("/dev/shm") || !NOT_SEARCHED.iter().any(|not| point.starts_with(not));
    mounts::points_of(kind).into_iter().filter(is_searched).collect()
}

/// Folders, and files with memory of their own.
fn files_of(points: &[PathBuf]) -> (Vec<PathBuf>, BTreeMap<PathBuf, u64>) {
    let (mut found, mut all) = (BTreeMap::new(), Vec::new());
    let mut entries = 0;
    for point in points {
        let Ok(device) = fs::symlink_metadata(point).map(|found| found.dev()) else { continue };
        let mut folders = vec![point.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                entries += 1;
                if entries > MOST_ENTRIES {
                    return (all, found);
                }
                let Ok(facts) = entry.metadata() else { continue };
                // Other file systems may be mounted beneath.
                if facts.dev() != device {
                    continue;
                }
                let bytes = facts.blocks() * 512;
                if facts.is_dir() {
                    folders.push(entry.path());
                } else if facts.is_file() && bytes > 0 {
                    found.insert(entry.path(), bytes);
                }
            }
            all.push(folder);
        }
    }
    (all, found)
}

/// memfds and unlinked files in memory, by the descriptors of other processes that have them open, without bursar's own.
fn nameless(stub: i32) -> Vec<PathBuf> {
    let own = std::process::id() as i32;
    let mut known = BTreeSet::new();
    let others = procfs::processes().into_iter().filter(|pid| *pid != own && *pid != stub);
    let open = others.flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let nameless = open.take(MOST_DESCRIPTORS).map(|entry| entry.path()).filter(|path| {
        let Ok(link) = fs::read_link(path) else { return false };
        let link = link.to_string_lossy();
        let has_no_name = link.starts_with("/memfd:") || link.ends_with(" (deleted)");
        has_no_name && is_in_memory(path) && FileId::of(path).is_some_and(|id| known.insert(id))
    });
    nameless.take(MOST_NAMELESS).collect()
}

/// Files in memory that the job has open from its start.
fn inherited(stub: i32) -> Vec<Named> {
    let own = fs::read_link(format!("/proc/{stub}/exe")).unwrap_or_default();
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{stub}/fd")).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(name) = fs::read_link(&path) else { continue };
        if !is_readable(stub, &entry.file_name().to_string_lossy()) {
            continue;
        }
        let facts = fs::metadata(&path).ok().filter(|facts| facts.is_file() && facts.blocks() > 0);
        let Some(facts) = facts.filter(|_| name != own && is_in_memory(&path)) else { continue };
        if FileId::of(&path).is_some_and(|id| known.insert(id)) {
            found.push(Named { name: name.to_string_lossy().into_owned(), bytes: Some(facts.blocks() * 512) });
        }
    }
    found
}

/// Files opened only for writing, such as logs, are not read.
fn is_readable(pid: i32, descriptor: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_none_or(|flags| flags & libc::O_ACCMODE as u32 != libc::O_WRONLY as u32)
}

/// Whether a file is on tmpfs or ramfs, or is a memfd.
pub(crate) fn is_in_memory(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| IN_MEMORY.contains(&(found.f_type as u64 & 0xffff_ffff)))
}

fn segments() -> BTreeMap<u64, Segment> {
    fs::read_to_string("/proc/sysvipc/shm").map(|text| parse(&text)).unwrap_or_default()
}

/// The ids of the existing System V segments.
pub(crate) fn segment_ids() -> BTreeSet<u64> {
    segments().into_keys().collect()
}

/// The System V segments that these processes created, and those not among `before` whose creator, of the same user, has ended and may not
/// have been sampled: name, memory in bytes, and whether a process has it attached.
pub(crate) fn segments_made(pids: &BTreeSet<i32>, before: &BTreeSet<u64>) -> Vec<(String, u64, bool)> {
    let own = rustix::process::geteuid().as_raw();
    let has_ended = |pid: i32| !Path::new(&format!("/proc/{pid}")).exists();
    let is_of_job = |id: &u64, segment: &Segment| {
        pids.contains(&segment.made_by) || !before.contains(id) && segment.owner == own && has_ended(segment.made_by)
    };
    let made = segments().into_iter().filter(|(id, segment)| is_of_job(id, segment));
    made.map(|(id, segment)| (name_of_segment(id), segment.resident_bytes, segment.attached > 0)).collect()
}

fn name_of_segment(id: u64) -> String {
    format!("System V segment {id}")
}

/// Parses columns by their heading (ipc/shm.c, `sysvipc_shm_proc_show`).
fn parse(text: &str) -> BTreeMap<u64, Segment> {
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let at = |name: &str| heading.iter().position(|heading| *heading == name);
    let columns = ["shmid", "rss", "uid", "cpid", "lpid", "nattch", "atime", "dtime"].map(at);
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let field = |column: usize| fields.get(columns[column]?)?.parse::<u64>().ok();
        let segment = Segment {
            resident_bytes: field(1)?,
            owner: field(2)? as u32,
            made_by: field(3)? as i32,
            last_pid: field(4)? as i32,
            attached: field(5)?,
            attached_at: field(6)?,
            detached_at: field(7)?,
        };
        Some((field(0)?, segment))
    };
    lines.filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A file of this test, charged to its cgroup.
    fn file_in(folder: &tempfile::TempDir, name: &str, bytes: usize) -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, vec![1; bytes]).unwrap();
        path
    }

    fn bytes_of(found: &[Named], path: &Path) -> Option<u64> {
        found.iter().find(|used| used.name == path.to_string_lossy()).and_then(|used| used.bytes)
    }

    #[test]
    fn finds_the_files_on_tmpfs_that_a_process_of_the_job_opened() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let small: Vec<PathBuf> = (0..8).map(|n| file_in(&folder, &format!("small-{n}"), 64 << 10)).collect();
        let (others, untouched) = (file_in(&folder, "others", 3 << 20), file_in(&folder, "untouched", 3 << 20));
        let mut before = Before::note(0, None);
        let cat = |paths: &[PathBuf]| {
            let mut cat = Command::new("cat").args(paths).stdout(Stdio::null()).spawn().unwrap();
            cat.wait().unwrap();
            cat.id() as i32
        };
        let job = cat(&small);
        cat(std::slice::from_ref(&others));
        before.drain();
        let is_root = before.opens.is_some();
        let used = before.used(&|pid| pid == job);
        if is_root {
            // The cgroup of its pages is not checked: they were just created.
            assert!(used.by_job.iter().all(|used| used.name != others.to_string_lossy()), "{used:?}");
            assert_eq!(used.perhaps.len(), 0, "{used:?}");
        } else {
            assert_eq!(bytes_of(&used.perhaps, &small[0]), Some(64 << 10), "{used:?}");
            assert_eq!(bytes_of(&used.perhaps, &others), Some(3 << 20), "{used:?}");
        }
        assert_eq!(bytes_of(&used.perhaps, &untouched), None);
    }

    #[test]
    fn inotify_reports_opened_files_by_their_folders() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let (read, untouched) = (file_in(&folder, "read", 64 << 10), file_in(&folder, "untouched", 3 << 20));
        let watched = Watched::of(&[folder.path().into()], &[]);
        fs::read(&read).unwrap();
        let made_later = file_in(&folder, "later", 1 << 20);
        let found = watched.opened();
        assert_eq!(bytes_of(&found, &read), Some(64 << 10));
        assert_eq!((bytes_of(&found, &untouched), bytes_of(&found, &made_later)), (None, None));
    }

    #[test]
    fn a_file_in_memory_that_a_process_has_open_is_inherited() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = file_in(&folder, "gone", 3 << 20);
        let open = fs::File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let mut child = Command::new("sleep").arg("20").stdin(open).spawn().unwrap();
        let pid = child.id() as i32;
        let (found, all) = (inherited(pid), nameless(0));
        child.kill().unwrap();
        child.wait().unwrap();
        // Other tests of this process may have some open at the same time.
        let own: Vec<&Named> = found.iter().filter(|file| file.name.starts_with(&*path.to_string_lossy())).collect();
        assert_eq!(own.len(), 1, "{found:?}");
        assert_eq!(own[0].bytes, Some(3 << 20));
        assert!(all.contains(&PathBuf::from(format!("/proc/{pid}/fd/0"))), "{all:?}");
    }

    #[test]
    fn a_segment_removed_by_others_is_not_the_jobs() {
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 3 << 20, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0);
        let remove = || unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), 3 << 20) }.fill(1);
        unsafe { libc::shmdt(at) };
        let before = Before::note(0, None);
        assert_eq!(remove(), 0);
        let used = before.used(&|_| true);
        let name = format!("System V segment {id}");
        let of_it: Vec<_> = used.segments.iter().filter(|(named, _)| named.name == name).collect();
        assert_eq!(of_it, [&(Named { name: name.clone(), bytes: Some(3 << 20) }, false)]);
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
