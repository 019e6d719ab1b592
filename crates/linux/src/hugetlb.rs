//! hugetlb pages: their number per node, changing it, and the file system for them (Documentation/admin-guide/mm/hugetlbpage.rst).

use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::{Error, file, mounts, numa};

/// Pages of one size on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Persistent pages, as set by `nr_hugepages`, without surplus pages, which vanish when they are freed.
    pub persistent: u64,
    /// Free pages.
    pub free: u64,
}

/// The huge page sizes of this kernel in bytes, ascending.
pub fn page_sizes() -> Vec<u64> {
    let dirs = file::subdirectories(Path::new("/sys/kernel/mm/hugepages")).unwrap_or_default();
    let size = |dir: &PathBuf| dir.file_name()?.to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok();
    let mut sizes: Vec<u64> = dirs.iter().filter_map(size).map(|kib: u64| kib << 10).collect();
    sizes.sort_unstable();
    sizes
}

/// The pages of a node.
///
/// # Errors
/// [`Error::Read`] if the node or the size does not exist.
pub fn pages(node: u32, page_bytes: u64) -> Result<Pages, Error> {
    let number = |name: &str| -> Result<u64, Error> {
        let path = directory(node, page_bytes).join(name);
        let text = file::read(&path)?;
        text.trim().parse().map_err(|_| Error::Format { path, line: text })
    };
    Ok(Pages {
        persistent: number("nr_hugepages")?.saturating_sub(number("surplus_hugepages")?),
        free: number("free_hugepages")?,
    })
}

/// A lock for reading, changing and writing the number of pages: one bursar at a time.
///
/// # Errors
/// [`Error::Read`] if the kernel has no huge pages.
pub fn lock() -> Result<File, Error> {
    let path = Path::new("/sys/kernel/mm/hugepages");
    let locked = File::open(path).and_then(|dir| {
        rustix::fs::flock(&dir, FlockOperation::LockExclusive)?;
        Ok(dir)
    });
    locked.map_err(|source| Error::Read { path: path.into(), source })
}

/// Requests this many persistent pages on a node. The kernel provides what it can, see [`pages`]. If fewer than are in use are requested,
/// the excess becomes surplus.
///
/// # Errors
/// [`Error::Write`] without root.
pub fn set_persistent(node: u32, page_bytes: u64, pages: u64) -> Result<(), Error> {
    file::write(&directory(node, page_bytes).join("nr_hugepages"), &pages.to_string())
}

/// Compacts memory on all nodes, which makes more huge pages available. Takes seconds.
///
/// # Errors
/// [`Error::Write`] without root, or if the kernel cannot compact.
pub fn compact() -> Result<(), Error> {
    file::write(Path::new("/proc/sys/vm/compact_memory"), "1")
}

/// Mounts a hugetlbfs that only root may enter.
///
/// # Errors
/// [`Error::System`] without root, or if the kernel has no pages of this size.
pub fn mount(dir: &Path, page_bytes: u64) -> Result<(), Error> {
    let options = CString::new(format!("pagesize={page_bytes},mode=0700")).unwrap_or_default();
    rustix::mount::mount("bursar", dir, "hugetlbfs", MountFlags::NOSUID | MountFlags::NODEV, &*options).map_err(
        |error| Error::System { what: format!("mounting hugetlbfs on {}", dir.display()), source: error.into() },
    )
}

/// Whether a hugetlbfs is mounted there.
pub fn is_mounted(dir: &Path) -> bool {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.into());
    mounts::own().iter().any(|mount| mount.point == dir && mount.kind == "hugetlbfs")
}

/// Unmounts it; open files stay until they are closed.
///
/// # Errors
/// [`Error::System`] without root, or if nothing is mounted there.
pub fn unmount(dir: &Path) -> Result<(), Error> {
    rustix::mount::unmount(dir, UnmountFlags::DETACH)
        .map_err(|error| Error::System { what: format!("unmounting {}", dir.display()), source: error.into() })
}

/// A kernel without NUMA has only the machine's files.
fn directory(node: u32, page_bytes: u64) -> PathBuf {
    let name = format!("hugepages/hugepages-{}kB", page_bytes >> 10);
    let of_node = numa::directory(node);
    let is_numa = of_node.parent().is_some_and(Path::exists);
    if is_numa { of_node.join(name) } else { Path::new("/sys/kernel/mm").join(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_counted_on_every_node() {
        let sizes = page_sizes();
        assert!(sizes.is_sorted() && sizes.iter().all(|size| size.is_power_of_two()), "{sizes:?}");
        for node in numa::nodes().unwrap() {
            for size in &sizes {
                pages(node.number, *size).unwrap();
            }
        }
        assert!(pages(1000, 2 << 20).is_err() || !Path::new("/sys/devices/system/node").exists());
    }

    #[test]
    fn an_ordinary_directory_is_no_mount() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_mounted(dir.path()));
        assert!(unmount(dir.path()).is_err());
    }
}
