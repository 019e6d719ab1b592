//! One cgroup, look after look.

use std::sync::Arc;

use account::Held;
use linux::cgroup::{Cgroup, MemoryState};
use linux::psi::Psi;

use crate::identity::Identity;

/// A cgroup that is watched.
pub struct Watched {
    cgroup: Cgroup,
    /// Another number is another cgroup of the same path.
    pub inode: u64,
    /// For clients.
    pub shown: Shown,
}

/// A cgroup as clients are answered of it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Of all its metrics.
    pub labels: Arc<str>,
    /// The last scan of it.
    pub seen: Seen,
    /// The most that any scan saw.
    pub most: Most,
}

/// What one look gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub memory: MemoryState,
    pub pressure: Option<Psi>,
    pub limit: Option<u64>,
    pub throttle_limit: Option<u64>,
    pub swap_limit: Option<u64>,
}

/// The largest there were, in bytes; the first three as far as the kernel has not kept them itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Most {
    pub charge: Option<u64>,
    pub swap: Option<u64>,
    pub hugetlb: Option<u64>,
    pub unreclaimable: Option<u64>,
    pub budget: Option<u64>,
}

impl Watched {
    /// A cgroup before its first scan.
    pub fn new(cgroup: Cgroup, path: &str, inode: u64) -> Watched {
        let labels = Identity::of(path).labels(path).into();
        Watched { cgroup, inode, shown: Shown { labels, seen: Seen::default(), most: Most::default() } }
    }

    /// Looks at it.
    ///
    /// # Errors
    /// [`linux::Error::Read`] if it is gone, or may not be read.
    pub fn look(&mut self) -> Result<(), linux::Error> {
        let tasks = self.cgroup.slurm_tasks();
        let limited = tasks.as_ref().unwrap_or(&self.cgroup);
        let least = |of: fn(&Cgroup) -> Option<u64>| [of(&self.cgroup), of(limited)].into_iter().flatten().min();
        self.shown.seen = Seen {
            memory: self.cgroup.memory()?,
            pressure: self.cgroup.pressure(),
            limit: limited.limits().into_iter().map(|(_, limit)| limit).min(),
            throttle_limit: least(Cgroup::throttle_limit),
            swap_limit: least(Cgroup::swap_limit),
        };
        self.shown.most.see(&self.shown.seen.memory);
        Ok(())
    }
}

impl Most {
    fn see(&mut self, memory: &MemoryState) {
        let unreclaimable = unreclaimable(memory);
        let budget = unreclaimable.zip(memory.active_file).map(|(held, file)| budget::estimate(held, file));
        self.charge = self.charge.max(memory.usage).max(memory.peak);
        self.swap = self.swap.max(memory.swap).max(memory.swap_peak);
        self.hugetlb = self.hugetlb.max(memory.hugetlb).max(memory.hugetlb_peak);
        self.unreclaimable = self.unreclaimable.max(unreclaimable);
        self.budget = self.budget.max(budget);
    }
}

/// What reclaim could not take now.
pub fn unreclaimable(memory: &MemoryState) -> Option<u64> {
    let held = Held {
        heap: memory.anon?,
        shared: memory.shmem,
        kernel: memory.kernel,
        slab_reclaimable: memory.slab_reclaimable,
        swap: memory.swap,
        swap_cache: memory.swap_cached,
        anon_lists: memory.active_anon.zip(memory.inactive_anon).map(|(active, inactive)| active + inactive),
        unevictable: memory.unevictable,
        file: memory.file,
        hugetlb_charged: memory.hugetlb.filter(|_| memory.charges_hugetlb).unwrap_or(0),
    };
    Some(held.unreclaimable())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_huge_pages_that_were_given_back_are_unmapped_and_not_unreclaimable() {
        let memory = |usage| MemoryState {
            usage: Some(usage),
            anon: Some(1 << 20),
            file: Some(0),
            shmem: Some(0),
            kernel: Some(1 << 20),
            ..MemoryState::default()
        };
        assert_eq!(memory(257 << 20).unmapped(), Some(255 << 20));
        assert_eq!(unreclaimable(&memory(257 << 20)), Some(2 << 20));
        assert_eq!(memory(3 << 20).unmapped(), Some(0), "as much as processors keep in stock");
        assert_eq!(MemoryState::default().unmapped(), None);
        let charged = MemoryState { hugetlb: Some(200 << 20), charges_hugetlb: true, ..memory(257 << 20) };
        assert_eq!((charged.unmapped(), unreclaimable(&charged)), (Some(55 << 20), Some(202 << 20)));
    }

    #[test]
    fn the_most_stays_when_memory_goes() {
        let memory = |anon: u64, active_file: u64| MemoryState {
            usage: Some(anon + active_file),
            anon: Some(anon),
            active_file: Some(active_file),
            ..MemoryState::default()
        };
        let mut most = Most::default();
        most.see(&memory(7 << 20, 1 << 20));
        most.see(&memory(1 << 20, 3 << 20));
        let expected =
            Most { charge: Some(8 << 20), unreclaimable: Some(7 << 20), budget: Some(8 << 20), ..Most::default() };
        assert_eq!(most, expected);
        most.see(&MemoryState::default());
        assert_eq!(most, expected, "what could not be read changes nothing");
    }
}
