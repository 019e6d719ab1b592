//! The floor: what reclaim cannot take.

use model::{Header, Observation, names};

use crate::moment::Moment;

/// Peak over time of heap, shared and kernel memory that cannot be reclaimed, with file pages that are locked in. Below
/// it the job is killed, not slowed. Anonymous memory that was swapped out at the time counts: without swap it would have
/// had to stay.
pub fn floor(run: &Observation, header: &Header, notes: &mut Vec<String>) -> Option<u64> {
    let held = |at: &Moment| unreclaimable(at).filter(|_| at.has_job());
    let (moment, floor) = Moment::of_the_largest(run, names::HEAP, held)?;
    if moment.kernel_held().is_none() {
        notes.push("The floor leaves kernel memory out: it could not be read for this job.".into());
    }
    if header.swap.contains("allowed") || moment.get(names::SWAP).is_some_and(|swap| swap > 0) {
        notes.push("The floor is for a job that may not swap; with swap it goes on below it, at another price.".into());
    }
    Some(floor)
}

/// What reclaim could not have taken, over time: (nanoseconds since the run began, bytes). The page cache had to live
/// beside it; empty where heap is not known.
pub fn unreclaimable_over_time(run: &Observation) -> Vec<(u64, u64)> {
    let points = run.job_series(names::HEAP).map_or(&[][..], |heap| &heap.points);
    points.iter().filter_map(|(t_ns, _)| Some((*t_ns, unreclaimable(&Moment::at(run, *t_ns))?))).collect()
}

fn unreclaimable(at: &Moment) -> Option<u64> {
    let held = Held {
        heap: at.get(names::HEAP)?,
        shared: at.get(names::SHARED),
        kernel: at.kernel_held(),
        slab_reclaimable: at.get(names::SLAB_RECLAIMABLE),
        swap: at.get(names::SWAP),
        swap_cache: at.get(names::SWAP_CACHE),
        anon_lists: at.get(names::ACTIVE_ANON).zip(at.get(names::INACTIVE_ANON)).map(|(a, b)| a + b),
        unevictable: at.get(names::UNEVICTABLE),
        file: at.get(names::FILE),
    };
    Some(held.unreclaimable())
}

/// What is held at a moment, in bytes; what is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Anonymous memory.
    pub heap: u64,
    /// tmpfs and shared memory.
    pub shared: Option<u64>,
    /// Kernel memory.
    pub kernel: Option<u64>,
    /// Kernel objects that can be reclaimed.
    pub slab_reclaimable: Option<u64>,
    /// Swap in use.
    pub swap: Option<u64>,
    /// Pages both in memory and in swap.
    pub swap_cache: Option<u64>,
    /// The active and the inactive list of anonymous and shared memory.
    pub anon_lists: Option<u64>,
    /// The unevictable list.
    pub unevictable: Option<u64>,
    /// Page cache.
    pub file: Option<u64>,
}

impl Held {
    /// What reclaim could not take of it.
    pub fn unreclaimable(&self) -> u64 {
        let shared = self.shared.unwrap_or(0);
        let kernel = self.kernel.unwrap_or(0).saturating_sub(self.slab_reclaimable.unwrap_or(0));
        let swapped = self.swap.unwrap_or(0).saturating_sub(self.swap_cache.unwrap_or(0));
        self.heap + shared + kernel + swapped + self.locked_file(self.heap + shared).unwrap_or(0)
    }

    /// File pages on the unevictable list. That list also holds locked anonymous pages, which are those missing from the
    /// anonymous lists.
    fn locked_file(&self, anon: u64) -> Option<u64> {
        let locked_anon = anon.saturating_sub(self.anon_lists?);
        Some(self.unevictable?.saturating_sub(locked_anon).min(self.file?))
    }
}
