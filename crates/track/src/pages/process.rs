//! One process: which of its pages are scanned, and what is known of each.

use std::ops::Range;

use linux::Error;
use linux::pages::{Arming, Frames, MOST_ADDRESSES, Mapping, REGION_BYTES, Region, State, Tables, Target, mappings};
use linux::procfs;

use super::choice::{chosen, chosen_within};
use super::guests::{Guest, contains};
use super::page_bytes;
use super::sweep::Sweep;

/// A scanned process.
#[derive(Debug)]
pub struct Process {
    pub pid: i32,
    pub start: u64,
    pub mappings: Vec<Mapping>,
    /// Ordered by address.
    pub samples: Vec<Sample>,
    addresses: Vec<u64>,
    states: Vec<State>,
    arming: Arming,
    frames: Frames,
    target: Target,
    pub sweep: Sweep,
    /// The watched KVM guest, if the process runs one.
    pub guest: Option<Guest>,
    /// Whether the process runs a guest that cannot be watched.
    pub is_unseen: bool,
    /// Identifies the address space.
    space: u64,
    choices: u32,
}

/// After this many choices of pages, pages that were refused are tried again.
const RETRY_CHOICES: u32 = 16;

/// A sampled page.
#[derive(Clone, Debug)]
pub struct Sample {
    pub address: u64,
    /// Whether it is a 2 MiB huge page.
    pub huge: bool,
    /// Number of pages that it stands for.
    pub pages: u64,
    /// The range whose bits are cleared: the folio that the page is part of.
    pub folio: Range<u64>,
    pub place: Place,
    /// Index into the mappings.
    pub mapping: u32,
    /// Number of consecutive scans that found it accessed.
    pub streak: u32,
    /// When it was last found accessed; `None`: not yet.
    pub seen_ns: Option<u64>,
    /// Whether it was first filled while it was sampled, and not accessed since.
    pub is_filled: bool,
    /// Accessed in this round.
    pub touched: bool,
    /// Part of the small sample, and accessed since tracking went off.
    pub untracked: bool,
    /// At the last scan it was swapped out or being migrated; or it is a file's and its page table entry was empty, so
    /// the kernel has reclaimed it.
    pub away: bool,
    /// A return from swap was reported since the last scan.
    pub returned: bool,
    /// Why its bit can only be cleared by a sweep of the whole process; `None` if it can be cleared by itself.
    pub swept: Option<Blind>,
}

/// The state of a sampled page. `seen` is the number of the last scan that found it accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not mapped.
    Absent,
    /// On the stack; its bit was cleared after scan `seen` found it accessed.
    Armed { seen: u64 },
    /// Hot: taken to be accessed, without scans, until scan number `until`.
    Resting { seen: u64, until: u64 },
    /// Its rest is over: the next scan shows whether it is still hot.
    Waking { seen: u64 },
    /// Was accessed, and waits for a sweep to clear its bit.
    Spent { seen: u64 },
    /// Its bit cannot be cleared.
    Blind(Blind),
}

/// Why a page is blind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blind {
    /// Mapped more than once.
    Shared,
    /// The kernel refuses to clear its bit: it is locked.
    Refused,
    /// From a hugetlb pool: nothing clears its bit.
    Pool,
    /// Of a KVM guest that DAMON does not watch.
    Guest,
}

impl Process {
    pub fn of(tables: &mut Tables, pid: i32, start: u64) -> Result<Process, Error> {
        let target = target(tables, pid, &[pid])?;
        // Read this before opening anything that pins the address space, so that the first scan notices an exec in
        // between.
        let space = tables.space(&target).ok().flatten().unwrap_or(0);
        Ok(Process {
            pid,
            start,
            mappings: mappings(pid)?,
            samples: Vec::new(),
            addresses: Vec::new(),
            states: Vec::new(),
            arming: Arming::of(pid, start)?,
            frames: Frames::of(pid)?,
            target,
            sweep: Sweep::default(),
            guest: None,
            is_unseen: false,
            space,
            choices: 0,
        })
    }

    /// Number of units (pages and huge pages) to scan at this level.
    pub fn units(&self, tables: &mut Tables, level: u32) -> u64 {
        let regions = tables.regions(&self.target).unwrap_or_default();
        let huge = regions.iter().filter(|region| region.state.is_huge()).count();
        ((((regions.len() - huge) * 512) >> level) + (huge >> huge_level(level))) as u64
    }

    /// Chooses the pages to scan. Pages that stay in the sample keep what is known of them. `stamp` gives the scan
    /// number for a page that existed before it joined the sample, from its address and the number of its nearest
    /// neighbour.
    pub fn choose(
        &mut self,
        tables: &mut Tables,
        level: u32,
        now: u64,
        stamp: impl Fn(u64, Option<u64>) -> u64,
        fresh: bool,
    ) -> Result<u64, Error> {
        self.mappings = mappings(self.pid)?;
        let regions = tables.regions(&self.target).map_err(|_| Error::Gone(self.pid))?;
        let mut old = std::mem::take(&mut self.samples).into_iter().peekable();
        let mut neighbour = None;
        let mut new = Vec::new();
        let mut samples: Vec<Sample> = Vec::new();
        for (address, huge, mapping) in wanted(&self.mappings, &regions, level) {
            while let Some(sample) = old.next_if(|sample| sample.address < address) {
                neighbour = sample.place.seen().map(|seen| (seen, sample.is_filled)).or(neighbour);
            }
            let pages = if huge { 512 << huge_level(level) } else { 1 << level };
            match old.next_if(|sample| sample.address == address && sample.huge == huge) {
                Some(sample) => {
                    let seen = if sample.place.rests() { Some(now) } else { sample.place.seen() };
                    neighbour = seen.map(|seen| (seen, sample.is_filled)).or(neighbour);
                    samples.push(Sample { pages, mapping, ..sample });
                }
                None => {
                    new.push((samples.len(), neighbour));
                    samples.push(Sample {
                        address,
                        huge,
                        pages,
                        folio: address..address + if huge { REGION_BYTES } else { page_bytes() },
                        place: Place::Absent,
                        mapping,
                        streak: 0,
                        seen_ns: None,
                        is_filled: false,
                        touched: false,
                        untracked: false,
                        away: false,
                        returned: false,
                        swept: None,
                    });
                }
            }
        }
        self.samples = samples;
        self.addresses = self.samples.iter().map(|sample| sample.address).collect();
        self.scan(tables)?;
        let mut arm = Vec::new();
        let mut first_touches = 0;
        for (index, neighbour) in new {
            if !self.states[index].is_mapped() {
                continue;
            }
            if !self.examine(index) {
                continue;
            }
            let sample = &mut self.samples[index];
            let seen = if fresh { now } else { stamp(sample.address, neighbour.map(|(seen, _)| seen)) };
            sample.is_filled = fresh || neighbour.is_some_and(|(_, is_filled)| is_filled);
            first_touches += if fresh { sample.pages } else { 0 };
            sample.place = Place::Armed { seen };
            sample.touched = fresh;
            arm.push(index);
        }
        // A page may no longer be shared or locked.
        self.choices = self.choices.wrapping_add(1);
        let retry = self.choices % RETRY_CHOICES == 0;
        for (index, sample) in self.samples.iter_mut().enumerate() {
            let seen = match sample.place {
                Place::Blind(Blind::Shared) => now,
                Place::Blind(Blind::Refused) if retry => now,
                Place::Armed { seen } | Place::Spent { seen } if sample.swept == Some(Blind::Shared) => seen,
                _ => continue,
            };
            if examine(&self.frames, &self.mappings, sample).is_ok() {
                (sample.place, sample.swept) = (Place::Armed { seen }, None);
                arm.push(index);
            }
        }
        arm.sort_unstable();
        self.arm(&arm)?;
        Ok(first_touches)
    }

    /// Reads the bits, for [`Process::state`].
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn scan(&mut self, tables: &mut Tables) -> Result<ScanResult, Error> {
        let mut space = None;
        let mut states = std::mem::take(&mut self.states);
        let mut all = Vec::with_capacity(self.addresses.len());
        for addresses in self.addresses.chunks(MOST_ADDRESSES) {
            space = tables.look(&self.target, addresses, &mut states).unwrap_or_default();
            if space.is_none() {
                break;
            }
            all.append(&mut states);
        }
        self.states = all;
        if self.addresses.is_empty() {
            return Ok(ScanResult::Same);
        }
        match space {
            Some(space) if space == self.space => Ok(ScanResult::Same),
            Some(space) => {
                self.space = space;
                // Both pin the address space that they were opened for.
                self.arming = Arming::of(self.pid, self.start)?;
                self.frames = Frames::of(self.pid)?;
                Ok(ScanResult::Other)
            }
            None => {
                // The observed thread may have ended before the others.
                self.states.resize(self.addresses.len(), State::default());
                let threads = procfs::tasks(self.pid)?;
                self.target = target(tables, self.pid, &threads)?;
                let living = tables.space(&self.target);
                if living.is_ok_and(|space| space.is_some()) {
                    Ok(ScanResult::Lost)
                } else {
                    Err(Error::Gone(self.pid))
                }
            }
        }
    }

    /// Sets the states from the ranges that the process's guest has accessed since the last scan, in rising order.
    /// Without a guest, does nothing.
    pub fn apply_guest_accesses(&mut self, accessed: &[Range<u64>]) {
        if self.guest.is_some() {
            for (state, address) in self.states.iter_mut().zip(&self.addresses) {
                *state = state.with_accessed(contains(accessed, *address));
            }
        }
    }

    /// Which of these pages, given in rising order, were accessed; none if the process cannot be scanned. For a guest,
    /// `by_guest` has the ranges that it accessed. Does not change [`Process::state`].
    pub fn accessed_of(&self, tables: &mut Tables, indices: &[usize], by_guest: &[Range<u64>]) -> Vec<usize> {
        if self.guest.is_some() {
            return indices.iter().copied().filter(|index| contains(by_guest, self.addresses[*index])).collect();
        }
        let addresses: Vec<u64> = indices.iter().map(|index| self.addresses[*index]).collect();
        let mut states = Vec::new();
        match tables.look(&self.target, &addresses, &mut states) {
            Ok(Some(space)) if space == self.space => {
                let found = indices.iter().zip(&states).filter(|(_, state)| state.is_mapped() && state.is_accessed());
                found.map(|(index, _)| *index).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The sample that begins at this address.
    pub fn sample_at(&mut self, address: u64) -> Option<&mut Sample> {
        self.addresses.binary_search(&address).ok().and_then(|index| self.samples.get_mut(index))
    }

    /// The page's state at the last scan.
    pub fn state(&self, index: usize) -> State {
        self.states.get(index).copied().unwrap_or_default()
    }

    /// Whether the page is private anonymous memory.
    pub fn is_heap(&self, sample: &Sample) -> bool {
        let mapping = self.mappings.get(sample.mapping as usize);
        mapping.is_some_and(|mapping| !mapping.shared && mapping.name.starts_with('['))
    }

    /// Whether the page belongs to a file or to shared memory. The kernel empties the page table entry of such a page
    /// when it reclaims it, and the same page may come back.
    pub fn is_of_file(&self, sample: &Sample) -> bool {
        self.mappings.get(sample.mapping as usize).is_some_and(|mapping| mapping.name.starts_with('/'))
    }

    /// Whether the page's bit can be cleared by itself. If not, the page is blind from now on.
    pub fn examine(&mut self, index: usize) -> bool {
        let sample = &mut self.samples[index];
        let why = match (&self.guest, self.is_unseen) {
            (Some(_), _) => None,
            (None, true) => Some(Blind::Guest),
            (None, false) => examine(&self.frames, &self.mappings, sample).err(),
        };
        sample.place = why.map_or(sample.place, Place::Blind);
        why.is_none()
    }

    /// Clears the bits of these pages, given in rising order.
    pub fn arm(&mut self, indices: &[usize]) -> Result<(), Error> {
        // DAMON clears the bits of the pages that it watches.
        if self.guest.is_some() {
            return Ok(());
        }
        let mut ranges: Vec<Range<u64>> = Vec::with_capacity(indices.len());
        let mut of: Vec<usize> = Vec::with_capacity(indices.len());
        for index in indices {
            let folio = &self.samples[*index].folio;
            if ranges.last() != Some(folio) {
                ranges.push(folio.clone());
                of.push(*index);
            }
        }
        let samples = &mut self.samples;
        self.arming.arm(&ranges, |range| samples[of[range]].place = Place::Blind(Blind::Refused))
    }

    /// Drops all pages: the process has another address space.
    pub fn forget(&mut self) {
        self.samples.clear();
        self.addresses.clear();
        self.states.clear();
        (self.guest, self.is_unseen) = (None, false);
    }

    /// Tells the guest's watcher which pages to watch, by their indices in rising order.
    pub fn watch(&mut self, indices: &[usize]) {
        let pages: Vec<u64> = indices.iter().map(|index| self.addresses[*index]).collect();
        self.guest.iter_mut().for_each(|guest| guest.watch(&pages));
    }
}

/// What a scan read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanResult {
    /// The same address space as before.
    Same,
    /// Another address space, after an exec.
    Other,
    /// Nothing this time: the observed thread has ended.
    Lost,
}

impl Blind {
    /// Whether a sweep can clear its bit.
    pub fn is_swept(self) -> bool {
        matches!(self, Blind::Shared | Blind::Refused)
    }
}

impl Place {
    /// Whether it is taken to be accessed, and has no weight on the stack.
    pub fn rests(self) -> bool {
        matches!(self, Place::Resting { .. } | Place::Waking { .. })
    }

    /// The last scan that found it accessed, if it is on the stack.
    pub fn seen(self) -> Option<u64> {
        match self {
            Place::Armed { seen } | Place::Spent { seen } => Some(seen),
            _ => None,
        }
    }
}

fn target(tables: &mut Tables, pid: i32, threads: &[i32]) -> Result<Target, Error> {
    threads.iter().rev().find_map(|thread| tables.target(*thread).ok()).ok_or(Error::Gone(pid))
}

fn examine(frames: &Frames, mappings: &[Mapping], sample: &mut Sample) -> Result<(), Blind> {
    // A page that is not there now may come back.
    let frame = frames.at(sample.address).ok_or(Blind::Shared)?;
    if frame.pool || !frame.exclusive {
        return Err(if frame.pool { Blind::Pool } else { Blind::Shared });
    }
    if !sample.huge {
        let mapping = mappings.get(sample.mapping as usize).map_or(0..0, |mapping| mapping.range.clone());
        sample.folio = frame.folio.start.max(mapping.start)..frame.folio.end.min(mapping.end);
        if !sample.folio.contains(&sample.address) {
            sample.folio = sample.address..sample.address + page_bytes();
        }
    }
    Ok(())
}

/// The level at which huge pages are sampled: all of them, as long as a page of the sample stands for no more than 512
/// pages.
fn huge_level(level: u32) -> u32 {
    level.saturating_sub(9)
}

/// Address, whether huge, and mapping of the pages to scan, ordered by address.
fn wanted(mappings: &[Mapping], regions: &[Region], level: u32) -> Vec<(u64, bool, u32)> {
    let page = page_bytes();
    let mut found = Vec::new();
    let mut first = 0;
    for region in regions {
        let end = region.start + REGION_BYTES;
        first += mappings[first..].partition_point(|mapping| mapping.range.end <= region.start);
        let within = mappings[first..].iter().take_while(|mapping| mapping.range.start < end);
        for (index, mapping) in within.enumerate() {
            let index = (first + index) as u32;
            if region.state.is_huge() {
                let (number, level) = (region.start / REGION_BYTES, huge_level(level));
                if mapping.range.contains(&region.start) && chosen(number >> level, level) == number {
                    found.push((region.start, true, index));
                }
            } else {
                let from = mapping.range.start.max(region.start) / page;
                let to = mapping.range.end.min(end) / page;
                found.extend(chosen_within(from, to, level).map(|number| (number * page, false, index)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn an_exec_before_the_first_scan_is_noticed() {
        let mut tables = match Tables::open() {
            Ok(tables) => tables,
            Err(error) => {
                assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "{error}");
                eprintln!("skipped: {error}");
                return;
            }
        };
        let mut child =
            Command::new("sh").args(["-c", "read go; exec sleep 60"]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let start = procfs::stat(pid).unwrap().starttime;
        let mut process = Process::of(&mut tables, pid, start).unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let sleeps = |stat: procfs::Stat| stat.comm == "sleep" && stat.state == 'S';
        while !sleeps(procfs::stat(pid).unwrap()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        process.choose(&mut tables, 0, 1, |_, near| near.unwrap_or(0), true).unwrap();
        let heap = process.samples.iter().position(|sample| process.is_heap(sample)).unwrap();
        assert!(process.examine(heap));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
