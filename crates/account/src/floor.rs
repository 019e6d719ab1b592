//! The floor: what reclaim cannot take.

use model::{Breakdown, DemandPoint, FileDemand, Header, Observation, STOCKS_BYTES, names};

use crate::moment::{Moment, peak};
use crate::tree::Tree;
use crate::{is_attached, peaks, sampled_charge, shares_cgroup, told};

/// A floor and what it was made of.
#[derive(Debug, Default)]
pub struct Floor {
    /// Below it the job is killed.
    pub least: Option<u64>,
    /// The upper bound, where what processes share is not known.
    pub most: Option<u64>,
    /// What `least` was made of.
    pub breakdown: Breakdown,
    /// The part of `least` that no sample saw, by the kernel's own peaks.
    pub missed: u64,
}

/// Peak over time of heap, shared and kernel memory that cannot be reclaimed, with file pages that are locked in. Below
/// it the job is killed, not slowed. Anonymous memory that was swapped out at the time counts: without swap it would have
/// had to stay.
pub fn floor(run: &Observation, tree: Option<&Tree>, header: &Header, notes: &mut Vec<String>) -> Floor {
    let unsampled = proven(run, header).max(held_by_one(run)).unwrap_or(0);
    if let Some(tree) = tree {
        return of_tree(run, tree, unsampled, header, notes);
    }
    let held = |at: &Moment| Some(unreclaimable(at)?.unreclaimable()).filter(|_| at.has_job());
    let Some((moment, sampled)) = Moment::of_the_largest(run, names::HEAP, held) else {
        return Floor { least: Some(unsampled).filter(|floor| *floor > 0), ..Floor::default() };
    };
    if moment.kernel_held().is_none() {
        notes.push("The floor leaves kernel memory out: it could not be read for this job.".into());
    }
    say_that_swap_helps(header, moment.get(names::SWAP), notes);
    let breakdown = unreclaimable(&moment).filter(|_| sampled >= unsampled).map(|held| held.breakdown());
    let least = sampled.max(unsampled);
    let most = sampled.saturating_add(sampled_charge::missed(run));
    Floor {
        least: Some(least),
        most: Some(most).filter(|most| *most > least && sampled_charge::is_incomplete(run)),
        breakdown: breakdown.unwrap_or_default(),
        missed: least - sampled,
    }
}

/// What no sample saw is taken for heap.
fn of_tree(run: &Observation, tree: &Tree, unsampled: u64, header: &Header, notes: &mut Vec<String>) -> Floor {
    let Some((breakdown, sampled)) = tree.floor() else {
        let least = Some(unsampled).filter(|floor| *floor > 0);
        let most = Some(told::missed_heap(run)).filter(|most| *most > unsampled);
        let breakdown = Breakdown { heap: least, ..Breakdown::default() };
        return Floor { least, most, breakdown, missed: 0 };
    };
    notes.push(
        "The floor counts page tables and sockets as its only kernel memory: without a cgroup no other is known."
            .into(),
    );
    say_that_swap_helps(header, peak(run, names::SWAP), notes);
    let most = sampled.most.saturating_add(told::missed_heap(run) + told::untold(run)).max(unsampled);
    let least = sampled.least.max(unsampled);
    let heap = breakdown.heap.map(|heap| heap + least - sampled.least);
    Floor {
        least: Some(least),
        most: Some(most).filter(|most| *most > least),
        breakdown: Breakdown { heap, ..breakdown },
        missed: 0,
    }
}

fn say_that_swap_helps(header: &Header, swap: Option<u64>, notes: &mut Vec<String>) {
    if header.swap.contains("allowed") || swap.is_some_and(|swap| swap > 0) {
        notes.push("The floor is for a job that may not swap; with swap it goes on below it, at another price.".into());
    }
}

/// By so much more than sampled a process's peak RSS may be before it says that something was missed, bytes.
const RSS_SLACK: u64 = 8 << 20;
/// The same where no cgroup counts: samples and that peak are the kernel's same counters then.
const RSS_SLACK_OF_TREE: u64 = 2 << 20;

/// The most that one process held of what cannot be reclaimed, by its own word and by [`not_sampled`].
pub fn held_by_one(run: &Observation) -> Option<u64> {
    not_sampled(run).max(told::largest_heap(run))
}

/// Memory of a command's largest process of which nobody knows what it was: its peak RSS by its exit, less all mapped files that a
/// sample saw. `None` where it told itself what it was, where samples saw most of it, and where a charge and the references bound the
/// page cache, as [`proven`] needs.
pub fn not_sampled(run: &Observation) -> Option<u64> {
    let is_proven = run.kept.most_cached_bytes.is_some() && run.kept.charge_bytes.is_some();
    if is_attached(run) || is_proven {
        return None;
    }
    let rss = run.processes.iter().filter_map(|process| process.max_rss_bytes).max().max(peaks::app_max_rss(run))?;
    let seen = peak(run, names::TREE_RSS)?;
    let charge = run.kept.charge_bytes.unwrap_or(u64::MAX);
    let bytes = rss.saturating_sub(peak(run, names::TREE_RSS_FILE).unwrap_or(0)).min(charge);
    let slack = if crate::tree::is_source(run) { seen / 8 + RSS_SLACK_OF_TREE } else { seen / 4 + RSS_SLACK };
    let bytes = match told::kinds_of_largest(run, rss).map(|kinds| kinds.unreclaimable()) {
        Some(told) if told.most.saturating_sub(told.least) <= slack => return None,
        Some(told) => bytes.min(told.most),
        None => bytes,
    };
    (rss > seen + slack).then_some(bytes)
}

/// A floor that the kernel's own peaks prove, however short they were and whatever the samples missed. It needs a bound on the
/// page cache, which holds where every page that the job brought in was seen: not of a job that was there before, nor in a cgroup
/// that held others, whose peaks may be older or theirs.
///
/// - The charge at its peak, less all file pages and other memory that reclaim could have taken then.
/// - The peak RSS of one process, less all file pages that it can have mapped: those that the job referenced, or that samples
///   saw mapped, for where large folios are mapped not every reference is seen; and less shared memory that samples saw mapped
///   and nobody charged to the job. Other memory that a process maps may be charged elsewhere, so the charge bounds it.
fn proven(run: &Observation, header: &Header) -> Option<u64> {
    if is_attached(run) || shares_cgroup(run) {
        return None;
    }
    let most_cached = run.kept.most_cached_bytes?;
    let charge = run.kept.charge_bytes?;
    let largest_of = |of: &dyn Fn(&Moment) -> Option<u64>| Moment::of_the_largest(run, names::CHARGE, of);
    let slab = largest_of(&|at| at.slab_reclaimable()).map_or(0, |(_, bytes)| bytes);
    // A program that gives back parts of huge pages had given back more at the peak than when it was sampled.
    let given_back = largest_of(&|at| Some(at.given_back())).map_or(0, |(at, bytes)| {
        let charged = at.get(names::CHARGE).unwrap_or(0).max(1);
        (bytes as f64 * (charge as f64 / charged as f64).max(1.0)) as u64
    });
    let reclaimable = slab + given_back + stocks(header);
    let by_charge = charge.saturating_sub(most_cached).saturating_sub(reclaimable);
    let sampled = peak(run, names::TREE_RSS_FILE).filter(|mapped| *mapped > 0);
    let most_mapped = run
        .file_demand
        .as_ref()
        .zip(sampled)
        .map(|(demand, mapped)| demand.distinct_bytes.max(most_cached).max(mapped));
    let largest = run.processes.iter().filter_map(|process| process.max_rss_bytes).max();
    // Shared memory that is mapped and was charged to others.
    let elsewhere = peak(run, names::TREE_RSS_SHARED)
        .zip(peak(run, names::SHARED))
        .map_or(0, |(mapped, charged)| mapped.saturating_sub(charged));
    let by_rss = largest.zip(most_mapped).map_or(0, |(rss, mapped)| rss.saturating_sub(mapped + elsewhere));
    Some(by_charge.max(by_rss.min(charge)))
}

/// Pages that a processor keeps charged in stock (MEMCG_CHARGE_BATCH).
const STOCK_PAGES: u64 = 64;

/// What processors may hold of a charge in stock, bytes.
fn stocks(header: &Header) -> u64 {
    (u64::from(header.cpus) * STOCK_PAGES * header.page_bytes).min(STOCKS_BYTES)
}

/// Mapped file pages below this do not matter, bytes: the C library's.
const LEAST_MAPPED_BYTES: u64 = 2 << 20;

/// The curve of the page cache from the floor on: a limit below it ends the job, whatever it reads again.
pub fn above(run: &Observation, demand: &FileDemand, floor: Option<u64>) -> FileDemand {
    let Some(floor) = floor else { return demand.clone() };
    // Cached before, the files that it maps are charged elsewhere. The sum over processes counts shared libraries often.
    let foreign: u64 = demand.foreign.iter().map(|file| file.cached_bytes).sum();
    let of_processes = peak(run, names::TREE_RSS_FILE).unwrap_or(0);
    let mapped = peak(run, names::FILE_MAPPED).map_or(of_processes, |own| own.max(of_processes.min(foreign)));
    let unscanned = mapped.saturating_sub(demand.mapped_scanned_bytes);
    let known_from_bytes = if unscanned >= LEAST_MAPPED_BYTES { floor + unscanned } else { 0 };
    let demand = &FileDemand { known_from_bytes, ..demand.clone() };
    let at_floor =
        demand.refault_bytes_at(floor).map(|refault_bytes| DemandPoint { limit_bytes: floor, refault_bytes });
    let above = demand.points.iter().filter(|point| point.limit_bytes > floor).copied();
    let begins_below = demand.points.first().is_some_and(|first| first.limit_bytes < floor);
    match begins_below {
        true => FileDemand { points: at_floor.into_iter().chain(above).collect(), ..demand.clone() },
        false => demand.clone(),
    }
}

/// What reclaim could not have taken, over time: (nanoseconds since the run began, bytes). The page cache had to live
/// beside it; empty where heap is not known. Without a cgroup: at most.
pub fn unreclaimable_over_time(run: &Observation) -> Vec<(u64, u64)> {
    if let Some(tree) = Tree::of(run) {
        return tree.unreclaimable_over_time();
    }
    let points = run.job_series(names::HEAP).map_or(&[][..], |heap| &heap.points);
    points
        .iter()
        .filter_map(|(t_ns, _)| Some((*t_ns, unreclaimable(&Moment::at(run, *t_ns))?.unreclaimable())))
        .collect()
}

/// The same with what samples missed between two moments, as single processes told of it: (nanoseconds, bytes), in order of time.
pub fn with_heaps(mut over_time: Vec<(u64, u64)>, heaps: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let sampled = |t_ns: u64| {
        let after = over_time.partition_point(|(at, _)| *at <= t_ns);
        over_time[after.saturating_sub(1)..over_time.len().min(after + 1)].iter().map(|(_, bytes)| *bytes).max()
    };
    let missed: Vec<(u64, u64)> =
        heaps.iter().copied().filter(|(t_ns, bytes)| sampled(*t_ns).is_none_or(|sampled| *bytes > sampled)).collect();
    over_time.extend(missed);
    over_time.sort_by_key(|(t_ns, _)| *t_ns);
    over_time
}

fn unreclaimable(at: &Moment) -> Option<Held> {
    Some(Held {
        heap: at.get(names::HEAP)? + at.unmapped() - at.given_back(),
        shared: at.get(names::SHARED),
        kernel: at.kernel_held(),
        slab_reclaimable: at.slab_reclaimable(),
        swap: at.get(names::SWAP),
        swap_cache: at.get(names::SWAP_CACHE),
        anon_lists: at.get(names::ACTIVE_ANON).zip(at.get(names::INACTIVE_ANON)).map(|(a, b)| a + b),
        unevictable: at.get(names::UNEVICTABLE),
        file: at.get(names::FILE),
        hugetlb_charged: at.hugetlb_charged(),
    })
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
    /// Pages of hugetlb's pools, where they are part of the charge.
    pub hugetlb_charged: u64,
}

impl Held {
    /// What reclaim could not take of it.
    pub fn unreclaimable(&self) -> u64 {
        let parts = self.breakdown();
        parts.charge().unwrap_or(0) + parts.hugetlb.unwrap_or(0)
    }

    /// The same by kind: swapped memory is heap, and files are those locked in.
    fn breakdown(&self) -> Breakdown {
        let shared = self.shared.unwrap_or(0);
        let kernel = self.kernel.unwrap_or(0).saturating_sub(self.slab_reclaimable.unwrap_or(0));
        let swapped = self.swap.unwrap_or(0).saturating_sub(self.swap_cache.unwrap_or(0));
        Breakdown {
            heap: Some(self.heap + swapped),
            file: Some(self.locked_file(self.heap + shared).unwrap_or(0)),
            shared: Some(shared),
            kernel: Some(kernel),
            hugetlb: Some(self.hugetlb_charged),
        }
    }

    /// File pages on the unevictable list. That list also holds locked anonymous pages, which are those missing from the
    /// anonymous lists.
    fn locked_file(&self, anon: u64) -> Option<u64> {
        let locked_anon = anon.saturating_sub(self.anon_lists?);
        Some(self.unevictable?.saturating_sub(locked_anon).min(self.file?))
    }
}

#[cfg(test)]
mod tests {
    use super::with_heaps;

    #[test]
    fn heap_that_a_process_told_of_counts_where_samples_saw_less() {
        let sampled = vec![(0, 10), (100, 50), (200, 20)];
        assert_eq!(with_heaps(sampled.clone(), &[]), sampled);
        let told = [(50, 40), (60, 70), (150, 50), (250, 30)];
        assert_eq!(with_heaps(sampled, &told), [(0, 10), (60, 70), (100, 50), (200, 20), (250, 30)]);
        assert_eq!(with_heaps(Vec::new(), &[(5, 7)]), [(5, 7)]);
    }
}
