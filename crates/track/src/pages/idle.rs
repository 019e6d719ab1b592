//! Memory that was not accessed for a time.

use linux::pages::REGION_BYTES;

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
    let mut before = None;
    for (index, sample) in process.samples.iter().enumerate() {
        let is_idle = process.state(index).is_mapped() && is_idle(sample, since_ns);
        let mapping = is_idle.then_some(sample.mapping);
        if is_idle {
            let resident = sample.pages * page_bytes();
            let end = sample.address + if sample.huge { REGION_BYTES } else { page_bytes() };
            match found.last_mut().filter(|_| mapping == before) {
                Some(run) => (run.end, run.resident) = (end, run.resident + resident),
                None => {
                    let is_heap = process.is_heap(sample);
                    found.push(Idle { pid: process.pid, start: sample.address, end, resident, is_heap });
                }
            }
        }
        before = mapping;
    }
    found
}

fn is_idle(sample: &Sample, since_ns: u64) -> bool {
    matches!(sample.place, Place::Armed { .. }) && sample.seen_ns.unwrap_or(0) <= since_ns
}
