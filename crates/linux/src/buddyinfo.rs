//! Free memory by the size of its blocks (`/proc/buddyinfo`): whether there are huge pages to be had.

use std::path::Path;

use crate::{Error, file};

const FILE: &str = "/proc/buddyinfo";

/// What a huge page covers.
const HUGE_BYTES: u64 = 2 << 20;

/// Huge pages of 2 MiB that free blocks of a node have room for; `None`: of all nodes.
///
/// # Errors
/// [`Error::Read`] if the file is not there, [`Error::Format`] if it does not read as documented.
pub fn free_huge(node: Option<u32>) -> Result<u64, Error> {
    let wrong = |line: &str| Error::Format { path: FILE.into(), line: line.into() };
    let page = rustix::param::page_size() as u64;
    file::read(Path::new(FILE))?.lines().try_fold(0, |sum, line| {
        let (number, blocks) = zone(line).ok_or_else(|| wrong(line))?;
        let huge = |(order, count): (usize, &u64)| count * ((page << order) / HUGE_BYTES);
        let here = node.is_none_or(|node| node == number);
        Ok(sum + if here { blocks.iter().enumerate().map(huge).sum() } else { 0 })
    })
}

/// `Node 0, zone   Normal   7   5   0 …`: the node, and how many blocks there are of each order.
fn zone(line: &str) -> Option<(u32, Vec<u64>)> {
    let (node, rest) = line.strip_prefix("Node ")?.split_once(", zone")?;
    let counts: Option<Vec<u64>> = rest.split_whitespace().skip(1).map(|count| count.parse().ok()).collect();
    Some((node.parse().ok()?, counts?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_its_node_and_blocks_by_order() {
        assert_eq!(zone("Node 0, zone   Normal     12      0      3 "), Some((0, vec![12, 0, 3])));
        assert_eq!(zone("Node 1, zone      DMA"), Some((1, vec![])));
        assert_eq!(zone("Node 1, zone DMA x"), None);
        assert_eq!(zone("Zone 1"), None);
    }

    #[test]
    fn all_nodes_have_what_each_has() {
        let none = free_huge(Some(1000)).unwrap();
        assert_eq!(none, 0);
        assert!(free_huge(None).unwrap() < 1 << 30);
    }
}
