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
    let heap = at.get(names::HEAP)?;
    let shared = at.get(names::SHARED).unwrap_or(0);
    let kernel = at.kernel_held().unwrap_or(0).saturating_sub(at.get(names::SLAB_RECLAIMABLE).unwrap_or(0));
    let swapped = at.get(names::SWAP).unwrap_or(0).saturating_sub(at.get(names::SWAP_CACHE).unwrap_or(0));
    Some(heap + shared + kernel + swapped + locked_file(at, heap + shared).unwrap_or(0))
}

/// File pages on the unevictable list. That list also holds locked anonymous pages, which are those missing from the
/// anonymous lists.
fn locked_file(at: &Moment, anon: u64) -> Option<u64> {
    let on_lists = at.get(names::ACTIVE_ANON)? + at.get(names::INACTIVE_ANON)?;
    let locked_anon = anon.saturating_sub(on_lists);
    Some(at.get(names::UNEVICTABLE)?.saturating_sub(locked_anon).min(at.get(names::FILE)?))
}
