//! Limits.

use std::path::{Path, PathBuf};

use super::{Cgroup, Swap, Version};
use crate::{Error, file};

/// v1's "unlimited" is the largest number of pages that fits: PAGE_COUNTER_MAX.
pub(super) const UNLIMITED_V1: u64 = i64::MAX as u64 / (64 << 10) * (64 << 10);

impl Cgroup {
    /// Sets the memory limit in bytes (rounded down to pages by the kernel), or removes it.
    ///
    /// # Errors
    /// [`Error::Write`]; `EBUSY` on v1 if the usage cannot be reclaimed below it. [`Error::SwapUnlimited`] if swap is in use and this
    /// kernel cannot forbid it.
    pub fn set_limit(&self, limit: Option<u64>, swap: Swap) -> Result<(), Error> {
        match self.version {
            Version::V1 => self.set_limit_v1(limit, swap),
            Version::V2 => self.set_limit_v2(limit, swap),
        }
    }

    /// The smallest visible limit of itself and its ancestors; `None`: unlimited.
    pub fn effective_limit(&self) -> Option<u64> {
        match self.version {
            Version::V1 => {
                let stat = file::read_if_present(&self.dir.join("memory.stat"))?;
                let (_, limit) = file::pairs(&stat).find(|(key, _)| *key == "hierarchical_memory_limit")?;
                (limit < UNLIMITED_V1).then_some(limit)
            }
            Version::V2 => {
                let within = self.dir.ancestors().take_while(|dir| dir.join("cgroup.procs").exists());
                within.filter_map(|dir| file::number(&dir.join("memory.max"))).min()
            }
        }
    }

    /// How much more of it may go to swap, by its own limit; the machine may have less.
    pub fn swap_room(&self) -> Option<u64> {
        let (limit, used) = match self.version {
            Version::V1 => ("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"),
            Version::V2 => ("memory.swap.max", "memory.swap.current"),
        };
        let number = |name: &str| file::number(&self.dir.join(name));
        let limit = number(limit).filter(|limit| *limit < UNLIMITED_V1)?;
        Some(limit.saturating_sub(number(used).unwrap_or(0)))
    }

    /// The visible directories of itself and its ancestors that have a limit, with the limit in bytes.
    pub fn limits(&self) -> Vec<(PathBuf, u64)> {
        let name = self.limit_file().file_name().unwrap_or_default().to_owned();
        let within = self.dir.ancestors().take_while(|dir| dir.join("cgroup.procs").exists());
        let limit = |dir: &Path| file::number(&dir.join(&name)).filter(|limit| *limit < UNLIMITED_V1);
        within.filter_map(|dir| Some((dir.into(), limit(dir)?))).collect()
    }

    /// The charge above which its processes are throttled (`memory.high`, v2); `None`: none.
    pub fn throttle_limit(&self) -> Option<u64> {
        file::number(&self.dir.join("memory.high")).filter(|_| self.version == Version::V2)
    }

    /// The swap it may use (`memory.swap.max`, v2); `None`: unlimited, or not separate from memory (v1).
    pub fn swap_limit(&self) -> Option<u64> {
        file::number(&self.dir.join("memory.swap.max")).filter(|_| self.version == Version::V2)
    }

    /// `memory.limit_in_bytes` must never exceed `memory.memsw.limit_in_bytes`, so the order depends on the direction.
    fn set_limit_v1(&self, limit: Option<u64>, swap: Swap) -> Result<(), Error> {
        let memory = self.dir.join("memory.limit_in_bytes");
        let both = self.dir.join("memory.memsw.limit_in_bytes");
        let value = text(limit, "-1");
        if !both.exists() {
            file::write(&memory, &value)?;
            return match swap {
                Swap::Forbidden => self.forbid_swap_by_swappiness(),
                Swap::Allowed => Ok(()),
            };
        }
        let value_both = if swap == Swap::Forbidden { value.clone() } else { text(None, "-1") };
        let raising = file::number(&both).is_some_and(|now| limit.unwrap_or(u64::MAX) > now);
        if raising || swap == Swap::Allowed {
            file::write(&both, &value_both)?;
            file::write(&memory, &value)
        } else {
            file::write(&memory, &value)?;
            file::write(&both, &value_both)
        }
    }

    /// Without swap accounting, a swappiness of 0 keeps this cgroup's own reclaim from swapping (v1 memory.rst, 5.3).
    fn forbid_swap_by_swappiness(&self) -> Result<(), Error> {
        match file::write(&self.dir.join("memory.swappiness"), "0") {
            Err(_) if swap_is_on() => Err(Error::SwapUnlimited(self.dir.clone())),
            _ => Ok(()),
        }
    }

    fn set_limit_v2(&self, limit: Option<u64>, swap: Swap) -> Result<(), Error> {
        let swap_max = self.dir.join("memory.swap.max");
        if swap_max.exists() {
            // First, so that lowering the limit does not push pages to swap.
            file::write(&swap_max, if swap == Swap::Forbidden { "0" } else { "max" })?;
        } else if swap == Swap::Forbidden && swap_is_on() {
            return Err(Error::SwapUnlimited(self.dir.clone()));
        }
        file::write(&self.dir.join("memory.max"), &text(limit, "max"))
    }

    /// The file with the limit: without write access to it, no limit can be set.
    pub(crate) fn limit_file(&self) -> PathBuf {
        self.dir.join(match self.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        })
    }
}

fn text(limit: Option<u64>, unlimited: &str) -> String {
    limit.map_or_else(|| unlimited.to_string(), |bytes| bytes.to_string())
}

fn swap_is_on() -> bool {
    file::read_if_present(Path::new("/proc/swaps")).is_some_and(|text| text.lines().count() > 1)
}
