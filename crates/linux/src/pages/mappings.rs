//! Memory mappings from `/proc/PID/maps`.

use std::ops::Range;
use std::path::Path;

use crate::{Error, procfs};

/// A part of the address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// Whether writes are shared with others (MAP_SHARED).
    pub shared: bool,
    /// The path of its file, `[heap]`, `[stack]`, `[anon:NAME]` if the program has named it, or `[anon]`.
    pub name: String,
}

/// The mappings of a process by address, without the kernel's own (such as `[vdso]`) and devices. Empty for kernel threads and zombies.
///
/// # Errors
/// [`Error::Gone`] if it ended, [`Error::Read`] if it belongs to another user.
pub fn mappings(pid: i32) -> Result<Vec<Mapping>, Error> {
    let text = procfs::read(pid, Path::new(&format!("/proc/{pid}/maps")))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(mapping).filter(is_memory).collect())
}

/// `start-end permissions offset device inode name`.
pub(super) fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let shared = fields.next()?.ends_with('s');
    let name = fields.nth(3).map_or("", str::trim_start);
    let name = if name.is_empty() { "[anon]" } else { name };
    (start < end).then(|| Mapping { range: start..end, shared, name: name.into() })
}

/// A part of the address space that maps a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// The offset in the file of the first address, in pages.
    pub first_page: u64,
    /// Device number of its file system in the kernel's format: 12 bits of major above 20 of minor.
    pub device: u32,
    /// Inode number.
    pub inode: u64,
}

/// The mappings of files in the page cache of a process, by address, without shared memory and devices.
///
/// # Errors
/// [`Error::Gone`] if it ended, [`Error::Read`] if it belongs to another user.
pub fn file_mappings(pid: i32) -> Result<Vec<FileMapping>, Error> {
    let text = procfs::read(pid, Path::new(&format!("/proc/{pid}/maps")))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(file_mapping).collect())
}

/// Names of the kernel's internal files in memory, which have no mount.
const IN_MEMORY: [&str; 6] = ["/dev/", "/SYSV", "/memfd:", "/anon_hugepage", "/dmabuf:", "/drm "];

fn file_mapping(line: &str) -> Option<FileMapping> {
    let Mapping { range, name, .. } = mapping(line)?;
    let mut fields = line.splitn(6, ' ').skip(2);
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = u32::from_str_radix(major, 16).ok()? << 20 | u32::from_str_radix(minor, 16).ok()?;
    let inode = fields.next()?.parse().ok()?;
    let is_cached = name.starts_with('/') && inode != 0 && !IN_MEMORY.iter().any(|start| name.starts_with(start));
    is_cached.then(|| FileMapping { range, first_page: offset / procfs::page_bytes(), device, inode })
}

fn is_memory(mapping: &Mapping) -> bool {
    let name = &mapping.name;
    let of_kernel = name.starts_with("[v") || name == "[uprobes]";
    let of_device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/") && !name.starts_with("/dev/zero");
    !of_kernel && !of_device
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_spaces_and_be_missing() {
        let file = mapping("7f00-8f00 r--s 00000000 08:01 42                         /a file (deleted)").unwrap();
        assert_eq!(file, Mapping { range: 0x7f00..0x8f00, shared: true, name: "/a file (deleted)".into() });
        assert_eq!(mapping("1000-2000 rw-p 00000000 00:00 0").unwrap().name, "[anon]");
        assert_eq!(mapping("1000-2000 rw-p 00000000 00:00 0 ").unwrap().name, "[anon]");
        assert_eq!(mapping("nonsense"), None);
    }

    #[test]
    fn a_mapped_file_has_its_device_inode_and_first_page() {
        let file = file_mapping("7f00-8f00 r--s 00003000 fe:01 42                         /data/a file").unwrap();
        assert_eq!(file, FileMapping { range: 0x7f00..0x8f00, first_page: 3, device: 0xfe << 20 | 1, inode: 42 });
        for other in [
            "1000-2000 rw-p 00000000 00:00 0 [heap]",
            "1000-2000 rw-s 00000000 00:01 7 /SYSV00000000 (deleted)",
            "1000-2000 rw-s 00000000 00:01 8 /memfd:buffer (deleted)",
            "1000-2000 rw-s 00000000 00:19 9 /dev/shm/x",
        ] {
            assert_eq!(file_mapping(other), None, "{other}");
        }
    }

    #[test]
    fn our_own_heap_is_found_and_the_vdso_is_not() {
        let found = mappings(std::process::id() as i32).unwrap();
        let variable = 0u8;
        let here = &raw const variable as u64;
        assert!(found.iter().any(|mapping| mapping.range.contains(&here)));
        assert!(found.iter().all(|mapping| mapping.name != "[vdso]"));
        assert!(found.is_sorted_by_key(|mapping| mapping.range.start));
    }

    #[test]
    fn an_ended_process_is_reported_as_gone() {
        assert!(matches!(mappings(i32::MAX), Err(Error::Gone(_))));
    }
}
