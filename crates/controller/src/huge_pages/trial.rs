//! Trials of huge pages while the program runs: some of its memory is made huge and split again in turns. The pace of
//! its accesses to similar memory shows how much of its time that saves.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use advise::{Costs, HUGE_BYTES, PAGES_PER_HUGE, Trial};
use linux::pages::Advised;
use track::regions::{Pace, Region, Regions};

use super::walks::walks;

/// Turns with huge pages, each between two without, so that a drift in the speed of the program or host is not taken
/// for a gain. At least the first number, and more until the standard error is below this share of the program's time.
const MIN_PAIRS: usize = 6;
const MAX_PAIRS: usize = 12;
const MAX_ERROR: f64 = 0.01;
/// With fewer valid turns, agreement may be chance.
const MIN_VALID_PAIRS: usize = 4;
/// Average length of a turn. Lengths vary, so that turns do not run in step with a program that repeats itself.
const TURN_TIME: Duration = Duration::from_millis(250);
/// Its multiples modulo 1 are evenly spread over [0, 1) (golden ratio).
const SPREAD: f64 = 0.618_033_988_749_895;
/// Pause after pages were made huge or split.
const SETTLE_TIME: Duration = Duration::from_millis(10);
/// A process's prediction is settled when it has changed by less than this for this many rounds.
const SETTLED_CHANGE: f64 = 0.1;
const SETTLED_ROUNDS: u32 = 3;
/// A program that changes phase is never settled: from this many rounds on, its memory is tried all the same.
const MAX_UNSETTLED_ROUNDS: u32 = 12;
/// If a trial finds its memory idle, as in another phase, it is put off for at most this many rounds.
const MAX_IDLE_ROUNDS: u32 = 8;
/// Trials take at most this part of a run, because they make and split huge pages.
const MAX_TIME_SHARE: f64 = 0.5;
/// Regions in a trial, at least and at most; half of them become huge. Each takes up to a millisecond to make, several
/// times.
const MIN_REGIONS: usize = 8;
const MAX_REGIONS: usize = 256;
/// Regions whose savings differ by less than this factor are tried together.
const SIMILAR_FACTOR: f64 = 4.0;
/// A trial is valid only if this share becomes huge pages: none may be free.
const MIN_HUGE_SHARE: f64 = 0.9;
/// A smaller share of the program's time cannot be measured.
const MIN_SAVED_SHARE: f64 = 0.005;

/// Regions of one process that were tried.
pub struct Tried {
    /// The process.
    pub pid: i32,
    /// First addresses.
    pub regions: Vec<u64>,
    /// The result.
    pub trial: Trial,
}

/// Decides what to try, and when.
pub struct Trials {
    begun: Instant,
    /// Time spent in trials so far.
    taken: Duration,
    /// Regions already tried, by process.
    past: BTreeSet<(i32, u64)>,
    /// The last prediction for all memory of the process, and the number of rounds for which it was stable.
    settled: (f64, u32),
    /// Rounds since there was something to try.
    rounds: u32,
    /// Number of times in a row that the memory to try was idle.
    idle: u32,
}

/// Similar regions of one process.
struct Group {
    pid: i32,
    start: u64,
    regions: Vec<u64>,
    /// Share of the process's time that one huge page is predicted to save.
    each: f64,
    /// The same for all of its memory.
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
    /// Tries the untried regions with the highest prediction, if a trial is due.
    pub fn next(&mut self, regions: &mut Regions, costs: &Costs, is_over: &impl Fn() -> bool) -> Option<Tried> {
        let now = Instant::now();
        let group = self.group(regions, costs)?;
        let (before, rounds) = self.settled;
        let is_settled = (group.all - before).abs() < SETTLED_CHANGE * before;
        self.settled = (group.all, if is_settled { rounds + 1 } else { 0 });
        let is_time = self.taken < now.duration_since(self.begun).mul_f64(MAX_TIME_SHARE);
        self.rounds += 1;
        let is_known = self.settled.1 >= SETTLED_ROUNDS || self.rounds >= MAX_UNSETTLED_ROUNDS;
        if !is_known || !is_time {
            return None;
        }
        let wait = regions.informative_wait(group.pid, &group.measured());
        if wait.is_none() && self.idle < MAX_IDLE_ROUNDS {
            self.idle += 1;
            return None;
        }
        self.idle = 0;
        self.past.extend(group.regions.iter().map(|region| (group.pid, *region)));
        let trial = wait.and_then(|wait| group.tried(regions, wait, is_over));
        self.taken += now.elapsed();
        Some(Tried { pid: group.pid, regions: group.regions, trial: trial? })
    }

    /// The group of similar regions with the highest prediction, over all processes.
    fn group(&self, regions: &Regions, costs: &Costs) -> Option<Group> {
        let known = regions.known(costs.last_cache_bytes);
        let saves = |region: &Region| region.misses_per_second * walks(region).each_ns(costs) / 1e9;
        // Absent pages would be filled with zeroes by a promotion.
        let is_new = |region: &&Region| {
            !region.is_huge
                && region.present_pages == PAGES_PER_HUGE
                && !self.past.contains(&(region.pid, region.start))
        };
        let groups = regions.processes().filter_map(|(pid, start)| {
            let its = || known.iter().filter(move |region| region.pid == pid);
            // Relative to the CPU time that it uses, not to wall time.
            let misses: f64 = its().map(|region| region.misses_per_second).sum();
            let processors = misses * its().next()?.ns_per_miss / 1e9;
            let mut new: Vec<(f64, u64)> = its().filter(is_new).map(|region| (saves(region), region.start)).collect();
            new.sort_by(|one, other| other.0.total_cmp(&one.0));
            let groups = alike(&new).filter(|group| group.len() >= MIN_REGIONS);
            let most = groups.max_by(|one, other| sum(one).total_cmp(&sum(other)))?;
            let each = sum(most) / most.len() as f64 / processors;
            let regions = most.iter().take(MAX_REGIONS).map(|(_, region)| *region).collect();
            let all = its().map(saves).sum::<f64>() / processors;
            Some(Group { pid, start, regions, each, all })
        });
        groups
            .filter(|group| group.worth() / 2.0 >= MIN_SAVED_SHARE)
            .max_by(|one, other| one.worth().total_cmp(&other.worth()))
    }
}

impl Group {
    /// Share of the process's time that huge pages for all of them are predicted to save.
    fn worth(&self) -> f64 {
        self.each * self.regions.len() as f64
    }

    /// The half whose accesses are measured.
    fn measured(&self) -> Vec<u64> {
        self.regions.iter().skip(1).step_by(2).copied().collect()
    }

    /// Makes the other half huge and splits it again, in turns. `None`: the trial is not valid.
    fn tried(&self, regions: &mut Regions, wait: Duration, is_over: &impl Fn() -> bool) -> Option<Trial> {
        let advised = Advised::of(self.pid, self.start).ok()?;
        // A split frees zero pages, which would then have to be faulted in again.
        let is_full = |region: &u64| advised.zero_pages(*region).is_ok_and(|zero| zero == 0);
        let made: Vec<u64> = self.regions.iter().step_by(2).copied().filter(is_full).collect();
        let measured = self.measured();
        let predicted = self.each * made.len() as f64;
        if made.len() * 2 < MIN_REGIONS {
            return None;
        }
        let mut turns = (1..).map(|turn| TURN_TIME.mul_f64(0.5 + (f64::from(turn) * SPREAD).fract()));
        let mut pace = || (!is_over()).then(|| regions.pace(self.pid, &measured, wait, turns.next()?)).flatten();
        let mut trial = Trial { bytes: made.len() as u64 * HUGE_BYTES, predicted, saved: Vec::new() };
        let mut before = pace()?;
        for _ in 0..MAX_PAIRS {
            if trial.saved.len() >= MIN_PAIRS && trial.error() <= MAX_ERROR {
                break;
            }
            let huge = made.iter().filter(|region| advised.collapse(**region).is_ok()).count();
            let are_huge = huge as f64 >= MIN_HUGE_SHARE * made.len() as f64;
            std::thread::sleep(SETTLE_TIME);
            let huge = pace();
            made.iter().for_each(|region| _ = advised.split(*region));
            std::thread::sleep(SETTLE_TIME);
            let (Some(huge), Some(after), true) = (huge, pace(), are_huge) else { break };
            // In another phase none of it may be accessed; such turns give no value.
            trial.saved.extend(saved(&huge, &before, &after));
            before = after;
        }
        (trial.saved.len() >= MIN_VALID_PAIRS).then_some(trial)
    }
}

/// Splits regions, sorted by falling savings, into groups within which savings are similar.
fn alike(regions: &[(f64, u64)]) -> impl Iterator<Item = &[(f64, u64)]> {
    let mut left = regions;
    std::iter::from_fn(move || {
        let (most, _) = left.first()?;
        let (group, others) = left.split_at(left.partition_point(|(saved, _)| saved * SIMILAR_FACTOR > *most).max(1));
        left = others;
        Some(group)
    })
}

fn sum(group: &[(f64, u64)]) -> f64 {
    group.iter().map(|(saved, _)| saved).sum()
}

/// The share of its time that a program saves with this pace, against the paces before and after.
fn saved(huge: &Pace, before: &Pace, after: &Pace) -> Option<f64> {
    let faster = (huge.over(before)? * huge.over(after)?).sqrt();
    Some(1.0 - 1.0 / faster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_grouped_by_their_savings() {
        let saves = [9.0, 5.0, 4.0, 3.0, 2.5, 1.0, 0.0, 0.0];
        let regions: Vec<(f64, u64)> = saves.into_iter().zip(0..).collect();
        let groups: Vec<usize> = alike(&regions).map(<[_]>::len).collect();
        assert_eq!(groups, [5, 1, 1, 1], "regions without savings are groups of their own");
        assert_eq!(alike(&[]).count(), 0);
    }
}
