//! The breakdown of a cgroup's memory, from one pass over its files.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::STOCKS_BYTES;

use super::{Cgroup, Version};
use crate::file;

/// Current bytes (or counts, as noted), including descendants. `anon + file + shmem + kernel` (and `hugetlb`, where charged) is `usage`
/// within the kernel's precision: it charges in batches per processor, and the files are not read at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryState {
    /// The charge that counts against the limit.
    pub usage: Option<u64>,
    /// The peak of `usage` (v1; v2 since Linux 5.19). Saturates at the limit.
    pub peak: Option<u64>,
    /// Swap in use.
    pub swap: Option<u64>,
    /// The peak of `swap` (v2 since Linux 6.5).
    pub swap_peak: Option<u64>,
    /// hugetlb pages; part of `usage` only if `charges_hugetlb`.
    pub hugetlb: Option<u64>,
    /// Whether `usage` and `peak` include `hugetlb` (v2, mounted with `memory_hugetlb_accounting`).
    pub charges_hugetlb: bool,
    /// The peak of `hugetlb` (v1 only; `None` if pages of several sizes were used, whose peaks do not add up).
    pub hugetlb_peak: Option<u64>,
    /// Anonymous memory mapped.
    pub anon: Option<u64>,
    /// Page cache of files, without tmpfs and swap cache.
    pub file: Option<u64>,
    /// tmpfs and shared memory.
    pub shmem: Option<u64>,
    /// All kernel memory; on v2 including socket buffers, which count against the limit there.
    pub kernel: Option<u64>,
    /// Dirty file pages.
    pub file_dirty: Option<u64>,
    /// File pages under writeback.
    pub file_writeback: Option<u64>,
    /// Mapped file pages.
    pub file_mapped: Option<u64>,
    /// Active list, anonymous and shared.
    pub active_anon: Option<u64>,
    /// Inactive list, anonymous and shared.
    pub inactive_anon: Option<u64>,
    /// Active list, file.
    pub active_file: Option<u64>,
    /// Inactive list, file.
    pub inactive_file: Option<u64>,
    /// Unevictable list.
    pub unevictable: Option<u64>,
    /// Kernel objects (v2).
    pub slab: Option<u64>,
    /// Reclaimable kernel objects (v2).
    pub slab_reclaimable: Option<u64>,
    /// Page tables (v2).
    pub page_tables: Option<u64>,
    /// Kernel stacks (v2).
    pub kernel_stack: Option<u64>,
    /// Socket buffers; on v1 beside `usage`, on v2 within it.
    pub sock: Option<u64>,
    /// Pages both in memory and in swap.
    pub swap_cached: Option<u64>,
    /// Transparent huge pages within `anon`.
    pub anon_thp: Option<u64>,
    /// Page faults, a count.
    pub pgfault: Option<u64>,
    /// Page faults with I/O, a count.
    pub pgmajfault: Option<u64>,
    /// File pages refaulted after reclaim, a count.
    pub refault_file: Option<u64>,
    /// Anonymous pages refaulted after reclaim, a count.
    pub refault_anon: Option<u64>,
    /// Pages scanned by reclaim, a count (v2).
    pub pgscan: Option<u64>,
    /// Pages reclaimed, a count (v2).
    pub pgsteal: Option<u64>,
    /// Processes killed by the OOM killer, a count.
    pub oom_kills: Option<u64>,
    /// Times that the charge met the limit, a count. Newer v1 kernels do not count it while swap is forbidden.
    pub limit_hits: Option<u64>,
}

impl MemoryState {
    /// Charged memory that is in no other line: 0 as long as per-processor stocks explain it.
    pub fn unmapped(&self) -> Option<u64> {
        let hugetlb = self.hugetlb.filter(|_| self.charges_hugetlb).unwrap_or(0);
        let lines = self.anon? + self.file? + self.shmem? + self.kernel? + hugetlb;
        Some(self.usage?.saturating_sub(lines)).map(|bytes| if bytes > STOCKS_BYTES { bytes } else { 0 })
    }
}

impl Cgroup {
    /// Its current memory. Fields that this kernel lacks are `None`.
    ///
    /// # Errors
    /// [`crate::Error::Read`] if it is gone.
    pub fn memory(&self) -> Result<MemoryState, crate::Error> {
        let number = |name: &str| file::number(&self.dir.join(name));
        // Read before the lines: if memory grows meanwhile, the lines exceed the usage, and no difference is mistaken for kernel memory.
        let usage = self.usage().ok();
        let stat = file::read(&self.dir.join("memory.stat"))?;
        let mut state = match self.version {
            Version::V1 => MemoryState {
                usage,
                peak: number("memory.max_usage_in_bytes"),
                kernel: number("memory.kmem.usage_in_bytes"),
                sock: number("memory.kmem.tcp.usage_in_bytes"),
                oom_kills: oom_kills_v1(&self.dir),
                limit_hits: limit_hits_v1(&number),
                ..stat_v1(&stat)
            },
            Version::V2 => {
                let events = file::read_if_present(&self.dir.join("memory.events"));
                let event =
                    |name: &str| file::pairs(events.as_deref()?).find(|(key, _)| *key == name).map(|(_, count)| count);
                MemoryState {
                    usage,
                    peak: number("memory.peak"),
                    swap: number("memory.swap.current"),
                    swap_peak: number("memory.swap.peak"),
                    oom_kills: event("oom_kill"),
                    limit_hits: event("max"),
                    ..stat_v2(&stat)
                }
            }
        };
        let (now, peak) = self.hugetlb.as_deref().map_or((None, None), hugetlb);
        state.charges_hugetlb = self.charges_hugetlb && self.version == Version::V2;
        state.hugetlb = now.or(state.hugetlb.filter(|_| state.charges_hugetlb));
        state.hugetlb_peak = peak;
        Ok(state)
    }
}

fn stat_v1(text: &str) -> MemoryState {
    let mut state = MemoryState::default();
    let mut cache = None;
    let mut refault_all = None;
    // The names without `total_` are of this cgroup alone.
    for (key, value) in file::pairs(text).filter_map(|(key, value)| Some((key.strip_prefix("total_")?, value))) {
        let slot = match key {
            "cache" => &mut cache,
            "rss" => &mut state.anon,
            "rss_huge" => &mut state.anon_thp,
            "shmem" => &mut state.shmem,
            "mapped_file" => &mut state.file_mapped,
            "dirty" => &mut state.file_dirty,
            "writeback" => &mut state.file_writeback,
            "swap" => &mut state.swap,
            "swapcached" => &mut state.swap_cached,
            "pgfault" => &mut state.pgfault,
            "pgmajfault" => &mut state.pgmajfault,
            "workingset_refault" => &mut refault_all,
            "workingset_refault_file" => &mut state.refault_file,
            "workingset_refault_anon" => &mut state.refault_anon,
            "active_anon" => &mut state.active_anon,
            "inactive_anon" => &mut state.inactive_anon,
            "active_file" => &mut state.active_file,
            "inactive_file" => &mut state.inactive_file,
            "unevictable" => &mut state.unevictable,
            _ => continue,
        };
        *slot = Some(value);
    }
    state.file = without_shmem_and_swap(cache, &state);
    state.refault_file = state.refault_file.or(refault_all);
    state
}

fn stat_v2(text: &str) -> MemoryState {
    let mut state = MemoryState::default();
    let mut cache = None;
    let mut percpu = None;
    let mut refault_all = None;
    for (key, value) in file::pairs(text) {
        let slot = match key {
            "anon" => &mut state.anon,
            "file" => &mut cache,
            "kernel" => &mut state.kernel,
            "shmem" => &mut state.shmem,
            "file_mapped" => &mut state.file_mapped,
            "file_dirty" => &mut state.file_dirty,
            "file_writeback" => &mut state.file_writeback,
            "swapcached" => &mut state.swap_cached,
            "anon_thp" => &mut state.anon_thp,
            "active_anon" => &mut state.active_anon,
            "inactive_anon" => &mut state.inactive_anon,
            "active_file" => &mut state.active_file,
            "inactive_file" => &mut state.inactive_file,
            "unevictable" => &mut state.unevictable,
            "slab" => &mut state.slab,
            "slab_reclaimable" => &mut state.slab_reclaimable,
            "pagetables" => &mut state.page_tables,
            "kernel_stack" => &mut state.kernel_stack,
            "percpu" => &mut percpu,
            "sock" => &mut state.sock,
            // Since Linux 6.13, where it is charged.
            "hugetlb" => &mut state.hugetlb,
            "pgfault" => &mut state.pgfault,
            "pgmajfault" => &mut state.pgmajfault,
            "workingset_refault" => &mut refault_all,
            "workingset_refault_file" => &mut state.refault_file,
            "workingset_refault_anon" => &mut state.refault_anon,
            "pgscan" => &mut state.pgscan,
            "pgsteal" => &mut state.pgsteal,
            _ => continue,
        };
        *slot = Some(value);
    }
    state.file = without_shmem_and_swap(cache, &state);
    // Before Linux 5.9 only file pages were counted as refaults.
    state.refault_file = state.refault_file.or(refault_all);
    // Linux 5.18 has one sum for the kernel, without socket buffers.
    let sock = state.sock.unwrap_or(0);
    state.kernel = match state.kernel {
        Some(kernel) => Some(kernel + sock),
        None => state.slab.map(|slab| {
            slab + state.kernel_stack.unwrap_or(0) + state.page_tables.unwrap_or(0) + percpu.unwrap_or(0) + sock
        }),
    };
    state
}

/// Both versions count tmpfs and the swap cache as page cache.
fn without_shmem_and_swap(cache: Option<u64>, state: &MemoryState) -> Option<u64> {
    Some(cache?.saturating_sub(state.shmem.unwrap_or(0)).saturating_sub(state.swap_cached.unwrap_or(0)))
}

/// With swap forbidden both limits are equal, and the combined limit is met first. Newer kernels (observed on 6.18) do not count that, so
/// near the limit a count of 0 means nothing.
fn limit_hits_v1(number: &impl Fn(&str) -> Option<u64>) -> Option<u64> {
    const NEAR: u64 = 2 << 20;
    let hits = number("memory.failcnt")? + number("memory.memsw.failcnt").unwrap_or(0);
    let far_below =
        || Some(number("memory.max_usage_in_bytes")?.saturating_add(NEAR) < number("memory.limit_in_bytes")?);
    (hits > 0 || far_below() == Some(true)).then_some(hits)
}

/// v1 counts a kill only in the cgroup of the process, so descendants are summed.
fn oom_kills_v1(dir: &Path) -> Option<u64> {
    let text = file::read_if_present(&dir.join("memory.oom_control"))?;
    let own = file::pairs(&text).find(|(key, _)| *key == "oom_kill").map(|(_, count)| count)?;
    // Some file systems, though not cgroupfs, do not count subdirectories in links.
    let has_children = std::fs::metadata(dir).is_ok_and(|dir| dir.nlink() != 2);
    let children = if has_children { file::subdirectories(dir).unwrap_or_default() } else { Vec::new() };
    Some(own + children.iter().filter_map(|child| oom_kills_v1(child)).sum::<u64>())
}

/// Usage and peak over all page sizes.
fn hugetlb(dir: &Path) -> (Option<u64>, Option<u64>) {
    let mut usage = None;
    let mut peaks = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some(rest) = name.strip_prefix("hugetlb.").filter(|rest| !rest.contains(".rsvd.")) else { continue };
        if rest.ends_with(".usage_in_bytes") || rest.ends_with(".current") {
            usage = Some(usage.unwrap_or(0) + file::number(&entry.path()).unwrap_or(0));
        } else if rest.ends_with(".max_usage_in_bytes") {
            peaks.extend(file::number(&entry.path()));
        }
    }
    let used = peaks.iter().filter(|peak| **peak > 0).count();
    (usage, peaks.into_iter().max().filter(|_| used <= 1))
}
