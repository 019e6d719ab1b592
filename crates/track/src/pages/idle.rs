//! Memory that was not accessed for some time.

use linux::pages::REGION_BYTES;
use linux::procfs;

use super::page_bytes;
use super::process::{Place, Process, Sample};

/// A range of a process's memory in which all sampled pages are idle.
#[derive(Clone, Debug, PartialEq)]
pub struct Idle {
    /// The process.
    pub pid: i32,
    /// First address.
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// Resident bytes of the range; estimated.
    pub resident: u64,
    /// Whether the range is private anonymous memory.
    pub is_heap: bool,
}

/// Ranges of a process not accessed since `since_ns`, each from the first to the last of neighbouring idle samples.
/// Pages around an idle sample whose neighbours are not idle are left out, since nothing is known of them.
pub fn idle(process: &Process, since_ns: u64) -> Vec<Idle> {
    let mut found: Vec<Idle> = Vec::new();
    let mut used = 0;
    let mut before = None;
    for (index, sample) in process.samples.iter().enumerate() {
        let (state, is_heap) = (process.state(index), process.is_heap(sample));
        // Of unused heap the kernel reclaims sampled pages first, because only their Accessed bits are cleared.
        let is_idle = (state.is_mapped() || is_heap && state.is_away()) && is_idle(sample, since_ns);
        let mapping = is_idle.then_some(sample.mapping);
        let bytes = sample.pages * page_bytes();
        if is_idle {
            let end = sample.address + if sample.huge { REGION_BYTES } else { page_bytes() };
            match found.last_mut().filter(|_| mapping == before) {
                Some(run) => (run.end, run.resident) = (end, run.resident + bytes),
                None => found.push(Idle { pid: process.pid, start: sample.address, end, resident: bytes, is_heap }),
            }
        } else if is_heap && state.is_mapped() {
            used += bytes;
        }
        before = mapping;
    }
    let resident = procfs::status(process.pid).ok().and_then(|status| status.rss_anon).unwrap_or(0);
    leave_resident(&mut found, resident.saturating_sub(used));
    found
}

/// Scales idle heap down to what is resident, in equal shares: the rest is swapped out.
fn leave_resident(found: &mut [Idle], most: u64) {
    let heap = || found.iter().filter(|run| run.is_heap);
    let all: u64 = heap().map(|run| run.resident).sum();
    let share = most as f64 / all as f64;
    for run in found.iter_mut().filter(|run| run.is_heap && share < 1.0) {
        run.resident = (run.resident as f64 * share) as u64;
    }
}

fn is_idle(sample: &Sample, since_ns: u64) -> bool {
    matches!(sample.place, Place::Armed { .. }) && sample.seen_ns.unwrap_or(0) <= since_ns
}
