//! Reserving the kernel's huge pages for a pool, and releasing them.

use linux::hugetlb;
use model::Bytes;

use crate::state::{Adding, Backend, Directory, Pool};
use crate::{Error, dax};

/// Adds persistent pages to a node until this many more are free; compacts memory if the first attempt falls short. Returns how many
/// persistent pages were added. If it falls short, releases all of them.
///
/// # Errors
/// [`Error::Short`], [`Error::Kernel`].
pub fn add(adding: &Adding, page_bytes: u64) -> Result<u64, Error> {
    let Adding { node, pages, .. } = *adding;
    let _alone = hugetlb::lock()?;
    let hugetlb::Pages { persistent: before, free: free_before } = hugetlb::pages(node, page_bytes)?;
    let gained = || -> Result<u64, Error> {
        let mut target = before + pages;
        loop {
            hugetlb::set_persistent(node, page_bytes, target)?;
            let now = hugetlb::pages(node, page_bytes)?;
            let gained = now.free.saturating_sub(free_before);
            if gained >= pages || now.persistent < target {
                return Ok(gained);
            }
            // Surplus pages, which processes hold of removed pools, became persistent first, and are not free.
            target += pages - gained;
        }
    };
    let mut had = gained()?;
    if had < pages {
        // Without compaction the second attempt just fails again.
        let _ = hugetlb::compact();
        had = gained()?;
    }
    if had < pages {
        hugetlb::set_persistent(node, page_bytes, before)?;
        let of = |pages| Bytes(pages * page_bytes);
        return Err(Error::Short { had: of(had), wanted: of(pages), page: Bytes(page_bytes), node });
    }
    Ok(hugetlb::pages(node, page_bytes)?.persistent.saturating_sub(before))
}

/// Releases the reserved pages that the pool's segments do not need, including those that a killed broker was adding.
///
/// # Errors
/// [`Error::Kernel`], [`Error::File`].
pub fn release_excess(pool: &mut Pool, directory: &Directory) -> Result<(), Error> {
    if pool.backend == Backend::Dax {
        dax::release_excess(pool)?;
        return pool.save(directory);
    }
    let _alone = hugetlb::lock()?;
    if let Some(Adding { node, before, pages }) = pool.adding {
        let added = hugetlb::pages(node, pool.page_bytes)?.persistent.saturating_sub(before).min(pages);
        *pool.reserved.entry(node).or_default() += added;
        pool.adding = None;
        pool.save(directory)?;
    }
    let needed = pool.pages_of(&pool.segments);
    for (node, reserved) in pool.reserved.clone() {
        let keep = needed.get(&node).copied().unwrap_or(0);
        if reserved > keep {
            let now = hugetlb::pages(node, pool.page_bytes)?.persistent;
            hugetlb::set_persistent(node, pool.page_bytes, now.saturating_sub(reserved - keep))?;
            pool.reserved.insert(node, keep);
            pool.save(directory)?;
        }
    }
    pool.reserved.retain(|_, pages| *pages > 0);
    Ok(())
}
