//! The peaks that the methods name, and what each was made of.

use model::{Breakdown, Bytes, Detail, KEPT_PEAK_NOTE, ListSizes, Observation, names};

use crate::is_attached;
use crate::moment::{Moment, peak};
use crate::tree::Tree;

/// Samples further than this from the peak that the kernel kept are worth a word.
const APART: f64 = 0.02;

/// The parts of a tree's RSS are known if a sample saw this much of its peak; `wait4` may know of a process that none saw.
const SEEN: f64 = 0.9;

/// The kernel charges in batches and updates its lines a little later: charges this close are equal, in bytes.
const BATCH: u64 = 512 << 10;

/// The peak of the charge.
#[derive(Default)]
pub struct ChargePeak {
    pub bytes: Option<u64>,
    pub breakdown: Breakdown,
    /// The lower bound of each line, where what processes share is not known.
    pub breakdown_at_least: Breakdown,
    pub detail: Detail,
}

/// The peak of the tree's RSS.
#[derive(Default)]
pub struct TreePeak {
    pub bytes: Option<u64>,
    pub breakdown: Breakdown,
}

/// The peak of the kernel's lists.
#[derive(Default)]
pub struct ListsPeak {
    pub bytes: Option<u64>,
    pub sizes: ListSizes,
    pub breakdown: Breakdown,
}

/// The peak of the charge: the kernel's, with the breakdown of the largest sample and of what came after it. `missed`: bytes
/// that cannot be reclaimed and that no sample saw. Of a tree without a cgroup there is no charge; its parts are those of
/// the memory that its processes had, and, where its page cache was counted, that.
pub fn charge(run: &Observation, tree: Option<&Tree>, missed: u64, notes: &mut Vec<String>) -> ChargePeak {
    if let Some(tree) = tree {
        return of_tree(run, tree);
    }
    // What a pool's broker lends is charged to the broker: the processes alone know that they have it.
    let hugetlb = run.kept.hugetlb_bytes.max(peak(run, names::HUGETLB)).max(peak(run, names::TREE_HUGETLB));
    let most = peak(run, names::CHARGE);
    // Nothing is charged with nothing: where bursar's own memory was all that was seen, what the job had is not known.
    let bytes = run.kept.charge_bytes.max(most).filter(|bytes| *bytes > 0);
    // Among the moments at the peak, the one whose lines explain most of it.
    let explained = |at: &Moment| {
        at.get(names::CHARGE).filter(|charge| at.has_job() && Some(charge + BATCH) >= most)?;
        let lines = at.get(names::HEAP)? + at.get(names::FILE).unwrap_or(0) + at.get(names::SHARED).unwrap_or(0);
        Some(lines + at.hugetlb_charged())
    };
    let sampled = Moment::of_the_largest(run, names::CHARGE, explained)
        .or_else(|| Moment::of_the_largest(run, names::CHARGE, |at| at.get(names::CHARGE).filter(|_| at.has_job())));
    let moment = sampled.map(|(at, _)| at);
    let is_telling = |at: &Moment| at.get(names::CHARGE).zip(bytes).is_none_or(|(seen, most)| 2 * seen >= most);
    let Some(at) = moment.filter(is_telling) else {
        if bytes.is_some() {
            notes.push(
                "No sample saw the job at more than half of its peak, so what the peak was made of is not known."
                    .into(),
            );
        }
        return ChargePeak { bytes, breakdown: Breakdown { hugetlb, ..Default::default() }, ..Default::default() };
    };
    if let (Some(kept), Some(seen)) = (run.kept.charge_bytes, at.get(names::CHARGE)) {
        say_how_far_apart(run, kept, seen, notes);
    }
    let given_back = at.given_back();
    if given_back > 0 {
        notes.push(format!(
            "{} of the heap at the peak are parts of transparent huge pages that the program has given back. They are charged \
             until memory is short; then the kernel splits the huge pages and frees them.",
            Bytes(given_back)
        ));
    }
    let sampled = Breakdown {
        heap: at.get(names::HEAP).map(|heap| heap + at.unmapped()),
        file: at.get(names::FILE),
        shared: at.get(names::SHARED),
        kernel: at.kernel(),
        hugetlb,
    };
    // What is charged of hugetlb's pools was taken whole, page by page: the other lines share the rest.
    let others = bytes.map(|bytes| bytes.saturating_sub(at.hugetlb_charged()));
    let scale = match (others, sampled.charge()) {
        (Some(bytes), Some(sum)) if sum > 0 => bytes as f64 / sum as f64,
        _ => 1.0,
    };
    ChargePeak {
        bytes,
        breakdown: others.map_or(sampled, |bytes| at_peak(run, &sampled, bytes, missed)),
        breakdown_at_least: Breakdown::default(),
        detail: detail(&at, scale),
    }
}

/// The parts of a peak, from those of the largest sample. What samples missed and the kernel's own peaks prove is heap; the
/// rest of what came after the sample is page cache, as far as references show so much of it. All other is in proportion.
fn at_peak(run: &Observation, sampled: &Breakdown, bytes: u64, missed: u64) -> Breakdown {
    let known = sampled.charge().zip(sampled.heap).zip(sampled.file).zip(run.kept.most_cached_bytes);
    let Some((((sum, heap), file), most_cached)) = known.filter(|(((sum, _), _), _)| *sum < bytes) else {
        return sampled.scaled_to(bytes);
    };
    let heap_after = missed.min(bytes - sum);
    let file_after = most_cached.saturating_sub(file).min(bytes - sum - heap_after);
    Breakdown { heap: Some(heap + heap_after), file: Some(file + file_after), ..*sampled }.scaled_to(bytes)
}

fn of_tree(run: &Observation, tree: &Tree) -> ChargePeak {
    let bounds = tree.peak();
    let page_tables = bounds.most.kernel.map(|kernel| kernel.min(peak(run, names::PAGE_TABLES).unwrap_or(0)));
    let detail = Detail {
        page_tables,
        sockets: peak(run, names::SOCKETS).and(bounds.most.kernel).map(|kernel| kernel - page_tables.unwrap_or(0)),
        locked: peak(run, names::LOCKED),
        pinned: peak(run, names::PINNED),
        ..Default::default()
    };
    let Some(emulated) = run.evidence.emulated else {
        return ChargePeak { bytes: None, breakdown: bounds.most, breakdown_at_least: bounds.least, detail };
    };
    // The page cache was counted beside it. What no sample saw is taken for heap, and what may be bursar's own is not shared memory.
    let whole = Breakdown { heap: bounds.most.heap, file: Some(emulated.peak_cached_bytes), ..bounds.least };
    // What is shared may have been read only after it was counted for each process.
    let held_at_most = tree.floor().map(|(_, held)| held.most).zip(emulated.most_cached_bytes);
    let at_most = held_at_most.map_or(u64::MAX, |(held, cached)| held.saturating_add(cached));
    let told = crate::floor::held_by_one(run).max(crate::told::heap_together(run)).unwrap_or(0);
    let bytes = emulated.peak_bytes.min(at_most).max(told);
    ChargePeak {
        bytes: Some(bytes),
        breakdown: whole.scaled_to(bytes),
        breakdown_at_least: Breakdown::default(),
        detail,
    }
}

fn say_how_far_apart(run: &Observation, kept: u64, seen: u64, notes: &mut Vec<String>) {
    let apart = kept as f64 / seen.max(1) as f64 - 1.0;
    if apart <= APART {
        return;
    }
    let (kept, seen) = (Bytes(kept), Bytes(seen));
    notes.push(if is_attached(run) {
        format!("The peak charge of {kept} may be from before bursar started; since then, the most was {seen}.")
    } else {
        format!(
            "{KEPT_PEAK_NOTE} {kept}; the largest sample saw {seen} ({:.0} % less). The breakdown is that sample's; the \
             difference counts as page cache, as far as references show so much.",
            100.0 * (1.0 - seen.0 as f64 / kept.0 as f64)
        )
    });
}

/// The finer lines, in the same proportion as the breakdown they are parts of. What processes lock and pin is counted
/// by process, not by charge, and stays as it is.
fn detail(at: &Moment, scale: f64) -> Detail {
    let line = |name| at.get(name).map(|v| (v as f64 * scale) as u64);
    let clean = || {
        let unclean = at.get(names::FILE_DIRTY)? + at.get(names::FILE_WRITEBACK)?;
        Some((at.get(names::FILE)?.saturating_sub(unclean) as f64 * scale) as u64)
    };
    Detail {
        file_clean: clean(),
        file_dirty: line(names::FILE_DIRTY),
        file_writeback: line(names::FILE_WRITEBACK),
        file_mapped: line(names::FILE_MAPPED),
        slab: line(names::SLAB),
        slab_reclaimable: line(names::SLAB_RECLAIMABLE),
        page_tables: line(names::PAGE_TABLES),
        kernel_stacks: line(names::KERNEL_STACKS),
        sockets: line(names::SOCKETS),
        locked: at.get(names::LOCKED),
        unevictable: line(names::UNEVICTABLE),
        swap_cache: line(names::SWAP_CACHE),
        huge_pages: line(names::HUGE_PAGES),
        given_back: Some((at.given_back() as f64 * scale) as u64).filter(|bytes| *bytes > 0),
        pinned: at.get(names::PINNED),
    }
}

/// App-MaxRSS: the largest process. For a command it is what `wait4` says, to the page; for an attachment, the largest
/// peak among the processes seen.
pub fn app_max_rss(run: &Observation) -> Option<u64> {
    match run.rusage {
        Some(usage) => Some(usage.max_rss_bytes),
        None => run.processes.iter().filter_map(|p| p.max_rss_bytes).max(),
    }
}

/// The peak RSS of the largest process, one that the command did not wait for included.
pub fn largest_process(run: &Observation) -> Option<u64> {
    app_max_rss(run).max(run.processes.iter().filter_map(|process| process.max_rss_bytes).max())
}

/// The most heap and shared memory that the job was charged with at a time.
pub fn held(run: &Observation) -> Option<u64> {
    let of = |at: &Moment| Some(at.get(names::HEAP)? + at.get(names::SHARED).unwrap_or(0));
    Moment::of_the_largest(run, names::HEAP, of).map(|(_, bytes)| bytes)
}

/// App-MaxRSS over the tree: the sampled peak of the sum, never less than the largest process alone.
pub fn tree_max_rss(run: &Observation, app_max_rss: Option<u64>) -> TreePeak {
    let sampled = Moment::of_the_largest(run, names::TREE_RSS, |at| at.get(names::TREE_RSS));
    let bytes = app_max_rss.max(sampled.as_ref().map(|(_, rss)| *rss));
    let Some(((at, seen), bytes)) = sampled.zip(bytes) else { return TreePeak { bytes, ..Default::default() } };
    if (seen as f64) < SEEN * bytes as f64 {
        return TreePeak { bytes: Some(bytes), ..Default::default() };
    }
    let breakdown = Breakdown {
        heap: at.get(names::TREE_RSS_ANON),
        file: at.get(names::TREE_RSS_FILE),
        shared: at.get(names::TREE_RSS_SHARED),
        kernel: Some(0), // RSS counts none, by definition
        hugetlb: None,
    };
    TreePeak { bytes: Some(bytes), breakdown: breakdown.scaled_to(bytes) }
}

/// Sys-MaxRSS: the peak of the four lists' sum, all read at the same moment. Shared memory lives on the anonymous lists.
pub fn lists(run: &Observation) -> ListsPeak {
    let sizes = |at: &Moment| ListSizes {
        active_anon: at.get(names::ACTIVE_ANON),
        inactive_anon: at.get(names::INACTIVE_ANON),
        active_file: at.get(names::ACTIVE_FILE),
        inactive_file: at.get(names::INACTIVE_FILE),
    };
    let anon = |lists: &ListSizes| Some(lists.active_anon? + lists.inactive_anon?);
    let file = |lists: &ListSizes| Some(lists.active_file? + lists.inactive_file?);
    let sum = |at: &Moment| {
        let lists = sizes(at);
        Some(anon(&lists)? + file(&lists)?)
    };
    let Some((at, bytes)) = Moment::of_the_largest(run, names::ACTIVE_ANON, sum) else { return ListsPeak::default() };
    let sizes = sizes(&at);
    let shared = at.get(names::SHARED).min(anon(&sizes));
    ListsPeak {
        bytes: Some(bytes),
        breakdown: Breakdown {
            heap: anon(&sizes).zip(shared).map(|(anon, shared)| anon - shared),
            file: file(&sizes),
            shared,
            kernel: Some(0), // the lists hold none, by definition
            hugetlb: None,
        },
        sizes,
    }
}

/// Unlimited: growth of the memory in use on the whole machine, which only means the job's if bursar started it and did
/// not limit it.
pub fn unlimited(run: &Observation) -> Option<u64> {
    if is_attached(run) || run.limit_bytes.is_some() {
        return None;
    }
    let used = run.job_series(names::SYSTEM_USED)?;
    let (_, before) = used.points.first()?;
    Some((used.peak()? - before) as u64)
}

/// Proportional sets are read rarely: their peak is known where one was read while the processes held most of what they held at most.
pub fn tree_max_pss(run: &Observation) -> Option<u64> {
    let (pss, rss) = (run.job_series(names::TREE_PSS)?, run.job_series(names::TREE_RSS)?);
    let least = SEEN * rss.peak()?;
    let at_most = |(t_ns, _): &(u64, f64)| rss.at(*t_ns).is_some_and(|rss| rss >= least);
    pss.points.iter().any(at_most).then(|| peak(run, names::TREE_PSS)).flatten()
}
