//! Nodes of memory, and which of them a thread's memory comes from.

use std::ffi::{c_int, c_ulong};
use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, file};

/// A node that has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number in `/sys/devices/system/node`.
    pub number: u32,
    /// Bytes that can be had without swapping, estimated as the kernel does for MemAvailable: free, page cache, and slabs
    /// that can be reclaimed.
    pub available: u64,
}

/// The nodes that have memory, ascending. A kernel without NUMA has one, 0.
///
/// # Errors
/// [`Error::Read`] without `/proc`.
pub fn nodes() -> Result<Vec<Node>, Error> {
    let whole = file::read(Path::new("/proc/meminfo"))?;
    let whole = field(&whole, "MemAvailable:").unwrap_or(u64::MAX);
    let Some(list) = file::read_if_there(Path::new("/sys/devices/system/node/has_memory")) else {
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

/// Takes what this thread allocates from now on from one node alone.
///
/// # Errors
/// [`Error::System`] if there is no such node, or if the thread's cpuset forbids it.
pub fn bind_thread(node: u32) -> Result<(), Error> {
    const MPOL_BIND: c_int = 2;
    const BITS: usize = c_ulong::BITS as usize;
    let mut mask = vec![0 as c_ulong; node as usize / BITS + 1];
    mask[node as usize / BITS] |= 1 << (node as usize % BITS);
    // SAFETY: the mask lives through the call and has as many bits as told; the kernel takes one off (set_mempolicy(2)).
    let status =
        unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_BIND, mask.as_ptr(), (mask.len() * BITS + 1) as c_ulong) };
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

/// `Node 0 MemFree:  123 kB` or `MemAvailable: 123 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().find(|line| line.split_whitespace().any(|word| word == name))?.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// `0-1,4`.
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
