//! Open files, pipes and sockets of processes whose data is in memory. Reads and writes of files on tmpfs, ramfs and memfds bypass the page
//! cache's tracepoints.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rustix::fs::{AtFlags, CWD, FileType, MemfdFlags, StatxFlags, fstat, major, makedev, memfd_create, minor, statx};

use crate::holders::FileId;
use crate::mounts;
use crate::shared_memory::is_in_memory;

/// Bytes per block in `stat`.
const BLOCK_BYTES: u64 = 512;
/// The device of shared anonymous memory and memfds; `None`: no memfd can be made.
static ANONYMOUS: LazyLock<Option<u64>> =
    LazyLock::new(|| Some(fstat(memfd_create("bursar-device", MemfdFlags::CLOEXEC).ok()?).ok()?.st_dev));
/// What the kernel calls shared anonymous memory in `/proc/PID/maps`.
const ANONYMOUS_NAME: &str = "/dev/zero (deleted)";

/// A file in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFile {
    /// Its path, or `/memfd:NAME`.
    pub name: String,
    /// A process that has it open.
    pub pid: i32,
    /// Its memory and swap, bytes.
    pub bytes: u64,
    /// The length that processes have mapped of it, bytes; not all of it need be populated.
    pub mapped_bytes: u64,
}

impl OpenFile {
    /// Its memory beyond the length that may be mapped, bytes.
    pub fn unmapped_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.mapped_bytes)
    }
}

/// Shared memory that processes have mapped and none has open: shared anonymous memory, memfds and files on tmpfs that were closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedShared {
    /// `shared anonymous memory`, `/memfd:NAME`, or a path.
    pub name: String,
    /// Memory and swap that it takes, bytes; or the length that is mapped.
    pub bytes: u64,
    /// Whether it is known what it takes: of a path, and with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
    pub is_known: bool,
}

/// All that processes have open in memory.
#[derive(Clone, Debug, Default)]
pub struct OpenInMemory {
    /// Files.
    pub files: BTreeMap<FileId, OpenFile>,
    /// Shared memory that they have mapped and not open.
    pub mapped_shared: BTreeMap<FileId, MappedShared>,
    /// Pipes without a name, by inode.
    pub pipes: BTreeSet<u64>,
    /// Sockets, by inode.
    pub sockets: BTreeSet<u64>,
}

/// What these processes have open in memory, as far as this user may read it.
pub fn open_in_memory(pids: impl Iterator<Item = i32>) -> OpenInMemory {
    let mut found = OpenInMemory::default();
    let mut mapped: BTreeMap<FileId, Vec<Range<u64>>> = BTreeMap::new();
    let mut links: BTreeMap<FileId, (String, [PathBuf; 2])> = BTreeMap::new();
    for pid in pids {
        let dir = format!("/proc/{pid}");
        let mut own = OpenInMemory::default();
        let text = fs::read(format!("{dir}/mountinfo")).unwrap_or_default();
        let mut mounts = mounts::parse(&text);
        // Their pages are counted apart.
        mounts.retain(|mount| mount.kind != "hugetlbfs");
        let devices = mounts::in_memory(&mounts);
        for entry in fs::read_dir(format!("{dir}/fd")).into_iter().flatten().flatten() {
            own.add(pid, &entry.path(), &devices);
        }
        let maps = fs::read(format!("{dir}/maps"));
        // An exiting process frees its memory first and closes its files last: its mapped files would seem to be only open.
        if maps.as_ref().is_ok_and(Vec::is_empty) {
            continue;
        }
        found.files.extend(own.files);
        found.pipes.extend(own.pipes);
        found.sockets.extend(own.sockets);
        let maps = maps.unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        for (id, range) in maps.lines().filter_map(mapped_range) {
            mapped.entry(id).or_default().push(range);
        }
        for (id, name, addresses) in maps.lines().filter_map(|line| mapped_shared(line, &devices)) {
            let link = Path::new(&dir).join("map_files").join(addresses);
            let paths = || (name.to_string(), [link, PathBuf::from(format!("{dir}/root{name}"))]);
            links.entry(id).or_insert_with(paths);
        }
    }
    for (id, (name, paths)) in links.into_iter().filter(|(id, _)| !found.files.contains_key(id)) {
        let mut facts = paths.iter().filter_map(|path| fs::metadata(path).ok());
        let facts = facts.find(|facts| facts.dev() == id.device && facts.ino() == id.inode);
        let taken = facts.map(|facts| facts.blocks() * BLOCK_BYTES);
        let bytes = taken.unwrap_or_else(|| length(mapped.remove(&id).unwrap_or_default()));
        found.mapped_shared.insert(id, MappedShared { name, bytes, is_known: taken.is_some() });
    }
    for (id, file) in &mut found.files {
        file.mapped_bytes = length(mapped.remove(id).unwrap_or_default());
    }
    found
}

impl OpenInMemory {
    fn add(&mut self, pid: i32, descriptor: &Path, devices: &HashSet<u32>) {
        let Ok(link) = fs::read_link(descriptor) else { return };
        let name = link.to_string_lossy();
        if let Some(pipe) = inode(&name, "pipe") {
            self.pipes.insert(pipe);
        } else if let Some(socket) = inode(&name, "socket") {
            self.sockets.insert(socket);
        } else {
            self.files.extend(open_file(pid, descriptor, name.into_owned(), devices));
        }
    }
}

/// The inode of a descriptor's target such as `pipe:[42]`.
fn inode(link: &str, kind: &str) -> Option<u64> {
    link.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

fn open_file(pid: i32, path: &Path, name: String, devices: &HashSet<u32>) -> Option<(FileId, OpenFile)> {
    // Do not wait for a network file system whose server does not answer.
    let facts = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
    let may_be_in_memory =
        name.starts_with("/memfd:") || devices.contains(&(facts.stx_dev_major << 20 | facts.stx_dev_minor));
    let is_file = FileType::from_raw_mode(facts.stx_mode.into()) == FileType::RegularFile;
    let id = FileId { device: makedev(facts.stx_dev_major, facts.stx_dev_minor), inode: facts.stx_ino };
    let bytes = facts.stx_blocks * BLOCK_BYTES;
    // hugetlb pages are counted separately; files there cannot be written by calls.
    (may_be_in_memory && is_file && is_in_memory(path)).then_some((id, OpenFile { name, pid, bytes, mapped_bytes: 0 }))
}

/// The file and the range that a line of `/proc/PID/maps` maps.
fn mapped_range(line: &str) -> Option<(FileId, Range<u64>)> {
    let mut fields = line.split_ascii_whitespace();
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = fields.next()?.split_once('-')?;
    let bytes = number(end)?.checked_sub(number(start)?)?;
    let offset = number(fields.nth(1)?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?.parse().ok().filter(|inode| *inode != 0)?;
    let device = makedev(u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    Some((FileId { device, inode }, offset..offset.checked_add(bytes)?))
}

/// The name and the addresses of a line of `/proc/PID/maps`, if it maps shared anonymous memory, a memfd, or a file on one of these
/// `devices` to write to.
fn mapped_shared<'a>(line: &'a str, devices: &HashSet<u32>) -> Option<(FileId, &'a str, &'a str)> {
    let name = &line[line.find('/')?..];
    let mut fields = line.split_ascii_whitespace();
    let (addresses, rights) = (fields.next()?, fields.next()?);
    let (id, _) = mapped_range(line).filter(|_| rights.ends_with('s'))?;
    if Some(id.device) != *ANONYMOUS {
        let device = major(id.device) << 20 | minor(id.device);
        return (devices.contains(&device) && rights.contains('w')).then_some((id, name, addresses));
    }
    // bursar's own is counted apart, and so are System V segments.
    let is_counted = name.starts_with("/memfd:bursar") || name.starts_with("/SYSV");
    let name = if name == ANONYMOUS_NAME { "shared anonymous memory" } else { name };
    (!is_counted).then_some((id, name, addresses))
}

/// Bytes in the union of these ranges.
fn length(mut ranges: Vec<Range<u64>>) -> u64 {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut sum, mut end) = (0, 0);
    for range in ranges {
        sum += range.end.saturating_sub(range.start.max(end));
        end = end.max(range.end);
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn the_own_memfd_is_found_and_a_file_on_disk_is_not() {
        let mut file = File::from(memfd_create("open-in-memory-test", MemfdFlags::CLOEXEC).unwrap());
        file.write_all(&[1; 300 << 10]).unwrap();
        let mut disk = tempfile::tempfile_in("/var/tmp").unwrap();
        disk.write_all(&[1; 300 << 10]).unwrap();
        let found = open_in_memory([std::process::id() as i32].into_iter());
        let own: Vec<_> = found.files.values().filter(|file| file.name.contains("open-in-memory-test")).collect();
        assert!(own.len() == 1 && own[0].unmapped_bytes() == 300 << 10, "{found:?}");
        assert!(!found.files.values().any(|file| file.name.starts_with("/var/tmp")), "{found:?}");
    }

    #[test]
    fn shared_memory_that_is_mapped_and_not_open_is_found() {
        let bytes = 4 << 20;
        let protection = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
        // SAFETY: nothing else is at an address that the kernel chooses, and nobody uses it after the end.
        let at = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, rustix::mm::MapFlags::SHARED).unwrap()
        };
        // SAFETY: within the mapping, which may be written.
        unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), 1 << 20) }.fill(1);
        let found = open_in_memory([std::process::id() as i32].into_iter()).mapped_shared;
        // SAFETY: it was mapped above.
        unsafe { rustix::mm::munmap(at, bytes).unwrap() };
        let is_root = found.values().any(|shared| shared.is_known);
        let expected = if is_root { 1 << 20 } else { bytes as u64 };
        let is_it = |shared: &&MappedShared| shared.name == "shared anonymous memory" && shared.bytes == expected;
        assert!(found.values().any(|shared| is_it(&shared)), "{found:?}");
    }

    #[test]
    fn ranges_mapped_twice_count_once() {
        assert_eq!(length(vec![0x2000..0x4000, 0..0x1000, 0x3000..0x5000]), 0x4000);
        let (id, range) = mapped_range("7f00-8f00 rw-s 00003000 00:19 42                  /dev/shm/a file").unwrap();
        assert_eq!((id, range), (FileId { device: makedev(0, 0x19), inode: 42 }, 0x3000..0x4000));
        assert_eq!(mapped_range("1000-2000 rw-p 00000000 00:00 0 [heap]"), None);
    }
}
