//! What processes told of their memory themselves, whatever samples saw of the whole; of those that told nothing, as they were killed,
//! what samples saw of each.

use model::{FileDemand, LATER_THROUGH_MAPPINGS, Observation, ProcessRecord, names};

use crate::held::{self, Held};
use crate::moment::peak;

/// Kinds of memory of a process at its peak. What it had then and not when it looked may have been of any kind, but shared only where it
/// had mapped such memory.
pub struct Kinds {
    pub heap: Held,
    pub file: Held,
    pub shared: Held,
}

impl Kinds {
    /// What cannot be reclaimed: heap, and what may be shared memory.
    pub fn unreclaimable(&self) -> Held {
        Held { least: self.heap.least + self.shared.least, most: self.heap.most.saturating_add(self.shared.most) }
    }
}

fn kinds(process: &ProcessRecord) -> Option<Kinds> {
    let (seen, peak) = (process.largest_seen?, process.max_rss_bytes?);
    let unseen = peak.saturating_sub(seen.all_bytes);
    // Threads that map and unmap while it looks make a part larger than the whole.
    let between = |least: u64, most: u64| Held { least: least.min(peak), most: most.saturating_add(unseen).min(peak) };
    let rest = seen.all_bytes.saturating_sub(seen.heap_bytes);
    Some(Kinds {
        heap: between(seen.heap_bytes, seen.heap_bytes),
        file: between(if seen.may_share { 0 } else { rest }, rest),
        shared: if seen.may_share { between(0, rest) } else { Held { least: 0, most: 0 } },
    })
}

/// A process goes on for a moment once it has told of its end: by so much less its word may be than the kernel's, bytes.
const SINCE: u64 = 256 << 10;

/// Of the process that had this peak by the kernel's word. `None`: it told nothing.
pub fn kinds_of_largest(run: &Observation, peak: u64) -> Option<Kinds> {
    let is_it =
        |process: &&ProcessRecord| process.max_rss_bytes.is_some_and(|bytes| bytes.saturating_add(SINCE) >= peak);
    let largest = run.processes.iter().filter(is_it).find(|process| process.largest_seen.is_some())?;
    kinds(&ProcessRecord { max_rss_bytes: Some(peak), ..largest.clone() })
}

/// The most heap of a process at any time, between bounds.
fn most_heap(process: &ProcessRecord) -> Option<Held> {
    let (heap, peak) = (kinds(process)?.heap, process.max_rss_bytes?);
    let most = process.largest_seen?.most_heap_bytes.min(peak);
    Some(Held { least: heap.least.max(most), most: heap.most.max(most) })
}

/// All file pages that the processes can have mapped, where each told of its own and nothing of that is hidden, bytes.
pub fn distinct_files(run: &Observation) -> Option<u64> {
    let tell = run.processes.iter().any(|process| process.source == "inside") && run.evidence.untold_bytes.is_none();
    let is_known = |demand: &&FileDemand| {
        demand.lost_events == 0 && demand.not_visible.iter().all(|(name, _)| name == LATER_THROUGH_MAPPINGS)
    };
    run.file_demand.as_ref().filter(|_| tell).filter(is_known).map(|demand| demand.distinct_bytes)
}

/// What processes obtained that told nothing of themselves matters from so much on, bytes.
const LEAST_UNTOLD: u64 = 1 << 20;

/// What such processes may have had beside all that is known, bytes.
pub fn untold(run: &Observation) -> u64 {
    run.evidence.untold_bytes.filter(|bytes| *bytes >= LEAST_UNTOLD).unwrap_or(0)
}

/// Whether several processes had shared memory mapped, by their word: it is in memory for as long as one of them maps it.
pub fn may_have_filled_shared_memory(run: &Observation) -> bool {
    run.processes.iter().filter_map(|process| process.largest_seen).filter(|seen| seen.may_share).count() > 1
}

/// What all that lived at the same time had at most, bytes, where their files are known and nobody may have shared memory.
pub fn all_together(run: &Observation) -> Option<u64> {
    let may_share = run.processes.iter().filter_map(|process| process.largest_seen).any(|seen| seen.may_share);
    let files = distinct_files(run).filter(|_| !may_share && peak(run, names::TREE_RSS_SHARED) == Some(0))?;
    Some(sampled_heap(run).saturating_add(missed_heap(run)).saturating_add(files))
}

/// The most heap that one process is known to have had, bytes.
pub fn largest_heap(run: &Observation) -> Option<u64> {
    run.processes.iter().filter_map(most_heap).map(|heap| heap.least).max()
}

/// The most heap that samples saw, at most. Records of older versions have what processes share once for each.
fn sampled_heap(run: &Observation) -> u64 {
    peak(run, names::TREE_HEAP_MOST).or_else(|| peak(run, names::TREE_RSS_ANON)).unwrap_or(0)
}

/// Heap at most of all that lived at the same time, where samples saw less, bytes: of what children of a fork have from their parent,
/// only what they may have copied is theirs.
pub fn heap_together(run: &Observation) -> Option<u64> {
    let own = |process: &ProcessRecord| {
        let shared = process.largest_seen?.uncopied_bytes;
        Some(most_heap(process)?.most.saturating_sub(shared))
    };
    let told = held::together(run, own);
    Some(told).filter(|told| *told > sampled_heap(run))
}

/// What of that samples missed, bytes.
pub fn missed_heap(run: &Observation) -> u64 {
    heap_together(run).map_or(0, |told| told - sampled_heap(run))
}
