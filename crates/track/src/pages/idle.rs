//! Memory that was not accessed for a time.

use linux::pages::REGION_BYTES;
use linux::procfs;

use super::page_bytes;
use super::process::{Place, Process, Sample};

/// Memory of a process all of whose pages that were looked at are idle.
#[derive(Clone, Debug, PartialEq)]
pub struct Idle {
    /// Whose.
    pub pid: i32,
    /// First address.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Of these, resident; estimated.
    pub resident: u64,
    /// Whether it is private and no file's.
    pub is_heap: bool,
}

/// What of a process was not accessed since then, from the first of neighbouring pages that were looked at to the last: what is around
/// a page that is idle among others that are not is not known.
pub fn idle(process: &Process, since_ns: u64) -> Vec<Idle> {
    let mut found: Vec<Idle> = Vec::new();
    let mut used = 0;
    let mut before = None;
    for (index, sample) in process.samples.iter().enumerate() {
        let (state, is_heap) = (process.state(index), process.is_heap(sample));
        // Of heap that nobody uses the kernel takes first what is looked at: no other page's Accessed bit is cleared.
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

/// Of heap that is idle, what is not resident is elsewhere in equal shares.
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
