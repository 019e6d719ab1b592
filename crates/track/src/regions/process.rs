//! One process, and what is known of each of its regions.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use linux::cpu_clock::CpuClock;
use linux::pages::{Arming, Frames, Mapping, REGION_BYTES, State, Tables, Target, mappings};
use linux::{Error, procfs};

use super::filling::Filling;
use super::rate::{LOOKS, Seen};
use super::tlb::Load;
use crate::pages::choice::mix;

/// Pages of a region.
const PAGES: u64 = 512;
/// Neighbours that are cleared together.
pub const RUN: u64 = 8;
/// Regions on each side that are near.
const NEAR: u64 = 4;
/// Of its regions, this part matters little.
const FEW: f64 = 0.1;
/// Clears of a region until what its pages are part of is asked anew.
const RETRY: u32 = 16;

#[derive(Debug)]
pub struct Process {
    pub pid: i32,
    pub start: u64,
    pub clock: CpuClock,
    /// What it had used when that was last looked at, and when that was.
    pub used: (Duration, Instant),
    /// Processors that it used between the ends of the last two rounds, on average.
    pub processors: f64,
    target: Target,
    arming: Arming,
    frames: Frames,
    /// Names the address space; 0 before the first look.
    space: u64,
    filling: Option<Filling>,
    /// It has filled its memory, and most of that was not looked at since.
    pub is_behind: bool,
    /// By rising address.
    pub known: Vec<(u64, Known)>,
}

/// What is known of a region.
#[derive(Debug)]
pub struct Known {
    pub is_huge: bool,
    pub seen: Seen,
    /// Share of its pages that are there.
    pub present: f64,
    /// Share of these that were accessed until the last look.
    pub accessed: f64,
    pub since: Instant,
    pub last_accessed: Option<Instant>,
    pub clears: u32,
    /// The round that looked at it last; 0: none yet.
    pub looked: u64,
    folios: Folios,
}

/// What is cleared with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Folios {
    /// It alone.
    Pages,
    /// The folio that it is part of: of a part the kernel would split it.
    Larger,
}

/// A page that is looked at.
#[derive(Clone, Debug)]
pub struct Probe {
    pub region: u64,
    pub address: u64,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// There, and its bit was cleared.
    pub is_clear: bool,
    pub is_there: bool,
    pub accessed: [bool; LOOKS],
}

impl Process {
    pub fn of(tables: &mut Tables, pid: i32, start: u64) -> Result<Process, Error> {
        let clock = CpuClock::of(pid)?;
        let target = target(tables, pid)?;
        // Before anything is opened that holds on to an address space: an exec in between is seen by the next look, and there may be none
        // for long, as long as there is nothing to look at.
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

    /// Finds the regions that lie within private memory without a file, and that have anything.
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

    /// What all regions bring to the TLB, by address. Of those that nobody has looked at yet each brings what one does on average.
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

    /// What was seen of a region and those near to it.
    pub fn neighbourhood(&self, region: u64) -> Seen {
        let before = |address: u64| self.known.partition_point(|(start, _)| *start < address);
        let (from, to) = (region.saturating_sub(NEAR * REGION_BYTES), region + (NEAR + 1) * REGION_BYTES);
        let small = self.known[before(from)..before(to)].iter().filter(|(_, known)| !known.is_huge);
        small.fold(Seen::default(), |all, (_, known)| all.with(&known.seen))
    }

    /// A round has ended; what went by since the one before is part of it.
    pub fn account(&mut self) {
        let new = self.known.iter().filter(|(_, known)| known.clears == 0).count();
        self.is_behind &= new as f64 > FEW * self.known.len() as f64;
        if let Some(used) = self.clock.now() {
            let (before, since) = std::mem::replace(&mut self.used, (used, Instant::now()));
            self.processors = used.saturating_sub(before).div_duration_f64(self.used.1 - since);
        }
    }

    /// Pages of a region: a run of neighbours of each of so many equal parts, others each time.
    pub fn probes(&self, region: u64, parts: u64, salt: u64) -> Vec<Probe> {
        if self.find(region).is_none_or(|index| self.known[index].1.is_huge) {
            return vec![Probe { region, address: region }];
        }
        let runs = PAGES / parts / RUN;
        let first = |part: u64| (part * runs + mix(region ^ salt.wrapping_mul(part + 1)) % runs) * RUN;
        let pages = (0..parts).flat_map(|part| first(part)..first(part) + RUN);
        pages.map(|page| Probe { region, address: region + page * procfs::page_bytes() }).collect()
    }

    /// So many pages of these regions, in runs of neighbours, others each time, by rising address.
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

    /// Clears the bits of these, by rising address. Returns which are cleared.
    pub fn clear(&mut self, probes: &[Probe]) -> Result<Vec<bool>, Error> {
        let mut cleared = vec![true; probes.len()];
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut of: Vec<Range<usize>> = Vec::new();
        for (index, probe) in probes.iter().enumerate() {
            let Some(known) = self.find(probe.region).map(|index| &mut self.known[index].1) else { continue };
            let is_first = index == 0 || probes[index - 1].region != probe.region;
            if is_first && known.clears % RETRY == 0 {
                known.folios = folios(&self.frames, probe).unwrap_or(known.folios);
            }
            let page = probe.address..probe.address + procfs::page_bytes();
            let range = match known.folios {
                _ if known.is_huge => probe.region..probe.region + REGION_BYTES,
                Folios::Pages => page,
                Folios::Larger => self.frames.at(probe.address).map_or(page, |frame| frame.folio),
            };
            match (ranges.last_mut(), of.last_mut()) {
                // Each range is flushed from the processors by itself, which takes longer than its pages.
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

    /// Reads the bits of these; `None`: the address space is another.
    pub fn look(&mut self, tables: &mut Tables, probes: &[Probe]) -> Result<Option<Vec<State>>, Error> {
        let addresses: Vec<u64> = probes.iter().map(|probe| probe.address).collect();
        let mut states = Vec::new();
        match tables.look(&self.target, &addresses, &mut states).unwrap_or_default() {
            Some(space) if space == self.space => Ok(Some(states)),
            Some(_) => {
                // All hold on to the address space that they were opened for.
                *self = Process::of(tables, self.pid, self.start)?;
                Ok(None)
            }
            None => {
                // The thread that was looked at may have ended before others.
                self.target = target(tables, self.pid)?;
                Ok(None)
            }
        }
    }

    /// Takes in what a clear and the looks after it have found of a region.
    pub fn learn(&mut self, region: u64, found: &[Found], after: [Duration; LOOKS], now: Instant, round: u64) {
        let Some(known) = self.find(region).map(|index| &mut self.known[index].1) else { return };
        known.clears += 1;
        known.looked = round;
        known.present = found.iter().filter(|found| found.is_there).count() as f64 / found.len().max(1) as f64;
        let count = |look: usize| found.iter().filter(|found| found.is_clear && found.accessed[look]).count() as u32;
        let pages = found.iter().filter(|found| found.is_clear).count() as u32;
        if pages == 0 {
            return;
        }
        known.seen.add(pages, std::array::from_fn(|look| (count(look), after[look])));
        known.accessed = f64::from(count(LOOKS - 1)) / f64::from(pages);
        if count(LOOKS - 1) > 0 {
            known.last_accessed = Some(now);
        }
    }

    /// Where it is among the known ones.
    fn find(&self, region: u64) -> Option<usize> {
        self.known.binary_search_by_key(&region, |(start, _)| *start).ok()
    }

    /// Whether the kernel clears the bit of a page: not if it is mapped more than once, or the page of zeroes, or was just faulted in.
    pub fn is_clearable(&self, probe: &Probe) -> bool {
        self.frames.at(probe.address).is_some_and(|frame| frame.exclusive && !frame.pool && !frame.unlisted)
    }

    /// Pages of a region that are there, and whether it is a huge page; `None`: the process is gone, or is another program.
    pub fn present(&mut self, tables: &mut Tables, region: u64) -> Option<(u64, bool)> {
        let page = procfs::page_bytes();
        let all: Vec<Probe> = (0..PAGES).map(|number| Probe { region, address: region + number * page }).collect();
        let states = self.look(tables, &all).ok()??;
        let there = states.iter().filter(|state| state.is_mapped()).count() as u64;
        Some((there, states.first().is_some_and(|state| state.is_huge())))
    }
}

impl Known {
    fn new(is_huge: bool) -> Known {
        Known {
            is_huge,
            seen: Seen::default(),
            present: 1.0,
            accessed: 0.0,
            since: Instant::now(),
            last_accessed: None,
            clears: 0,
            looked: 0,
            folios: Folios::Pages,
        }
    }

    /// It is to be looked at as if for the first time.
    fn forget(&mut self) {
        (self.seen, self.clears) = (Seen::default(), 0);
    }

    fn load(&self) -> Load {
        let entries = if self.is_huge { 1.0 } else { self.present * PAGES as f64 };
        Load { entries, rate: self.seen.rate() }
    }

    pub fn present_pages(&self) -> u64 {
        if self.is_huge { PAGES } else { (self.present * PAGES as f64).round() as u64 }
    }
}

fn target(tables: &mut Tables, pid: i32) -> Result<Target, Error> {
    let threads = procfs::tasks(pid)?;
    // The first ends last, mostly.
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
