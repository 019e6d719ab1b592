//! How often programs access each 2 MiB region, and how often they wait for page walks there.
//!
//! In each region the Accessed bits of a few runs of neighbouring pages are cleared, other runs each time. Scans some
//! milliseconds and then a second later show which pages were accessed by then. The share that was not yet accessed
//! gives the access rate of a page (`rate`), from once in minutes to thousands of times a second. The access rates of
//! all pages together show which accesses the TLB serves (`tlb`). A huge page has a single bit, which only shows
//! whether the page is used at all.
//!
//! A scan takes nanoseconds per page. A clear takes microseconds per run, and as much of the program's time. So each
//! round clears as many pages as the caller allows. If there are more regions than that, half of the pages go to
//! regions that seem hot and are hardly known, so that the hot regions of a large program are known soon; the others go
//! to the regions not scanned for longest. When a process has filled its memory, samples taken during the fill phase
//! are discarded.

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
use rate::SCANS;

/// Pages cleared together. Clearing them must take much less time than passes until the first scan.
const BATCH: usize = 512;
/// Times of the scans after a clear. The last scan is at the end of the round.
const SCAN_TIMES: [Duration; SCANS - 1] =
    [Duration::from_millis(1), Duration::from_millis(4), Duration::from_millis(16)];
/// Pages are cleared within this part of a round, so that the last scan comes long after.
const CLEARING_PART: f64 = 0.7;
/// Maximum number of runs of neighbours per region.
const MAX_RUNS: u64 = 4;
/// Rounds after which a region is well known.
const WELL_KNOWN_ROUNDS: u32 = 3;
/// At least this share of the allowed cost goes to scans, however long it takes to list the regions; rounds get longer
/// then.
const MIN_SCAN_SHARE: f64 = 0.5;
const FIRST_BUDGET: usize = 4 * BATCH;
/// Cost to the program of clearing the bits of neighbours: an interrupt for the flush, and for each page a TLB miss and
/// setting the bit.
const FLUSH_SECONDS: f64 = 2e-6;
const TOUCH_SECONDS: f64 = 0.4e-6;
const LINE_BYTES: f64 = 64.0;
/// Pages used to measure how fast a program runs.
const PACE_PAGES: usize = 2048;
/// A scan is most informative if it finds a share of them accessed within this range.
const INFORMATIVE: std::ops::Range<f64> = 0.3..0.7;
/// The longest and the first time from a clear to the scan.
const MAX_WAIT: Duration = Duration::from_millis(50);
const FIRST_WAIT: Duration = Duration::from_millis(4);
/// A smaller share after the longest wait may be chance.
const MIN_INFORMATIVE: f64 = 0.02;
/// A cancelled wait ends within this time.
const PATIENCE: Duration = Duration::from_millis(50);

/// Why regions cannot be scanned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The target does not exist or cannot be scanned.
    #[error(transparent)]
    Target(#[from] pages::Error),
    /// Page tables cannot be read.
    #[error(transparent)]
    Tables(#[from] linux::pages::Error),
}

/// What is known of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The process.
    pub pid: i32,
    /// First address.
    pub start: u64,
    /// Whether it is one huge page.
    pub is_huge: bool,
    /// Present pages of 4 KiB, estimated from a sample; all of a huge page.
    pub present_pages: u64,
    /// Share of these accessed in the last round that scanned the region; 0 or 1 for a huge page.
    pub accessed: f64,
    /// Estimated accesses per second that miss the TLB; for a huge page, those seen by its single bit.
    pub misses_per_second: f64,
    /// A lower bound of the true rate, as a share of `misses_per_second`, wrong in a few of a hundred cases.
    pub lower_bound_share: f64,
    /// Estimated share of the misses that find the page table entry in the core's second-level cache.
    pub near: f64,
    /// Estimated share of the misses that find it in no cache.
    pub memory: f64,
    /// CPU time of the process per TLB miss, in ns, over all its misses.
    pub ns_per_miss: f64,
    /// CPU time of the process per miss that finds the page table entry in no cache, in ns.
    pub ns_per_memory_miss: f64,
    /// Time since it was last found accessed, or first scanned.
    pub idle: Duration,
    /// Rounds that have scanned it.
    pub rounds: u32,
}

/// Scans the regions of processes.
pub struct Regions {
    tables: Tables,
    members: Members,
    overhead: f64,
    processes: Vec<Process>,
    /// Pages to clear in a round.
    budget: usize,
    round: u64,
    /// Cost of all clears to the processes, in seconds.
    taken: f64,
    /// Lines of a core's second-level cache.
    second_lines: f64,
}

/// Pages of one process that are cleared together.
struct Batch {
    process: usize,
    pid: i32,
    probes: Vec<Probe>,
    found: Vec<Found>,
    cleared: Instant,
    /// CPU time of the process at the clear. Rates are per CPU time, because a process that does not run accesses
    /// nothing.
    used: Option<Duration>,
    /// Time of each scan after the clear.
    scanned: [Duration; SCANS],
}

impl Regions {
    /// Starts with the current processes. `overhead` is the most that scans may cost, as a share of one processor,
    /// including the cost to the processes.
    ///
    /// # Errors
    /// Why nothing can be scanned.
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

    /// Makes one round that lasts `long`, or longer where it would cost too much. Ends early when `is_over` returns
    /// true. Returns whether any process lives.
    ///
    /// # Errors
    /// Bits cannot be cleared.
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
            if is_over() || began.elapsed() > long.mul_f64(CLEARING_PART) && count > 0 {
                break;
            }
            self.clear(batch)?;
            for (scan, after) in SCAN_TIMES.into_iter().enumerate() {
                std::thread::sleep(after.saturating_sub(batch.cleared.elapsed()));
                self.scan(batch, scan);
            }
            count += 1;
        }
        batches.truncate(count);
        wait(began + long, &is_over);
        let mut pages = 0;
        for mut batch in batches {
            self.scan(&mut batch, SCANS - 1);
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
        let allowed = allowed.saturating_sub(listing).max(allowed.mul_f64(MIN_SCAN_SHARE));
        let times = allowed.div_duration_f64((cost - listing).max(Duration::from_nanos(1)));
        self.budget = (self.budget as f64 * times.clamp(0.5, 2.0)) as usize;
        let most = long.mul_f64(CLEARING_PART).div_duration_f64(SCAN_TIMES[SCAN_TIMES.len() - 1]) as usize * BATCH;
        self.budget = self.budget.clamp(RUN as usize, most.max(BATCH));
        wait(began + cost.div_f64(self.overhead), &is_over);
        Ok(!self.members.living().is_empty())
    }

    /// Sets the share of one processor that scans may cost from now on.
    pub fn set_overhead(&mut self, overhead: f64) {
        self.overhead = overhead;
    }

    /// Whether a process has filled its memory, and most regions were not scanned since: samples of the fill phase were
    /// discarded.
    pub fn is_behind(&self) -> bool {
        self.processes.iter().any(|process| process.is_behind)
    }

    /// What is known of all scanned regions. `last_cache_bytes`: bytes of the last-level cache for the program's data.
    pub fn known(&self, last_cache_bytes: f64) -> Vec<Region> {
        let now = Instant::now();
        let mut all = Vec::new();
        for process in &self.processes {
            let loads = process.loads();
            // Rates per CPU time of the process.
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
                lower_bound_share: known.samples.lower_bound_share(&process.neighbourhood(*start)),
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

    /// Present pages of a region, and whether it is a huge page; `None`: its process is gone.
    pub fn present(&mut self, pid: i32, region: u64) -> Option<(u64, bool)> {
        let process = self.processes.iter_mut().find(|process| process.pid == pid)?;
        process.present(&mut self.tables, region)
    }

    /// The wait after a clear at which a scan finds some half of the pages of these regions accessed, for
    /// [`Regions::pace`]; `None`: the process is gone, or hardly accesses them.
    pub fn informative_wait(&mut self, pid: i32, regions: &[u64]) -> Option<Duration> {
        let mut wait = FIRST_WAIT;
        for _ in 0..8 {
            let share = self.pace(pid, regions, wait, wait)?.share();
            if INFORMATIVE.contains(&share) {
                break;
            }
            if share < INFORMATIVE.start && wait == MAX_WAIT {
                return (share >= MIN_INFORMATIVE).then_some(wait);
            }
            wait = if share < INFORMATIVE.start { (wait * 2).min(MAX_WAIT) } else { wait / 2 };
        }
        Some(wait)
    }

    /// Measures for `long` how fast a process runs, by its accesses to these regions of small pages, which the last
    /// round listed. Scans come `wait` after clears, and half as long again. `None`: the process is gone. Compare the
    /// result only with others of the same regions and wait.
    pub fn pace(&mut self, pid: i32, regions: &[u64], wait: Duration, long: Duration) -> Option<Pace> {
        let process = self.processes.iter_mut().find(|process| process.pid == pid)?;
        let (began, used) = (Instant::now(), process.clock.now()?);
        let mut pace = Pace::default();
        for scan in 0.. {
            if began.elapsed() >= long && scan >= 2 {
                break;
            }
            self.round += 1;
            let probes = process.scattered(regions, PACE_PAGES, self.round);
            let clear = Instant::now();
            let cleared = process.clear(&probes).ok()?;
            let cleared_at = clear + clear.elapsed() / 2;
            std::thread::sleep(Pace::after(scan, wait).saturating_sub(cleared_at.elapsed()));
            let before = cleared_at.elapsed();
            let states = process.scan(&mut self.tables, &probes).ok()??;
            let after = (before + cleared_at.elapsed()) / 2;
            let seen = || cleared.iter().zip(&states).filter(|(is_clear, state)| **is_clear && state.is_mapped());
            pace.add(scan, seen().count(), seen().filter(|(_, state)| state.is_accessed()).count(), after);
            self.taken += probes.len() as f64 * (FLUSH_SECONDS / RUN as f64 + TOUCH_SECONDS);
        }
        let used = process.clock.now()?.saturating_sub(used);
        pace.scale(used.div_duration_f64(began.elapsed()));
        Some(pace)
    }

    /// The scanned processes: PID and start time.
    pub fn processes(&self) -> impl Iterator<Item = (i32, u64)> {
        self.processes.iter().map(|process| (process.pid, process.start))
    }

    /// Estimated CPU time that clears have cost the processes so far, in seconds.
    pub fn taken_seconds(&self) -> f64 {
        self.taken
    }

    /// Updates the list of processes. Returns why one of them cannot be scanned.
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

    /// Chooses as many pages as may be cleared: some of each region, or of the most important regions.
    fn choose(&self) -> Vec<Batch> {
        let all: Vec<(usize, u64, &Known)> = self
            .processes
            .iter()
            .enumerate()
            .flat_map(|(number, process)| process.known.iter().map(move |(start, known)| (number, *start, known)))
            .collect();
        let small = all.iter().filter(|(.., known)| !known.is_huge).count().max(1);
        let runs = (self.budget / small) as u64 / RUN;
        let parts = 1 << runs.clamp(1, MAX_RUNS).ilog2();
        let candidate = |(_, start, known): &(usize, u64, &Known)| {
            let is_hardly_known = !known.is_huge && (1..WELL_KNOWN_ROUNDS).contains(&known.clears);
            Candidate {
                pages: if known.is_huge { 1 } else { (parts * RUN) as usize },
                promise: if is_hardly_known { known.samples.rate() } else { 0.0 },
                last_round: known.last_round,
                // A pseudo-random order, so that the regions scanned first represent all.
                order: mix(*start),
            }
        };
        let candidates: Vec<Candidate> = all.iter().map(candidate).collect();
        let mut batches: Vec<Batch> = Vec::new();
        for index in choose::chosen(&candidates, self.budget) {
            let (process, start, _) = all[index];
            let probes = self.processes[process].probes(start, parts, self.round);
            match batches.last_mut() {
                // A batch is ordered by address.
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
                    scanned: [Duration::ZERO; SCANS],
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

    fn scan(&mut self, batch: &mut Batch, scan: usize) {
        let process = &mut self.processes[batch.process];
        let before = batch.cleared.elapsed();
        let states = process.scan(&mut self.tables, &batch.probes);
        batch.scanned[scan] = (before + batch.cleared.elapsed()) / 2;
        let Ok(Some(states)) = states else {
            batch.found.iter_mut().for_each(|found| found.is_clear = false);
            return;
        };
        for ((probe, found), state) in batch.probes.iter().zip(&mut batch.found).zip(states) {
            found.is_there = state.is_mapped();
            found.is_clear &= found.is_there;
            // A page that the kernel reclaimed or aged meanwhile stays accessed.
            let before = scan.checked_sub(1).is_some_and(|before| found.accessed[before]);
            found.accessed[scan] = before || (state.is_mapped() && state.is_accessed());
            // The page is hot, or it cannot be cleared.
            if scan == 0 && found.accessed[0] {
                found.is_clear &= process.is_clearable(probe);
            }
        }
    }

    /// CPU time of the process from the clear to each scan. The kernel updates the clock of a process by ticks, of
    /// which at most one lies before the first scans. So these get their share of the time used until the last scan.
    fn used(&self, batch: &Batch) -> [Duration; SCANS] {
        let used = self.processes[batch.process].clock.now().zip(batch.used);
        let used = used.map_or(Duration::ZERO, |(now, then)| now.saturating_sub(then));
        let share = used.div_duration_f64(batch.scanned[SCANS - 1].max(Duration::from_nanos(1)));
        batch.scanned.map(|scanned| scanned.mul_f64(share))
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
