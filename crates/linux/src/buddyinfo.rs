//! Free memory by block size (`/proc/buddyinfo`): whether huge pages are available.

use std::path::Path;

use crate::{Error, file};

const FILE: &str = "/proc/buddyinfo";

/// The size of a huge page.
const HUGE_BYTES: u64 = 2 << 20;

/// Number of 2 MiB huge pages that fit into the free blocks of all nodes.
///
/// # Errors
/// [`Error::Read`] if the file is not there, [`Error::Format`] if it does not read as documented.
pub fn free_huge() -> Result<u64, Error> {
    let wrong = |line: &str| Error::Format { path: FILE.into(), line: line.into() };
    let page = rustix::param::page_size() as u64;
    file::read(Path::new(FILE))?.lines().try_fold(0, |sum, line| {
        let blocks = zone(line).ok_or_else(|| wrong(line))?;
        let huge = |(order, count): (usize, &u64)| count * ((page << order) / HUGE_BYTES);
        Ok(sum + blocks.iter().enumerate().map(huge).sum::<u64>())
    })
}

/// `Node 0, zone   Normal   7   5   0 …`: the number of free blocks of each order.
fn zone(line: &str) -> Option<Vec<u64>> {
    let (_, rest) = line.strip_prefix("Node ")?.split_once(", zone")?;
    rest.split_whitespace().skip(1).map(|count| count.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_its_blocks_by_order() {
        assert_eq!(zone("Node 0, zone   Normal     12      0      3 "), Some(vec![12, 0, 3]));
        assert_eq!(zone("Node 1, zone      DMA"), Some(vec![]));
        assert_eq!(zone("Node 1, zone DMA x"), None);
        assert_eq!(zone("Zone 1"), None);
    }

    #[test]
    fn this_machine_has_no_more_than_its_memory() {
        let memory = crate::procfs::meminfo().unwrap().total;
        assert!(free_huge().unwrap() * HUGE_BYTES <= memory);
    }
}
