//! What memory is made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A charge split by kind of page, in bytes. `heap + file + shared + kernel` is the charge; `hugetlb` is counted apart,
/// as the kernel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Breakdown {
    /// Anonymous private memory: heap, stacks, private mappings.
    pub heap: Option<u64>,
    /// Page cache of files, mapped or not.
    pub file: Option<u64>,
    /// tmpfs, System V and anonymous shared memory.
    pub shared: Option<u64>,
    /// Slab, page tables, kernel stacks, sockets and what else the kernel charges.
    pub kernel: Option<u64>,
    /// Pages from the hugetlb pools.
    pub hugetlb: Option<u64>,
}

/// The finer lines of a breakdown, in bytes. Parts of the lines in [`Breakdown`], not beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Detail {
    /// Clean file pages.
    pub file_clean: Option<u64>,
    /// File pages not yet written back.
    pub file_dirty: Option<u64>,
    /// File pages on their way to the disk.
    pub file_writeback: Option<u64>,
    /// File pages mapped into a process.
    pub file_mapped: Option<u64>,
    /// Kernel objects.
    pub slab: Option<u64>,
    /// The reclaimable part of the slab (dentries, inodes).
    pub slab_reclaimable: Option<u64>,
    /// Page tables.
    pub page_tables: Option<u64>,
    /// Stacks of the tasks inside the kernel.
    pub kernel_stacks: Option<u64>,
    /// Network buffers.
    pub sockets: Option<u64>,
    /// Memory locked by `mlock` (sum of the processes' `VmLck`).
    pub locked: Option<u64>,
    /// Pages on the unevictable list.
    pub unevictable: Option<u64>,
    /// Pages that are both in memory and in swap.
    pub swap_cache: Option<u64>,
    /// Transparent huge pages within heap.
    pub huge_pages: Option<u64>,
    /// Parts of transparent huge pages, within heap, that the program has given back: charged until memory is short.
    #[serde(default)]
    pub given_back: Option<u64>,
    /// Memory pinned for drivers (sum of the processes' `VmPin`).
    pub pinned: Option<u64>,
}

impl Breakdown {
    /// `heap + file + shared + kernel`; `None` unless all four are known.
    pub fn charge(&self) -> Option<u64> {
        Some(self.heap? + self.file? + self.shared? + self.kernel?)
    }

    /// The same proportions, summing to `charge`: for a peak that the kernel kept between two samples. The rounding
    /// remainder goes to the largest line. `hugetlb` is left as it is.
    pub fn scaled_to(&self, charge: u64) -> Breakdown {
        let Some(sum) = self.charge().filter(|sum| *sum > 0) else { return *self };
        let part = |line: Option<u64>| line.map(|v| (v as u128 * charge as u128 / sum as u128) as u64);
        let mut scaled = Breakdown {
            heap: part(self.heap),
            file: part(self.file),
            shared: part(self.shared),
            kernel: part(self.kernel),
            hugetlb: self.hugetlb,
        };
        let rest = charge - scaled.charge().unwrap_or(charge);
        let lines = [&mut scaled.heap, &mut scaled.file, &mut scaled.shared, &mut scaled.kernel];
        if let Some(largest) = lines.into_iter().flatten().max() {
            *largest += rest;
        }
        scaled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_breakdown_still_sums_to_its_charge() {
        let sampled =
            Breakdown { heap: Some(100), file: Some(33), shared: Some(0), kernel: Some(7), hugetlb: Some(4096) };
        let scaled = sampled.scaled_to(1001);
        assert_eq!(scaled.charge(), Some(1001));
        assert_eq!(scaled.hugetlb, Some(4096));
        assert_eq!(scaled.shared, Some(0));
    }

    #[test]
    fn a_breakdown_with_an_unknown_line_has_no_charge() {
        assert_eq!(Breakdown { heap: Some(1), ..Default::default() }.charge(), None);
    }
}
