//! NUMA nodes, and choosing the node of a thread's memory.

mod occupied;

use std::ffi::{c_int, c_ulong};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::ptr;

use crate::{Error, file};

pub use occupied::Occupied;

const MPOL_DEFAULT: c_int = 0;
const MPOL_PREFERRED: c_int = 1;
const MPOL_BIND: c_int = 2;

/// While this lives, allocations of this thread, and of processes that it starts, prefer a node.
#[derive(Debug)]
pub struct Preferred {
    /// Not Send: the policy belongs to this thread.
    _of_thread: PhantomData<*const ()>,
}

/// A node mask with one node, in the kernel's format.
struct Mask(Vec<c_ulong>);

/// A node with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number in `/sys/devices/system/node`.
    pub number: u32,
    /// Bytes available without swapping, estimated like the kernel's MemAvailable: free memory, page cache, and reclaimable slabs.
    pub available: u64,
}

/// The nodes with memory, ascending. A kernel without NUMA has one, 0.
///
/// # Errors
/// [`Error::Read`] without `/proc`.
pub fn nodes() -> Result<Vec<Node>, Error> {
    let whole = file::read(Path::new("/proc/meminfo"))?;
    let whole = field(&whole, "MemAvailable:").unwrap_or(u64::MAX);
    let Some(list) = file::read_if_present(Path::new("/sys/devices/system/node/has_memory")) else {
        return Ok(vec![Node { number: 0, available: whole }]);
    };
    let available = |number: &u32| -> Result<Node, Error> {
        let text = file::read(&directory(*number).join("meminfo"))?;
        let kinds = ["MemFree:", "Active(file):", "Inactive(file):", "SReclaimable:"];
        let sum: u64 = kinds.iter().filter_map(|kind| field(&text, kind)).sum();
        Ok(Node { number: *number, available: sum.min(whole) })
    };
    ranges(&list).iter().map(available).collect()
}

/// Binds later allocations of this thread to one node.
///
/// # Errors
/// [`Error::System`] if the node does not exist, or if the thread's cpuset forbids it.
pub fn bind_thread(node: u32) -> Result<(), Error> {
    set_policy(MPOL_BIND, node)
}

impl Preferred {
    /// Prefers this node from now on.
    ///
    /// # Errors
    /// [`Error::System`] if the node does not exist, or if the thread's cpuset forbids it.
    pub fn node(node: u32) -> Result<Preferred, Error> {
        set_policy(MPOL_PREFERRED, node)?;
        Ok(Preferred { _of_thread: PhantomData })
    }
}

impl Drop for Preferred {
    fn drop(&mut self) {
        // SAFETY: no mask is read.
        unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_DEFAULT, ptr::null::<c_ulong>(), 0 as c_ulong) };
    }
}

impl Mask {
    const BITS: usize = c_ulong::BITS as usize;

    fn of(node: u32) -> Mask {
        let mut words = vec![0; node as usize / Mask::BITS + 1];
        words[node as usize / Mask::BITS] |= 1 << (node as usize % Mask::BITS);
        Mask(words)
    }

    fn words(&self) -> *const c_ulong {
        self.0.as_ptr()
    }

    /// The kernel subtracts one (set_mempolicy(2)).
    fn bits(&self) -> c_ulong {
        (self.0.len() * Mask::BITS + 1) as c_ulong
    }
}

fn set_policy(policy: c_int, node: u32) -> Result<(), Error> {
    let mask = Mask::of(node);
    // SAFETY: the mask lives through the call and has the given number of bits.
    let status = unsafe { libc::syscall(libc::SYS_set_mempolicy, policy, mask.words(), mask.bits()) };
    match io::Error::last_os_error() {
        _ if status == 0 => Ok(()),
        // A kernel without NUMA has one node.
        source if source.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        source => Err(Error::System { what: format!("set_mempolicy to node {node}"), source }),
    }
}

pub(crate) fn directory(node: u32) -> PathBuf {
    format!("/sys/devices/system/node/node{node}").into()
}

/// Parses `Node 0 MemFree:  123 kB` or `MemAvailable: 123 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().find(|line| line.split_whitespace().any(|word| word == name))?.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses a list such as `0-1,4`.
fn ranges(text: &str) -> Vec<u32> {
    let numbers = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(numbers).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_numbers_and_ranges() {
        assert_eq!(ranges("0\n"), [0]);
        assert_eq!(ranges("0-2,5\n"), [0, 1, 2, 5]);
        assert!(ranges("\n").is_empty());
    }

    #[test]
    fn memory_of_a_node_and_of_the_machine_reads_the_same() {
        assert_eq!(field("Node 0 MemTotal: 9 kB\nNode 0 MemFree:       7 kB\n", "MemFree:"), Some(7168));
        assert_eq!(field("MemFree: 1 kB\nMemAvailable:   3 kB\n", "MemAvailable:"), Some(3072));
        assert_eq!(field("MemFree: 1 kB\n", "MemAvailable:"), None);
    }

    #[test]
    fn this_machine_has_a_node_that_a_thread_can_be_bound_to() {
        let nodes = nodes().unwrap();
        assert!(nodes.iter().all(|node| node.available > 0), "{nodes:?}");
        let first = nodes[0].number;
        std::thread::spawn(move || {
            bind_thread(first).unwrap();
            assert!(bind_thread(1000).unwrap_err().to_string().contains("node 1000"));
        })
        .join()
        .unwrap();
    }
}
