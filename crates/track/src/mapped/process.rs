//! One process: which of its mapped file pages are scanned.

use linux::pages::{FileMapping, MOST_ADDRESSES, REGION_BYTES, Region, State, Tables, Target};
use linux::procfs;

use super::arrange::{Page, Present};
use crate::pages::choice::chosen_within;

/// A process that has mapped files.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    pub start: u64,
    /// The thread whose page tables are read.
    target: Option<Target>,
    /// Ordered by mapping and address.
    samples: Vec<Sample>,
    addresses: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    address: u64,
    page: Page,
}

impl Process {
    pub fn new(pid: i32, start: u64) -> Process {
        Process { pid, start, target: None, samples: Vec::new(), addresses: Vec::new() }
    }

    /// Chooses the pages to scan: one of each 2^level neighbours in a file, where page tables exist. `number` numbers
    /// files.
    pub fn choose(
        &mut self,
        tables: &mut Tables,
        mappings: &[FileMapping],
        level: u32,
        mut number: impl FnMut(u32, u64) -> u32,
    ) {
        self.samples.clear();
        if self.target.is_none() {
            let threads = procfs::tasks(self.pid).unwrap_or_default();
            self.target = threads.iter().rev().find_map(|thread| tables.target(*thread).ok());
        }
        self.addresses.clear();
        let Some(target) = &self.target else { return };
        let regions = tables.regions(target).unwrap_or_default();
        for mapping in mappings {
            let file = number(mapping.device, mapping.inode);
            let within = regions.partition_point(|region| region.start + REGION_BYTES <= mapping.range.start);
            let within = regions[within..].iter().take_while(|region| region.start < mapping.range.end);
            self.samples.extend(within.flat_map(|region| samples(mapping, region, file, level)));
        }
        self.addresses.extend(self.samples.iter().map(|sample| sample.address));
    }

    /// Adds the sampled pages that are mapped, each with its Accessed bit.
    pub fn scan(&mut self, tables: &mut Tables, present: &mut Vec<Present>) {
        let Some(target) = &self.target else { return };
        let mut states: Vec<State> = Vec::new();
        for (addresses, samples) in self.addresses.chunks(MOST_ADDRESSES).zip(self.samples.chunks(MOST_ADDRESSES)) {
            // The thread may have ended before the others.
            if tables.look(target, addresses, &mut states).unwrap_or_default().is_none() {
                self.target = None;
                return;
            }
            let mapped = samples.iter().zip(&states).filter(|(_, state)| state.is_mapped());
            present.extend(mapped.map(|(sample, state)| (sample.page, state.is_accessed())));
        }
    }
}

/// The sampled pages of a mapping within a region.
fn samples<'a>(
    mapping: &'a FileMapping,
    region: &Region,
    file: u32,
    level: u32,
) -> impl Iterator<Item = Sample> + 'a + use<'a> {
    let page_bytes = procfs::page_bytes();
    let page_at = |address: u64| mapping.first_page + (address - mapping.range.start) / page_bytes;
    let from = page_at(region.start.max(mapping.range.start));
    let end = page_at((region.start + REGION_BYTES).min(mapping.range.end));
    chosen_within(from, end, level).map(move |page| {
        let address = mapping.range.start + (page - mapping.first_page) * page_bytes;
        Sample { address, page: (file, page) }
    })
}
