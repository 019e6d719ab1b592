//! Trying huge pages while the program runs: some of its memory is made huge and split again in turns, and the pace of its accesses to
//! memory like it tells how much of its time that saves.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use advise::{Costs, HUGE_BYTES, PAGES_PER_HUGE, Trial};
use linux::pages::Advised;
use track::regions::{Pace, Region, Regions};

use super::walks::walks;

/// Turns with huge pages, each between two without, so that a program or a host that becomes faster or slower is no gain: so many, and
/// more until the standard error is so small a share of the program's time.
const LEAST_PAIRS: usize = 6;
const MOST_PAIRS: usize = 12;
const SURE: f64 = 0.01;
/// Fewer that tell something agree by chance.
const FEWEST: usize = 4;
/// A turn is so long on average; each is of another length, so that a program that does the same again and again does not do so in step.
const TURN: Duration = Duration::from_millis(250);
/// Multiples of it are spread over the numbers from 0 to 1 (the golden ratio).
const SPREAD: f64 = 0.618_033_988_749_895;
/// After pages were made huge or split.
const CALM: Duration = Duration::from_millis(10);
/// What is foretold of a process's memory is settled when it has changed by less than this for so many rounds of looking.
const SETTLED_BY: f64 = 0.1;
const SETTLED_ROUNDS: u32 = 3;
/// A program that goes through phases is never settled: from so many rounds on its memory is tried all the same.
const PATIENT_ROUNDS: u32 = 12;
/// Nor is what another phase accesses: it has its turn so many rounds later, or none.
const MOST_IDLE: u32 = 8;
/// Trials take at most this part of a run, for huge pages are made and split meanwhile.
const SHARE: f64 = 0.5;
/// Regions of which half are tried, at least and at most: each takes up to a millisecond to make, several times.
const LEAST: usize = 8;
const MOST: usize = 256;
/// Regions that save as much, but for this factor, are tried together.
const ALIKE: f64 = 4.0;
/// So many must become huge pages, or it is no trial: none may be free.
const NEARLY_ALL: f64 = 0.9;
/// Less than this part of the program's time is not to be seen.
const LEAST_SHARE: f64 = 0.005;

/// Regions of one process that were tried.
pub struct Tried {
    /// The process.
    pub pid: i32,
    /// Where they begin.
    pub regions: Vec<u64>,
    /// What it showed.
    pub trial: Trial,
}

/// What is tried when.
pub struct Trials {
    begun: Instant,
    /// In trials so far.
    taken: Duration,
    /// Regions that had their turn, by process.
    past: BTreeSet<(i32, u64)>,
    /// What all of the process's memory was to save in the last round, and for how many rounds it was as much.
    settled: (f64, u32),
    /// Since something was to be tried.
    rounds: u32,
    /// So often in a row what was to be tried was not accessed.
    idle: u32,
}

/// Regions of one process that are alike.
struct Group {
    pid: i32,
    start: u64,
    regions: Vec<u64>,
    /// Of the process's time, that huge pages for one of them are to save.
    each: f64,
    /// And for all of its memory.
    all: f64,
}

impl Default for Trials {
    /// Nothing was tried yet; the run begins now.
    fn default() -> Trials {
        Trials {
            begun: Instant::now(),
            taken: Duration::ZERO,
            past: BTreeSet::new(),
            settled: (0.0, 0),
            rounds: 0,
            idle: 0,
        }
    }
}

impl Trials {
    /// Tries what saves most of what has not been tried, if it is time for a trial.
    pub fn next(&mut self, regions: &mut Regions, costs: &Costs, is_over: &impl Fn() -> bool) -> Option<Tried> {
        let now = Instant::now();
        let group = self.group(regions, costs)?;
        let (before, rounds) = self.settled;
        let is_settled = (group.all - before).abs() < SETTLED_BY * before;
        self.settled = (group.all, if is_settled { rounds + 1 } else { 0 });
        let is_time = self.taken < now.duration_since(self.begun).mul_f64(SHARE);
        self.rounds += 1;
        let is_known = self.settled.1 >= SETTLED_ROUNDS || self.rounds >= PATIENT_ROUNDS;
        if !is_known || !is_time {
            return None;
        }
        let wait = regions.telling_wait(group.pid, &group.seen());
        if wait.is_none() && self.idle < MOST_IDLE {
            self.idle += 1;
            return None;
        }
        self.idle = 0;
        self.past.extend(group.regions.iter().map(|region| (group.pid, *region)));
        let trial = wait.and_then(|wait| group.tried(regions, wait, is_over));
        self.taken += now.elapsed();
        Some(Tried { pid: group.pid, regions: group.regions, trial: trial? })
    }

    /// Of the process whose memory saves most, the regions that are alike and together save most.
    fn group(&self, regions: &Regions, costs: &Costs) -> Option<Group> {
        let known = regions.known(costs.last_cache_bytes);
        let saves = |region: &Region| region.misses_per_second * walks(region).each_ns(costs) / 1e9;
        // What is not there would be made of zeroes.
        let is_new = |region: &&Region| {
            !region.is_huge
                && region.present_pages == PAGES_PER_HUGE
                && !self.past.contains(&(region.pid, region.start))
        };
        let groups = regions.processes().filter_map(|(pid, start)| {
            let its = || known.iter().filter(move |region| region.pid == pid);
            // Of what it uses of processors, not of the time that passes.
            let misses: f64 = its().map(|region| region.misses_per_second).sum();
            let processors = misses * its().next()?.ns_per_miss / 1e9;
            let mut new: Vec<(f64, u64)> = its().filter(is_new).map(|region| (saves(region), region.start)).collect();
            new.sort_by(|one, other| other.0.total_cmp(&one.0));
            let groups = alike(&new).filter(|group| group.len() >= LEAST);
            let most = groups.max_by(|one, other| sum(one).total_cmp(&sum(other)))?;
            let each = sum(most) / most.len() as f64 / processors;
            let regions = most.iter().take(MOST).map(|(_, region)| *region).collect();
            let all = its().map(saves).sum::<f64>() / processors;
            Some(Group { pid, start, regions, each, all })
        });
        groups
            .filter(|group| group.worth() / 2.0 >= LEAST_SHARE)
            .max_by(|one, other| one.worth().total_cmp(&other.worth()))
    }
}

impl Group {
    /// Of the process's time, that huge pages for all of them are to save.
    fn worth(&self) -> f64 {
        self.each * self.regions.len() as f64
    }

    /// The half whose accesses tell.
    fn seen(&self) -> Vec<u64> {
        self.regions.iter().skip(1).step_by(2).copied().collect()
    }

    /// The other half is made huge and split again. `None`: it could not be tried.
    fn tried(&self, regions: &mut Regions, wait: Duration, is_over: &impl Fn() -> bool) -> Option<Trial> {
        let advised = Advised::of(self.pid, self.start).ok()?;
        // Splitting gives zeroes back, which would be faulted in again.
        let is_full = |region: &u64| advised.zero_pages(*region).is_ok_and(|zero| zero == 0);
        let made: Vec<u64> = self.regions.iter().step_by(2).copied().filter(is_full).collect();
        let seen = self.seen();
        let foretold = self.each * made.len() as f64;
        if made.len() * 2 < LEAST {
            return None;
        }
        let mut turns = (1..).map(|turn| TURN.mul_f64(0.5 + (f64::from(turn) * SPREAD).fract()));
        let mut pace = || (!is_over()).then(|| regions.pace(self.pid, &seen, wait, turns.next()?)).flatten();
        let mut trial = Trial { bytes: made.len() as u64 * HUGE_BYTES, foretold, saved: Vec::new() };
        let mut before = pace()?;
        for _ in 0..MOST_PAIRS {
            if trial.saved.len() >= LEAST_PAIRS && trial.error() <= SURE {
                break;
            }
            let huge = made.iter().filter(|region| advised.collapse(**region).is_ok()).count();
            let are_huge = huge as f64 >= NEARLY_ALL * made.len() as f64;
            std::thread::sleep(CALM);
            let huge = pace();
            made.iter().for_each(|region| _ = advised.split(*region));
            std::thread::sleep(CALM);
            let (Some(huge), Some(after), true) = (huge, pace(), are_huge) else { break };
            // In another phase nothing of it may be accessed, which tells nothing.
            trial.saved.extend(saved(&huge, &before, &after));
            before = after;
        }
        (trial.saved.len() >= FEWEST).then_some(trial)
    }
}

/// Regions by what they save, falling, in groups of which none saves much more than another.
fn alike(regions: &[(f64, u64)]) -> impl Iterator<Item = &[(f64, u64)]> {
    let mut left = regions;
    std::iter::from_fn(move || {
        let (most, _) = left.first()?;
        let (group, others) = left.split_at(left.partition_point(|(saved, _)| saved * ALIKE > *most).max(1));
        left = others;
        Some(group)
    })
}

fn sum(group: &[(f64, u64)]) -> f64 {
    group.iter().map(|(saved, _)| saved).sum()
}

/// The share of its time that a program saves which is so fast, and so fast before and after.
fn saved(huge: &Pace, before: &Pace, after: &Pace) -> Option<f64> {
    let faster = (huge.over(before)? * huge.over(after)?).sqrt();
    Some(1.0 - 1.0 / faster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_grouped_by_what_they_save() {
        let saves = [9.0, 5.0, 4.0, 3.0, 2.5, 1.0, 0.0, 0.0];
        let regions: Vec<(f64, u64)> = saves.into_iter().zip(0..).collect();
        let groups: Vec<usize> = alike(&regions).map(<[_]>::len).collect();
        assert_eq!(groups, [5, 1, 1, 1], "what saves nothing is like nothing");
        assert_eq!(alike(&[]).count(), 0);
    }
}
