//! One process, and what is known of each of its regions.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use linux::cpu_clock::CpuClock;
use linux::pages::{Arming, Frames, Mapping, REGION_BYTES, State, Tables, Target, mappings};
use linux::{Error, procfs};

use super::filling::Filling;
use super::rate::{SCANS, Samples};
use super::tlb::Load;
use crate::pages::choice::mix;

/// Pages of a region.
const PAGES: u64 = 512;
/// Neighbouring pages that are cleared together.
pub const RUN: u64 = 8;
/// Regions on each side that count as neighbours.
const NEIGHBOUR_REGIONS: u64 = 4;
/// Share of the regions that may be unknown without harm.
const UNKNOWN_SHARE: f64 = 0.1;
/// After this many clears of a region, the folio size of its pages is read again.
const RETRY_CLEARS: u32 = 16;

#[derive(Debug)]
pub struct Process {
    pub pid: i32,
    pub start: u64,
    pub clock: CpuClock,
    /// CPU time of the process at the end of the last round, and when that was.
    pub used: (Duration, Instant),
    /// Average number of processors used between the ends of the last two rounds.
    pub processors: f64,
    target: Target,
    arming: Arming,
    frames: Frames,
    /// Identifies the address space; 0 before the first scan.
    space: u64,
    filling: Option<Filling>,
    /// Whether it has filled its memory and most regions were not scanned since.
    pub is_behind: bool,
    /// Ordered by address.
    pub known: Vec<(u64, Known)>,
}

/// What is known of a region.
#[derive(Debug)]
pub struct Known {
    pub is_huge: bool,
    pub samples: Samples,
    /// Share of its pages that are present.
    pub present: f64,
    /// Share of these accessed until the last scan.
    pub accessed: f64,
    pub since: Instant,
    pub last_accessed: Option<Instant>,
    pub clears: u32,
    /// The last round that scanned it; 0: none yet.
    pub last_round: u64,
    folios: Folios,
}

/// What is cleared together with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Folios {
    /// The page alone.
    Pages,
    /// Its whole folio, because the kernel would split a folio to clear a part of it.
    Larger,
}

/// A page to scan.
#[derive(Clone, Debug)]
pub struct Probe {
    pub region: u64,
    pub address: u64,
}

/// The result for a probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Present, and its bit was cleared.
    pub is_clear: bool,
    pub is_there: bool,
    pub accessed: [bool; SCANS],
}

impl Process {
    pub fn of(tables: &mut Tables, pid: i32, start: u64) -> Result<Process, Error> {
        let clock = CpuClock::of(pid)?;
        let target = target(tables, pid)?;
        // Read this before opening anything that pins the address space, so that the next scan notices an exec in
        // between. That scan may come much later.
        let space = tables.space(&target).ok().flatten().unwrap_or(0);
        Ok(Process {
            pid,
            start,
            clock,
            used: (clock.now().ok_or(Error::Gone(pid))?, Instant::now()),
            processors: 0.0,
            target,
            arming: Arming::of(pid, start)?,
            frames: Frames::of(pid)?,
            space,
            filling: None,
            is_behind: false,
            known: Vec::new(),
        })
    }

    /// Lists the regions that lie within private anonymous memory and have page tables.
    pub fn list(&mut self, tables: &mut Tables) -> Result<(), Error> {
        let mappings = mappings(self.pid)?;
        let regions = tables.regions(&self.target).map_err(|_| Error::Gone(self.pid))?;
        let mut old = std::mem::replace(&mut self.known, Vec::with_capacity(regions.len())).into_iter().peekable();
        let mut parts = mappings.iter().filter(|mapping| is_private(mapping)).peekable();
        for region in regions {
            while parts.next_if(|part| part.range.end < region.start + REGION_BYTES).is_some() {}
            if parts.peek().is_none_or(|part| part.range.start > region.start) {
                continue;
            }
            let is_huge = region.state.is_huge();
            while old.next_if(|(start, _)| *start < region.start).is_some() {}
            let known = old.next_if(|(start, known)| *start == region.start && known.is_huge == is_huge);
            self.known.push(known.unwrap_or_else(|| (region.start, Known::new(is_huge))));
        }
        let regions = self.known.len();
        if self.filling.get_or_insert_with(|| Filling::from(regions)).is_over(regions) {
            self.known.iter_mut().filter(|(_, known)| !known.is_huge).for_each(|(_, known)| known.forget());
            self.is_behind = true;
        }
        Ok(())
    }

    /// The load of each region on the TLB, ordered by address. Regions not scanned yet get the average load.
    pub fn loads(&self) -> Vec<Load> {
        let is_known = |known: &&Known| known.clears > 0;
        let all = || self.known.iter().map(|(_, known)| known);
        let (mut sum, mut count) = (Load::default(), 0.0);
        for load in all().filter(|known| is_known(known) && !known.is_huge).map(Known::load) {
            sum = Load { entries: sum.entries + load.entries, rate: sum.rate + load.entries * load.rate };
            count += 1.0;
        }
        let average = Load { entries: sum.entries / f64::max(count, 1.0), rate: sum.rate / f64::max(sum.entries, 1.0) };
        let load = |known: &Known| if is_known(&known) || known.is_huge { known.load() } else { average };
        all().map(load).collect()
    }

    /// Accesses found in a region and its neighbours.
    pub fn neighbourhood(&self, region: u64) -> Samples {
        let before = |address: u64| self.known.partition_point(|(start, _)| *start < address);
        let (from, to) =
            (region.saturating_sub(NEIGHBOUR_REGIONS * REGION_BYTES), region + (NEIGHBOUR_REGIONS + 1) * REGION_BYTES);
        let small = self.known[before(from)..before(to)].iter().filter(|(_, known)| !known.is_huge);
        small.fold(Samples::default(), |all, (_, known)| all.with(&known.samples))
    }

    /// Ends a round. The time since the end of the last round belongs to it.
    pub fn account(&mut self) {
        let new = self.known.iter().filter(|(_, known)| known.clears == 0).count();
        self.is_behind &= new as f64 > UNKNOWN_SHARE * self.known.len() as f64;
        if let Some(used) = self.clock.now() {
            let (before, since) = std::mem::replace(&mut self.used, (used, Instant::now()));
            self.processors = used.saturating_sub(before).div_duration_f64(self.used.1 - since);
        }
    }

    /// Pages of a region to scan: one run of neighbours in each of `parts` equal parts, other runs for each `salt`.
    pub fn probes(&self, region: u64, parts: u64, salt: u64) -> Vec<Probe> {
        if self.find(region).is_none_or(|index| self.known[index].1.is_huge) {
            return vec![Probe { region, address: region }];
        }
        let runs = PAGES / parts / RUN;
        let first = |part: u64| (part * runs + mix(region ^ salt.wrapping_mul(part + 1)) % runs) * RUN;
        let pages = (0..parts).flat_map(|part| first(part)..first(part) + RUN);
        pages.map(|page| Probe { region, address: region + page * procfs::page_bytes() }).collect()
    }

    /// `pages` pages of these regions, in runs of neighbours, others for each `salt`, ordered by address.
    pub fn scattered(&self, regions: &[u64], pages: usize, salt: u64) -> Vec<Probe> {
        let runs = (pages as u64 / RUN).min(regions.len() as u64 * PAGES / RUN);
        let run = |number: u64| {
            let chosen = mix(salt.wrapping_mul(runs).wrapping_add(number));
            let region = regions[(chosen % regions.len().max(1) as u64) as usize];
            (region, region + (chosen >> 32) % (PAGES / RUN) * RUN * procfs::page_bytes())
        };
        let runs: BTreeSet<(u64, u64)> = (0..runs).map(run).collect();
        let page = |number: u64| number * procfs::page_bytes();
        runs.into_iter()
            .flat_map(|(region, first)| (0..RUN).map(move |number| Probe { region, address: first + page(number) }))
            .collect()
    }

    /// Clears the bits of these pages, ordered by address. Returns which of them are cleared.
    pub fn clear(&mut self, probes: &[Probe]) -> Result<Vec<bool>, Error> {
        let mut cleared = vec![true; probes.len()];
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut of: Vec<Range<usize>> = Vec::new();
        for (index, probe) in probes.iter().enumerate() {
            let Some(known) = self.find(probe.region).map(|index| &mut self.known[index].1) else { continue };
            let is_first = index == 0 || probes[index - 1].region != probe.region;
            if is_first && known.clears % RETRY_CLEARS == 0 {
                known.folios = folios(&self.frames, probe).unwrap_or(known.folios);
            }
            let page = probe.address..probe.address + procfs::page_bytes();
            let range = match known.folios {
                _ if known.is_huge => probe.region..probe.region + REGION_BYTES,
                Folios::Pages => page,
                Folios::Larger => self.frames.at(probe.address).map_or(page, |frame| frame.folio),
            };
            match (ranges.last_mut(), of.last_mut()) {
                // Join adjacent ranges: the flush of a range takes longer than its pages.
                (Some(last), Some(probes)) if !is_first && (last.end == range.start || *last == range) => {
                    (last.end, probes.end) = (range.end, index + 1);
                }
                _ => {
                    ranges.push(range);
                    of.push(index..index + 1);
                }
            }
        }
        self.arming.arm(&ranges, |range| cleared[of[range].clone()].fill(false))?;
        Ok(cleared)
    }

    /// Reads the bits of these pages; `None`: the process has another address space.
    pub fn scan(&mut self, tables: &mut Tables, probes: &[Probe]) -> Result<Option<Vec<State>>, Error> {
        let addresses: Vec<u64> = probes.iter().map(|probe| probe.address).collect();
        let mut states = Vec::new();
        match tables.look(&self.target, &addresses, &mut states).unwrap_or_default() {
            Some(space) if space == self.space => Ok(Some(states)),
            Some(_) => {
                // All of them pin the address space that they were opened for.
                *self = Process::of(tables, self.pid, self.start)?;
                Ok(None)
            }
            None => {
                // The observed thread may have ended before the others.
                self.target = target(tables, self.pid)?;
                Ok(None)
            }
        }
    }

    /// Takes in the scans of a region after one clear.
    pub fn learn(&mut self, region: u64, found: &[Found], after: [Duration; SCANS], now: Instant, round: u64) {
        let Some(known) = self.find(region).map(|index| &mut self.known[index].1) else { return };
        known.clears += 1;
        known.last_round = round;
        known.present = found.iter().filter(|found| found.is_there).count() as f64 / found.len().max(1) as f64;
        let count = |scan: usize| found.iter().filter(|found| found.is_clear && found.accessed[scan]).count() as u32;
        let pages = found.iter().filter(|found| found.is_clear).count() as u32;
        if pages == 0 {
            return;
        }
        known.samples.add(pages, std::array::from_fn(|scan| (count(scan), after[scan])));
        known.accessed = f64::from(count(SCANS - 1)) / f64::from(pages);
        if count(SCANS - 1) > 0 {
            known.last_accessed = Some(now);
        }
    }

    /// Index in `known`.
    fn find(&self, region: u64) -> Option<usize> {
        self.known.binary_search_by_key(&region, |(start, _)| *start).ok()
    }

    /// Whether the kernel clears the bit of a page: not if it is mapped more than once, is the zero page, or was just
    /// faulted in.
    pub fn is_clearable(&self, probe: &Probe) -> bool {
        self.frames.at(probe.address).is_some_and(|frame| frame.exclusive && !frame.pool && !frame.unlisted)
    }

    /// Present pages of a region, and whether it is a huge page; `None`: the process is gone, or runs another program.
    pub fn present(&mut self, tables: &mut Tables, region: u64) -> Option<(u64, bool)> {
        let page = procfs::page_bytes();
        let all: Vec<Probe> = (0..PAGES).map(|number| Probe { region, address: region + number * page }).collect();
        let states = self.scan(tables, &all).ok()??;
        let there = states.iter().filter(|state| state.is_mapped()).count() as u64;
        Some((there, states.first().is_some_and(|state| state.is_huge())))
    }
}

impl Known {
    fn new(is_huge: bool) -> Known {
        Known {
            is_huge,
            samples: Samples::default(),
            present: 1.0,
            accessed: 0.0,
            since: Instant::now(),
            last_accessed: None,
            clears: 0,
            last_round: 0,
            folios: Folios::Pages,
        }
    }

    /// Discards the samples, as if the region had never been scanned.
    fn forget(&mut self) {
        (self.samples, self.clears) = (Samples::default(), 0);
    }

    fn load(&self) -> Load {
        let entries = if self.is_huge { 1.0 } else { self.present * PAGES as f64 };
        Load { entries, rate: self.samples.rate() }
    }

    pub fn present_pages(&self) -> u64 {
        if self.is_huge { PAGES } else { (self.present * PAGES as f64).round() as u64 }
    }
}

fn target(tables: &mut Tables, pid: i32) -> Result<Target, Error> {
    let threads = procfs::tasks(pid)?;
    // The first thread usually ends last.
    threads.iter().find_map(|thread| tables.target(*thread).ok()).ok_or(Error::Gone(pid))
}

fn folios(frames: &Frames, probe: &Probe) -> Option<Folios> {
    let frame = frames.at(probe.address)?;
    let is_larger = frame.folio.end - frame.folio.start > procfs::page_bytes();
    Some(if is_larger { Folios::Larger } else { Folios::Pages })
}

fn is_private(mapping: &Mapping) -> bool {
    !mapping.shared && (mapping.name == "[heap]" || mapping.name.starts_with("[anon"))
}
