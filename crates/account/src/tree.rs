//! What a process tree held, by kind of page, where no cgroup counts it: from each process's own counters.
//!
//! Pages that processes share are in the counters of each. So a kind is known between bounds: the largest of the processes that may
//! share it, and the sum of all. A reading of their proportional sets makes both bounds one.

use model::{Breakdown, Observation, names};

use crate::held::{self, Held};
use crate::moment::Moment;
use crate::{peaks, told};

/// The lines of one kind of page.
struct Kind {
    sum: &'static str,
    least: &'static str,
    most: Option<&'static str>,
    /// By proportional sets.
    reading: &'static str,
}

const HEAP: Kind = Kind {
    sum: names::TREE_RSS_ANON,
    least: names::TREE_HEAP_LEAST,
    most: Some(names::TREE_HEAP_MOST),
    reading: names::HEAP,
};
const FILE: Kind =
    Kind { sum: names::TREE_RSS_FILE, least: names::TREE_FILE_LEAST, most: None, reading: names::FILE_MAPPED };
const SHARED: Kind = Kind {
    sum: names::TREE_RSS_SHARED,
    least: names::TREE_SHARED_LEAST,
    most: Some(names::TREE_SHARED_MOST),
    reading: names::SHARED,
};

/// One figure of a tree with what it was made of: the lower and the upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    pub least: Breakdown,
    pub most: Breakdown,
}

impl Bounds {
    fn of(heap: Held, file: Held, shared: Held, kernel: Held, hugetlb: Option<u64>) -> Bounds {
        let side = |of: fn(Held) -> u64| Breakdown {
            heap: Some(of(heap)),
            file: Some(of(file)),
            shared: Some(of(shared)),
            kernel: Some(of(kernel)),
            hugetlb,
        };
        Bounds { least: side(|held| held.least), most: side(|held| held.most) }
    }

    fn total(&self) -> Held {
        Held { least: self.least.charge().unwrap_or(0), most: self.most.charge().unwrap_or(0) }
    }
}

/// Whether the account of this run comes from the processes alone: no cgroup told a charge, and samples read the processes.
pub fn is_source(run: &Observation) -> bool {
    run.job_series(names::CHARGE).is_none() && run.job_series(names::TREE_RSS_ANON).is_some()
}

/// All samples of a tree.
pub struct Tree<'a> {
    run: &'a Observation,
    heap: Vec<(u64, f64)>,
    file: Vec<(u64, f64)>,
    shared: Vec<(u64, f64)>,
}

impl<'a> Tree<'a> {
    /// `None` where a cgroup tells more, or nothing was sampled.
    pub fn of(run: &'a Observation) -> Option<Tree<'a>> {
        let readings = |kind| readings(run, &kind);
        is_source(run).then(|| Tree { run, heap: readings(HEAP), file: readings(FILE), shared: readings(SHARED) })
    }

    /// What the tree had in memory at its peak: at the moments at which the lower and the upper bound are largest, as a moment of which less
    /// is known may have the larger upper bound. What samples missed of the largest process was of any kind, but where it told itself.
    pub fn peak(&self) -> Bounds {
        let side = |of: fn(Held) -> u64| {
            let total = |at: &Moment| self.in_memory(at).map(|bounds| of(bounds.total())).filter(|_| at.has_job());
            let (at, _) = Moment::of_the_largest(self.run, names::TREE_RSS_ANON, total)?;
            Some((self.in_memory(&at)?, at.get(names::TREE_RSS)?))
        };
        let seen = side(|held| held.least).zip(side(|held| held.most));
        let (mut bounds, rss) = seen
            .map(|((lower, _), (upper, rss))| {
                (Bounds { least: smaller_lines(lower.least, upper.most), most: upper.most }, rss)
            })
            .unwrap_or_default();
        let Bounds { least, most } = &mut bounds;
        let missed = told::missed_heap(self.run);
        if missed > 0 {
            most.heap = Some(most.heap.unwrap_or(0).saturating_add(missed));
        }
        if let Some(distinct) = told::distinct_files(self.run) {
            most.file = most.file.map(|file| file.min(distinct)).max(least.file);
        }
        let Some(peak) = peaks::largest_process(self.run).filter(|peak| *peak > rss) else { return bounds };
        let unseen = peak - rss;
        let kinds = told::kinds_of_largest(self.run, peak);
        for (least, most, kind) in [
            (&mut least.heap, &mut most.heap, kinds.as_ref().map(|kinds| kinds.heap)),
            (&mut least.file, &mut most.file, kinds.as_ref().map(|kinds| kinds.file)),
            (&mut least.shared, &mut most.shared, kinds.as_ref().map(|kinds| kinds.shared)),
        ] {
            let (seen, told) = (most.unwrap_or(0), kind.map_or(u64::MAX, |kind| kind.most));
            *most = Some(seen.saturating_add(unseen).min(told).max(seen));
            *least = Some(least.unwrap_or(0).max(kind.map_or(0, |kind| kind.least)).min(most.unwrap_or(0)));
        }
        bounds
    }

    /// What reclaim could not have taken without swap, at the moments at which the lower and the upper bound are largest.
    pub fn floor(&self) -> Option<(Breakdown, Held)> {
        let side = |of: fn(Held) -> u64| {
            let measure = |at: &Moment| self.unreclaimable(at).map(|held| of(held.total())).filter(|_| at.has_job());
            Moment::of_the_largest(self.run, names::TREE_RSS_ANON, measure)
        };
        let ((at, least), (_, most)) = (side(|held| held.least)?, side(|held| held.most)?);
        Some((self.unreclaimable(&at)?.least, Held { least, most: most.max(least) }))
    }

    /// What reclaim could not have taken at most, over time: (nanoseconds since the run began, bytes).
    pub fn unreclaimable_over_time(&self) -> Vec<(u64, u64)> {
        let points = self.run.job_series(names::TREE_RSS_ANON).map_or(&[][..], |series| &series.points);
        let at = |t_ns: u64| self.unreclaimable(&Moment::at(self.run, t_ns)).map(|bounds| bounds.total().most);
        points.iter().filter_map(|(t_ns, _)| Some((*t_ns, at(*t_ns)?))).collect()
    }

    fn in_memory(&self, at: &Moment) -> Option<Bounds> {
        let (heap, file, shared) = self.kinds(at)?;
        let hugetlb = at.get(names::HUGETLB).max(at.get(names::TREE_HUGETLB));
        Some(Bounds::of(heap, file, shared, kernel(at), hugetlb))
    }

    /// Heap with what of it was in swap, shared memory, page tables, what sockets hold, and mapped files that are locked.
    fn unreclaimable(&self, at: &Moment) -> Option<Bounds> {
        let (heap, file, shared) = self.kinds(at)?;
        let swap = at.get(names::SWAP).unwrap_or(0);
        let swapped = Held { least: bounded_by_processes(at, names::TREE_SWAP_LEAST, swap), most: swap };
        // Locked memory is counted as a whole: heap and shared memory are in it, too.
        let locked = at.get(names::LOCKED).unwrap_or(0);
        let of_files =
            Held { least: locked.saturating_sub(heap.most + shared.most).min(file.least), most: locked.min(file.most) };
        let heap = Held { least: heap.least + swapped.least, most: heap.most + swapped.most };
        Some(Bounds::of(heap, of_files, shared, kernel(at), None))
    }

    fn kinds(&self, at: &Moment) -> Option<(Held, Held, Held)> {
        let kind = |kind: Kind, readings: &[(u64, f64)]| {
            let sum = at.get(kind.sum)?;
            let least = bounded_by_processes(at, kind.least, sum);
            let by_readings = held::by_readings(self.run, readings, at.t_ns());
            let sampled = kind.most.and_then(|most| at.get(most)).unwrap_or(sum);
            let most = by_readings.map_or(sampled, |held| held.most.min(sampled)).max(least);
            Some(Held { least: by_readings.map_or(least, |held| held.least.max(least)).min(most), most })
        };
        Some((kind(HEAP, &self.heap)?, kind(FILE, &self.file)?, kind(SHARED, &self.shared)?))
    }
}

/// Of lines at two moments, the smaller.
fn smaller_lines(one: Breakdown, other: Breakdown) -> Breakdown {
    let line = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one.min(other));
    Breakdown {
        heap: line(one.heap, other.heap),
        file: line(one.file, other.file),
        shared: line(one.shared, other.shared),
        kernel: line(one.kernel, other.kernel),
        hugetlb: line(one.hugetlb, other.hugetlb),
    }
}

/// All that is known of kernel memory without a cgroup.
fn kernel(at: &Moment) -> Held {
    let bytes = [names::PAGE_TABLES, names::SOCKETS].into_iter().filter_map(|name| at.get(name)).sum();
    Held { least: bytes, most: bytes }
}

/// The lower bound of a sum. Records of older versions have no such line: there one process shares nothing with itself, and several
/// may share all.
fn bounded_by_processes(at: &Moment, least: &str, sum: u64) -> u64 {
    let of_old_record = || if at.get(names::PROCESSES).is_some_and(|processes| processes > 1) { 0 } else { sum };
    at.get(least).unwrap_or_else(of_old_record).min(sum)
}

/// Readings of the proportional sets that nothing disturbed. What processes outside of the tree have mapped, too, counts less than one
/// page in them.
fn readings(run: &Observation, kind: &Kind) -> Vec<(u64, f64)> {
    let quiet = run.job_series(names::TREE_HELD).map_or(&[][..], |series| &series.points);
    let value = |t_ns: u64| {
        let at = Moment::at(run, t_ns);
        at.get(kind.reading).map(|bytes| bytes.max(at.get(kind.least).unwrap_or(0)) as f64)
    };
    quiet.iter().filter_map(|(t_ns, _)| Some((*t_ns, value(*t_ns)?))).collect()
}
