//! One process: which of its pages are looked at, and what is known of each.

use std::ops::Range;

use linux::Error;
use linux::pages::{Arming, Frames, MOST_ADDRESSES, Mapping, REGION_BYTES, Region, State, Tables, Target, mappings};
use linux::procfs;

use super::choice::{chosen, chosen_within};
use super::guests::{Guest, contains};
use super::page_bytes;
use super::sweep::Sweep;

/// A process that is looked at.
#[derive(Debug)]
pub struct Process {
    pub pid: i32,
    pub start: u64,
    pub mappings: Vec<Mapping>,
    /// By address.
    pub samples: Vec<Sample>,
    addresses: Vec<u64>,
    states: Vec<State>,
    arming: Arming,
    frames: Frames,
    target: Target,
    pub sweep: Sweep,
    /// If its memory is that of a guest of KVM, who tells of it.
    pub guest: Option<Guest>,
    /// Whether there is such a guest and nobody tells of it.
    pub is_unseen: bool,
    /// Names the address space.
    space: u64,
    choices: u32,
}

/// Choices of pages until what was refused is tried again.
const RETRY: u32 = 16;

/// A page that is looked at.
#[derive(Clone, Debug)]
pub struct Sample {
    pub address: u64,
    /// One entry of 2 MiB.
    pub huge: bool,
    /// How many pages it stands for.
    pub pages: u64,
    /// What is cleared: the folio that it is part of.
    pub folio: Range<u64>,
    pub place: Place,
    /// Index into the mappings.
    pub mapping: u32,
    /// Found accessed by so many looks one after the other.
    pub streak: u32,
    /// When it was last seen accessed; `None`: not yet.
    pub seen_ns: Option<u64>,
    /// Was filled while it was looked at, and not accessed since.
    pub is_filled: bool,
    /// Accessed in this round.
    pub touched: bool,
    /// One of the few pages that are looked at also while memory is not tracked, accessed since that is so.
    pub untracked: bool,
    /// Was swapped out, or being moved, at the last look; or its page table entry was empty, and it is a file's: the kernel has
    /// taken it back.
    pub away: bool,
    /// Was told to have come back since the last look.
    pub returned: bool,
    /// Why its bit is cleared with all others of the process only, by a sweep; `None`: it is cleared by itself.
    pub swept: Option<Blind>,
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing is there.
    Absent,
    /// Its bit was cleared when this look had seen it accessed.
    Armed { seen: u64 },
    /// Hot: seen accessed by a look, and taken for accessed until another, by its number.
    Resting { seen: u64, until: u64 },
    /// Its rest is over: whether it is still hot is told by the next look.
    Waking { seen: u64 },
    /// Was accessed, and waits for a sweep.
    Spent { seen: u64 },
    /// Its bit was not cleared.
    Blind(Blind),
}

/// Why a page is blind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blind {
    /// Mapped more than once.
    Shared,
    /// The kernel will not: locked.
    Refused,
    /// Of a pool of huge pages: nothing clears it.
    Pool,
    /// Of a guest of KVM, and DAMON does not tell of it.
    Guest,
}

impl Process {
    pub fn of(tables: &mut Tables, pid: i32, start: u64) -> Result<Process, Error> {
        let target = target(tables, pid, &[pid])?;
        // Before anything is opened that holds on to an address space: an exec in between is seen by the first look.
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

    /// The units, pages and huge pages, that there would be to look at.
    pub fn units(&self, tables: &mut Tables, level: u32) -> u64 {
        let regions = tables.regions(&self.target).unwrap_or_default();
        let huge = regions.iter().filter(|region| region.state.is_huge()).count();
        ((((regions.len() - huge) * 512) >> level) + (huge >> huge_level(level))) as u64
    }

    /// Chooses the pages to look at. Those that stay keep what is known of them; `stamp` is the look that a page which was
    /// there before it was looked at is taken to have been seen by, given its nearest neighbour's.
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
        self.look(tables)?;
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
        // What was shared may be no longer, and what was locked.
        self.choices = self.choices.wrapping_add(1);
        let retry = self.choices % RETRY == 0;
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

    /// Reads the bits. Afterwards [`Process::state`] tells them.
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn look(&mut self, tables: &mut Tables) -> Result<Looked, Error> {
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
            return Ok(Looked::Same);
        }
        match space {
            Some(space) if space == self.space => Ok(Looked::Same),
            Some(space) => {
                self.space = space;
                // Both hold on to the address space that they were opened for.
                self.arming = Arming::of(self.pid, self.start)?;
                self.frames = Frames::of(self.pid)?;
                Ok(Looked::Other)
            }
            None => {
                // The thread that was looked at may have ended before others.
                self.states.resize(self.addresses.len(), State::default());
                let threads = procfs::tasks(self.pid)?;
                self.target = target(tables, self.pid, &threads)?;
                let living = tables.space(&self.target);
                if living.is_ok_and(|space| space.is_some()) { Ok(Looked::Lost) } else { Err(Error::Gone(self.pid)) }
            }
        }
    }

    /// What its guest, if it has one, has accessed since the last look: ranges in rising order.
    pub fn see(&mut self, accessed: &[Range<u64>]) {
        if self.guest.is_some() {
            for (state, address) in self.states.iter_mut().zip(&self.addresses) {
                *state = state.with_accessed(contains(accessed, *address));
            }
        }
    }

    /// Which of these pages, given in rising order, were accessed; of a process that cannot be looked at, none. Of a guest's told is what
    /// it has accessed. [`Process::state`] stays as it is.
    pub fn accessed_of(&self, tables: &mut Tables, indices: &[usize], told: &[Range<u64>]) -> Vec<usize> {
        if self.guest.is_some() {
            return indices.iter().copied().filter(|index| contains(told, self.addresses[*index])).collect();
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

    /// What is known of the page that begins there, if it is looked at.
    pub fn sample_at(&mut self, address: u64) -> Option<&mut Sample> {
        self.addresses.binary_search(&address).ok().and_then(|index| self.samples.get_mut(index))
    }

    /// What the last look found.
    pub fn state(&self, index: usize) -> State {
        self.states.get(index).copied().unwrap_or_default()
    }

    /// Whether it is private memory and no file's.
    pub fn is_heap(&self, sample: &Sample) -> bool {
        let mapping = self.mappings.get(sample.mapping as usize);
        mapping.is_some_and(|mapping| !mapping.shared && mapping.name.starts_with('['))
    }

    /// Whether it is a page of a file or of shared memory: the kernel empties its page table entry when it takes it back, and it is the
    /// same page when it comes again.
    pub fn is_of_file(&self, sample: &Sample) -> bool {
        self.mappings.get(sample.mapping as usize).is_some_and(|mapping| mapping.name.starts_with('/'))
    }

    /// Whether the page can be cleared by itself; else it is blind from now on.
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
        // DAMON clears what it looks at.
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

    /// Forgets all pages: the address space is another.
    pub fn forget(&mut self) {
        self.samples.clear();
        self.addresses.clear();
        self.states.clear();
        (self.guest, self.is_unseen) = (None, false);
    }

    /// Of its guest these pages are looked at, of which the indices are given in rising order.
    pub fn look_at(&mut self, indices: &[usize]) {
        let pages: Vec<u64> = indices.iter().map(|index| self.addresses[*index]).collect();
        self.guest.iter_mut().for_each(|guest| guest.look_at(&pages));
    }
}

/// What a look was at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// The same address space as before.
    Same,
    /// Another, after an exec.
    Other,
    /// Nothing this time.
    Lost,
}

impl Blind {
    /// Whether a sweep clears it.
    pub fn is_swept(self) -> bool {
        matches!(self, Blind::Shared | Blind::Refused)
    }
}

impl Place {
    /// Whether it is taken for accessed, and not on the stack.
    pub fn rests(self) -> bool {
        matches!(self, Place::Resting { .. } | Place::Waking { .. })
    }

    /// The look that saw it last, if it is on the stack.
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
    // What is there no more may come back.
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

/// Of how many huge pages one is looked at: all as long as one stands for no more than a page does.
fn huge_level(level: u32) -> u32 {
    level.saturating_sub(9)
}

/// Address, whether huge, and mapping of the pages to look at, by address.
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
    fn what_became_another_program_before_the_first_look_is_looked_at_as_that() {
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
