//! What programs access of each region of 2 MiB, and how often they wait for page walks there.
//!
//! Of each region a few runs of neighbouring pages, others each time, have their Accessed bits cleared; looks some milliseconds and then a second
//! after tell which were accessed by then. The share that was not yet tells how often a page is accessed (`rate`), from once in
//! minutes to thousands of times a second; how often all pages are accessed tells which of these accesses the TLB serves
//! (`tlb`). A huge page has one bit: of it only that tells whether it is used at all.
//!
//! A look takes nanoseconds per page, a clear microseconds per run and as much of the program's time; so many pages are
//! cleared in a round as the caller allows. Of more regions than that, half are those that seem to be accessed most and were hardly looked
//! at yet, so that what matters is soon known of a large program; the others are those that were not looked at for longest.
//! What was seen while a process filled its memory is forgotten when that is filled.

mod choose;
mod filling;
mod pace;
mod process;
mod rate;
mod tlb;

use std::time::{Duration, Instant};

use linux::core_cache;
use linux::pages::Tables;

use crate::pages::choice::mix;
use crate::pages::{self, Members, Scope, own_cpu};
use choose::Candidate;
pub use pace::Pace;
use process::{Found, Known, Probe, Process, RUN};
use rate::LOOKS;

/// Pages that are cleared together: that must take much less than until the first look.
const BATCH: usize = 512;
/// After a clear. The last look is at the end of the round.
const AFTER: [Duration; LOOKS - 1] = [Duration::from_millis(1), Duration::from_millis(4), Duration::from_millis(16)];
/// Pages are cleared within this part of a round, so that the last look comes long after.
const CLEARING: f64 = 0.7;
/// Runs of neighbours of a region.
const MOST_RUNS: u64 = 4;
/// Rounds that have looked at a region until little of what is known of it is chance.
const KNOWN_AFTER: u32 = 3;
/// Of what looking may take, this part at least is for looking itself, however much it takes to list all regions: rounds are longer then.
const LOOKING: f64 = 0.5;
const FIRST_BUDGET: usize = 4 * BATCH;
/// What clearing the bits of neighbours takes the program: an interruption for the flush; and for each page a TLB miss, and
/// setting the bit.
const FLUSH_SECONDS: f64 = 2e-6;
const TOUCH_SECONDS: f64 = 0.4e-6;
const LINE_BYTES: f64 = 64.0;
/// Pages that tell how fast a program goes.
const PACED: usize = 2048;
/// By this share of them that a look finds accessed it tells most.
const TELLING: std::ops::Range<f64> = 0.3..0.7;
/// From a clear to the look, at most, and at first.
const LONGEST: Duration = Duration::from_millis(50);
const FIRST_WAIT: Duration = Duration::from_millis(4);
/// Fewer of them after the longest wait tell of chance.
const LEAST_TELLING: f64 = 0.02;
/// A wait is ended within so long.
const PATIENCE: Duration = Duration::from_millis(50);

/// Why regions cannot be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to look at, or it cannot be looked at.
    #[error(transparent)]
    Target(#[from] pages::Error),
    /// Page tables cannot be read.
    #[error(transparent)]
    Tables(#[from] linux::pages::Error),
}

/// What is known of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Whose.
    pub pid: i32,
    /// Its first address.
    pub start: u64,
    /// Whether it is one huge page.
    pub is_huge: bool,
    /// Pages of 4 KiB that are there, all of a huge page; by a sample of them.
    pub present_pages: u64,
    /// Share of these that were accessed in the last round that looked at it; of a huge page 0 or 1.
    pub accessed: f64,
    /// Accesses per second that miss the TLB, estimated; of a huge page, those that are seen by its one bit.
    pub misses_per_second: f64,
    /// The share of these that there are at least, but for a chance of some in a hundred.
    pub sure: f64,
    /// Share of these that find the entry of the page table in the core's second cache, estimated.
    pub near: f64,
    /// Share of these that find it in no cache, estimated.
    pub memory: f64,
    /// Processor time that its process uses for each of all its accesses that miss, in ns.
    pub ns_per_miss: f64,
    /// The same for each that finds the entry of the page table in no cache.
    pub ns_per_memory_miss: f64,
    /// Since it was last seen accessed, or first looked at.
    pub idle: Duration,
    /// Rounds that have looked at it.
    pub rounds: u32,
}

/// Looks at the regions of processes.
pub struct Regions {
    tables: Tables,
    members: Members,
    overhead: f64,
    processes: Vec<Process>,
    /// Pages to be cleared in a round.
    budget: usize,
    round: u64,
    /// What clearing has cost the processes in all, in seconds.
    taken: f64,
    /// That the second cache of a core has room for.
    second_lines: f64,
}

/// Pages of one process that are cleared together.
struct Batch {
    process: usize,
    pid: i32,
    probes: Vec<Probe>,
    found: Vec<Found>,
    cleared: Instant,
    /// What the process had used of processors then: what it does not run, it does not access.
    used: Option<Duration>,
    /// Looks, by time since.
    looked: [Duration; LOOKS],
}

impl Regions {
    /// Begins with the processes there are. `overhead` is the most that looking may take, as a share of one processor; what it
    /// takes the processes included.
    ///
    /// # Errors
    /// Why nothing can be seen.
    pub fn of(scope: Scope, overhead: f64) -> Result<Regions, Error> {
        let members = Members::of(scope, true)?;
        let tables = Tables::open()?;
        let (processes, budget) = (Vec::new(), FIRST_BUDGET);
        let second_lines = core_cache::second_bytes() as f64 / LINE_BYTES;
        let (round, taken) = (0, 0.0);
        let mut regions = Regions { tables, members, overhead, processes, budget, round, taken, second_lines };
        if let (Some(denied), true) = (regions.refresh(), regions.processes.is_empty()) {
            return Err(denied.into());
        }
        Ok(regions)
    }

    /// Looks once, for so long, or longer where it would cost too much; ends sooner when that is asked for. Returns whether any process
    /// lives.
    ///
    /// # Errors
    /// That bits cannot be cleared.
    pub fn round(&mut self, long: Duration, is_over: impl Fn() -> bool) -> Result<bool, Error> {
        let (began, cpu) = (Instant::now(), own_cpu());
        self.round += 1;
        self.refresh();
        let tables = &mut self.tables;
        self.processes.retain_mut(|process| process.list(tables).is_ok());
        let listing = own_cpu() - cpu;
        let mut batches = self.choose();
        let mut count = 0;
        for batch in &mut batches {
            if is_over() || began.elapsed() > long.mul_f64(CLEARING) && count > 0 {
                break;
            }
            self.clear(batch)?;
            for (look, after) in AFTER.into_iter().enumerate() {
                std::thread::sleep(after.saturating_sub(batch.cleared.elapsed()));
                self.look(batch, look);
            }
            count += 1;
        }
        batches.truncate(count);
        wait(began + long, &is_over);
        let mut pages = 0;
        for mut batch in batches {
            self.look(&mut batch, LOOKS - 1);
            pages += batch.probes.len();
            self.learn(&batch);
        }
        for process in &mut self.processes {
            process.account();
        }
        let taken = pages as f64 * (FLUSH_SECONDS / RUN as f64 + TOUCH_SECONDS);
        self.taken += taken;
        let cost = Duration::from_secs_f64((own_cpu() - cpu).as_secs_f64() + taken);
        let allowed = began.elapsed().mul_f64(self.overhead);
        let allowed = allowed.saturating_sub(listing).max(allowed.mul_f64(LOOKING));
        let times = allowed.div_duration_f64((cost - listing).max(Duration::from_nanos(1)));
        self.budget = (self.budget as f64 * times.clamp(0.5, 2.0)) as usize;
        let most = long.mul_f64(CLEARING).div_duration_f64(AFTER[AFTER.len() - 1]) as usize * BATCH;
        self.budget = self.budget.clamp(RUN as usize, most.max(BATCH));
        wait(began + cost.div_f64(self.overhead), &is_over);
        Ok(!self.members.living().is_empty())
    }

    /// From now on looking may take this share of one processor.
    pub fn look_at_most(&mut self, overhead: f64) {
        self.overhead = overhead;
    }

    /// Whether a process has filled its memory, and most of that was not looked at since: what was seen before is forgotten.
    pub fn is_behind(&self) -> bool {
        self.processes.iter().any(|process| process.is_behind)
    }

    /// What is known of all regions that were looked at. So many bytes the last cache keeps of what a program accesses.
    pub fn known(&self, last_cache_bytes: f64) -> Vec<Region> {
        let now = Instant::now();
        let mut all = Vec::new();
        for process in &self.processes {
            let loads = process.loads();
            // By its own time.
            let misses = tlb::misses(&loads, self.second_lines, last_cache_bytes / LINE_BYTES);
            let ns_per = |of: fn(&tlb::Misses) -> f64| 1e9 / misses.iter().map(of).sum::<f64>();
            let ns_per_miss = ns_per(|misses| misses.rate);
            let ns_per_memory_miss = ns_per(|misses| misses.rate * misses.memory);
            let known = process.known.iter().zip(misses).filter(|((_, known), _)| known.clears > 0);
            all.extend(known.map(|((start, known), misses)| Region {
                pid: process.pid,
                start: *start,
                is_huge: known.is_huge,
                present_pages: known.present_pages(),
                accessed: known.accessed,
                misses_per_second: misses.rate * process.processors,
                sure: known.seen.sure(&process.neighbourhood(*start)),
                near: misses.near,
                memory: misses.memory,
                ns_per_miss,
                ns_per_memory_miss,
                idle: now.saturating_duration_since(known.last_accessed.unwrap_or(known.since)),
                rounds: known.clears,
            }));
        }
        all
    }

    /// Pages of a region that are there now, and whether it is a huge page; `None`: its process is gone.
    pub fn present(&mut self, pid: i32, region: u64) -> Option<(u64, bool)> {
        let process = self.processes.iter_mut().find(|process| process.pid == pid)?;
        process.present(&mut self.tables, region)
    }

    /// How long after a clear a look finds some half of the pages of these regions accessed, for [`Regions::pace`]; `None`: the process
    /// is gone, or hardly accesses them.
    pub fn telling_wait(&mut self, pid: i32, regions: &[u64]) -> Option<Duration> {
        let mut wait = FIRST_WAIT;
        for _ in 0..8 {
            let share = self.pace(pid, regions, wait, wait)?.share();
            if TELLING.contains(&share) {
                break;
            }
            if share < TELLING.start && wait == LONGEST {
                return (share >= LEAST_TELLING).then_some(wait);
            }
            wait = if share < TELLING.start { (wait * 2).min(LONGEST) } else { wait / 2 };
        }
        Some(wait)
    }

    /// How fast a process goes for so long, by its accesses to these regions of small pages that were listed in the last round; looks come
    /// so long after clears, and half as long again. `None`: it is gone. To be compared with others of the same regions and wait.
    pub fn pace(&mut self, pid: i32, regions: &[u64], wait: Duration, long: Duration) -> Option<Pace> {
        let process = self.processes.iter_mut().find(|process| process.pid == pid)?;
        let (began, used) = (Instant::now(), process.clock.now()?);
        let mut pace = Pace::default();
        for look in 0.. {
            if began.elapsed() >= long && look >= 2 {
                break;
            }
            self.round += 1;
            let probes = process.scattered(regions, PACED, self.round);
            let clear = Instant::now();
            let cleared = process.clear(&probes).ok()?;
            let cleared_at = clear + clear.elapsed() / 2;
            std::thread::sleep(Pace::after(look, wait).saturating_sub(cleared_at.elapsed()));
            let before = cleared_at.elapsed();
            let states = process.look(&mut self.tables, &probes).ok()??;
            let after = (before + cleared_at.elapsed()) / 2;
            let seen = || cleared.iter().zip(&states).filter(|(is_clear, state)| **is_clear && state.is_mapped());
            pace.add(look, seen().count(), seen().filter(|(_, state)| state.is_accessed()).count(), after);
            self.taken += probes.len() as f64 * (FLUSH_SECONDS / RUN as f64 + TOUCH_SECONDS);
        }
        let used = process.clock.now()?.saturating_sub(used);
        pace.scale(used.div_duration_f64(began.elapsed()));
        Some(pace)
    }

    /// The processes that are looked at: number and start time.
    pub fn processes(&self) -> impl Iterator<Item = (i32, u64)> {
        self.processes.iter().map(|process| (process.pid, process.start))
    }

    /// What clearing has taken the processes so far, in seconds of a processor, estimated.
    pub fn taken_seconds(&self) -> f64 {
        self.taken
    }

    /// Finds processes that came and went. Returns why one of them cannot be looked at.
    fn refresh(&mut self) -> Option<pages::Error> {
        let living = self.members.refresh();
        self.processes.retain(|process| living.get(&process.pid) == Some(&process.start));
        let mut denied = None;
        for (pid, start) in living {
            if self.processes.iter().all(|process| process.pid != *pid) {
                match Process::of(&mut self.tables, *pid, *start) {
                    Ok(process) => self.processes.push(process),
                    Err(source) => denied = Some(pages::Error::Denied { pid: *pid, source }),
                }
            }
        }
        denied
    }

    /// As many pages as may be cleared: some of each region, or of those that matter most.
    fn choose(&self) -> Vec<Batch> {
        let all: Vec<(usize, u64, &Known)> = self
            .processes
            .iter()
            .enumerate()
            .flat_map(|(number, process)| process.known.iter().map(move |(start, known)| (number, *start, known)))
            .collect();
        let small = all.iter().filter(|(.., known)| !known.is_huge).count().max(1);
        let runs = (self.budget / small) as u64 / RUN;
        let parts = 1 << runs.clamp(1, MOST_RUNS).ilog2();
        let candidate = |(_, start, known): &(usize, u64, &Known)| {
            let is_hardly_known = !known.is_huge && (1..KNOWN_AFTER).contains(&known.clears);
            Candidate {
                pages: if known.is_huge { 1 } else { (parts * RUN) as usize },
                promise: if is_hardly_known { known.seen.rate() } else { 0.0 },
                looked: known.looked,
                // What is known of some tells of all.
                order: mix(*start),
            }
        };
        let candidates: Vec<Candidate> = all.iter().map(candidate).collect();
        let mut batches: Vec<Batch> = Vec::new();
        for index in choose::chosen(&candidates, self.budget) {
            let (process, start, _) = all[index];
            let probes = self.processes[process].probes(start, parts, self.round);
            match batches.last_mut() {
                // By rising address.
                Some(batch) if batch.process == process && batch.probes.len() + probes.len() <= BATCH => {
                    batch.probes.extend(probes);
                }
                _ => batches.push(Batch {
                    process,
                    pid: self.processes[process].pid,
                    probes,
                    found: Vec::new(),
                    cleared: Instant::now(),
                    used: None,
                    looked: [Duration::ZERO; LOOKS],
                }),
            }
        }
        batches
    }

    fn clear(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let began = Instant::now();
        let process = &mut self.processes[batch.process];
        let cleared = match process.clear(&batch.probes) {
            Ok(cleared) => cleared,
            Err(linux::Error::Gone(_)) => vec![false; batch.probes.len()],
            Err(source) => return Err(pages::Error::Denied { pid: batch.pid, source }.into()),
        };
        batch.cleared = began + began.elapsed() / 2;
        batch.used = process.clock.now();
        batch.found = cleared.into_iter().map(|is_clear| Found { is_clear, ..Found::default() }).collect();
        Ok(())
    }

    fn look(&mut self, batch: &mut Batch, look: usize) {
        let process = &mut self.processes[batch.process];
        let before = batch.cleared.elapsed();
        let states = process.look(&mut self.tables, &batch.probes);
        batch.looked[look] = (before + batch.cleared.elapsed()) / 2;
        let Ok(Some(states)) = states else {
            batch.found.iter_mut().for_each(|found| found.is_clear = false);
            return;
        };
        for ((probe, found), state) in batch.probes.iter().zip(&mut batch.found).zip(states) {
            found.is_there = state.is_mapped();
            found.is_clear &= found.is_there;
            // What was reclaimed or looked at by the kernel meanwhile was accessed all the same.
            let before = look.checked_sub(1).is_some_and(|before| found.accessed[before]);
            found.accessed[look] = before || (state.is_mapped() && state.is_accessed());
            // Hot, or not to be cleared.
            if look == 0 && found.accessed[0] {
                found.is_clear &= process.is_clearable(probe);
            }
        }
    }

    /// What the process has used of processors between the clear and each look. Its clock is told by the kernel's ticks, of which none
    /// or one lies before the first looks; so these have the share of what it used until the last.
    fn used(&self, batch: &Batch) -> [Duration; LOOKS] {
        let used = self.processes[batch.process].clock.now().zip(batch.used);
        let used = used.map_or(Duration::ZERO, |(now, then)| now.saturating_sub(then));
        let share = used.div_duration_f64(batch.looked[LOOKS - 1].max(Duration::from_nanos(1)));
        batch.looked.map(|looked| looked.mul_f64(share))
    }

    fn learn(&mut self, batch: &Batch) {
        let now = Instant::now();
        let after = self.used(batch);
        let mut from = 0;
        for group in batch.probes.chunk_by(|one, other| one.region == other.region) {
            let found = &batch.found[from..from + group.len()];
            from += group.len();
            self.processes[batch.process].learn(group[0].region, found, after, now, self.round);
        }
    }
}

fn wait(until: Instant, is_over: &impl Fn() -> bool) {
    while !is_over() {
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => break,
            left => std::thread::sleep(left.min(PATIENCE)),
        }
    }
}
