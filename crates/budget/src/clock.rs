//! A clock that is steadier than the wall: what memory cost a run in CPU time and in stall.
//!
//! Other programs, the hypervisor and the storage change the run time of a short job by more than the slow-down that is asked
//! about. What a limit costs shows elsewhere, too: in the kernel's CPU time (reclaim, faults, reading), in that of a garbage collector,
//! and in waiting for memory and storage. Where nothing of memory's cost can hide from both, the two clocks are weighed by how well
//! each is known. The CPU time that a program spends in its own code varies with the speed of the processor, and memory changes it little:
//! half of what is additional counts, as far as pages that went and came back can explain it, and all where garbage is collected.

use model::{Outcome, Spread, Trial};

use crate::noise::ratio_noise;
use crate::predict::{TELLING_BYTES, may_cost_unseen};
use crate::{Seen, Settings};

/// What reading a byte again costs the processor at the most, in seconds: 15 us a page. Slower storage shows as stall.
const MOST_READ_PRICE: f64 = 4.0 / (1u64 << 30) as f64;

/// The share of it that is believed of a run whose CPU time is known; 0.3 to 3 us a page were measured.
const BELIEVED: f64 = 0.2;

/// What reclaiming a byte costs it at the most: 2 us a page.
const MOST_RECLAIM_PRICE: f64 = 0.5 / (1u64 << 30) as f64;

/// Memory costs a run next to nothing where it costs less than this share of the slow-down.
const LITTLE: f64 = 0.25;

/// How far this clock may be off, as a share of the run time: waits for locks and for other processes are not in it.
const LEAST_NOISE: f64 = 0.025;

/// What a CPU time is taken to vary by while there is one reference only, as a share.
const UNKNOWN_NOISE: f64 = 0.05;

/// What memory cost a run that came to its end, as a ratio to the references' run time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Where the additional CPU time was shared by as many processors as the references used.
    pub likely: f64,
    /// How far `likely` may be off for want of knowing whose the additional time in the program's own code is.
    pub doubt: f64,
}

/// `None` where memory's cost can hide from this clock (swap, writers that are held back), or is not known.
pub fn cost(settings: &Settings, seen: &Seen, trial: &Trial) -> Option<Cost> {
    if !is_whole(trial) || may_cost_unseen(settings, seen) {
        return None;
    }
    let wall = seen.reference_of(trial)?;
    let processors = (usual_cpu(settings, seen)?.median / wall).max(1.0);
    let (cpu, stall) = (additional_cpu(settings, seen, trial)?, trial.stall_seconds?.max(0.0));
    // Pages that come back displace the program's own data in the processor's caches: of its own code's time half may be memory's.
    let own = additional_of_all(settings, seen, trial).map_or(0.0, |all| (all - cpu).max(0.0) / 2.0);
    let likely = 1.0 + ((cpu + own) / processors + stall) / wall;
    // Where the machine's pressure stands for the job's, others may have stalled: a run that was fast lost nothing.
    let by_wall = trial.runtime_ratio? + 2.0 * ratio_noise(settings, seen);
    Some(Cost { likely: likely.min(by_wall.max(1.0)), doubt: own / processors / wall })
}

/// Additional CPU seconds that memory cost a run that came to its end; `None` if not known.
pub fn additional_cpu(settings: &Settings, seen: &Seen, trial: &Trial) -> Option<f64> {
    match usual_system(settings, seen).zip(trial.system_seconds) {
        Some((usual, used)) if is_whole(trial) => Some(within(settings, seen, trial, used - usual.median)),
        _ => additional_of_all(settings, seen, trial),
    }
}

/// The same of all CPU time: more than memory cost, where the processor was slower.
pub fn additional_of_all(settings: &Settings, seen: &Seen, trial: &Trial) -> Option<f64> {
    let used = trial.cpu_seconds.filter(|_| is_whole(trial))?;
    Some(within(settings, seen, trial, used - usual_cpu(settings, seen)?.median))
}

/// At least nothing, and no more than memory can have cost: a host that hands out memory slowly costs the kernel's CPU time, too.
fn within(settings: &Settings, seen: &Seen, trial: &Trial, additional: f64) -> f64 {
    let had_to_go =
        seen.peak_charge_bytes().zip(trial.limit_bytes).map_or(0, |(peak, limit)| peak.saturating_sub(limit));
    let reading = most_read(settings, trial).filter(|_| !settings.sizes_itself);
    let most = reading.map_or(f64::INFINITY, |reading| BELIEVED * reading + had_to_go as f64 * MOST_RECLAIM_PRICE);
    additional.max(0.0).min(most)
}

/// The most CPU seconds that reading again takes; `None` if it is not known how much was.
pub fn most_read(settings: &Settings, trial: &Trial) -> Option<f64> {
    Some((trial.refaults? * settings.page_bytes) as f64 * MOST_READ_PRICE)
}

fn is_whole(trial: &Trial) -> bool {
    !trial.lower_bound && matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow)
}

/// Whether a run used so much more CPU time than the references that this alone exceeds the slow-down. A garbage collector that has
/// little room shows so, and neither stalls nor reads again.
pub fn computes_more(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    // What a run had used when it was stopped can only grow.
    let has_run = matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow);
    let Some((used, usual)) = trial.cpu_seconds.filter(|_| has_run).zip(references_cpu(seen)) else { return false };
    used > (1.0 + settings.slowdown + 2.0 * share_of(seen, &usual, usual.median)) * usual.median
}

/// How many times as long as the references a run took, by both clocks.
pub fn ratio(settings: &Settings, seen: &Seen, trial: &Trial) -> Option<f64> {
    let wall = trial.runtime_ratio?;
    let Some(cost) = cost(settings, seen, trial) else { return Some(wall) };
    let weight = |deviation: f64| 1.0 / (deviation * deviation);
    let (by_wall, by_cost) =
        (weight(ratio_noise(settings, seen)), weight(cost_noise(settings, seen).hypot(cost.doubt)));
    Some((wall * by_wall + cost.likely * by_cost) / (by_wall + by_cost))
}

/// How far [`ratio`] may be off by chance (one standard deviation).
pub fn noise(settings: &Settings, seen: &Seen, trial: &Trial) -> f64 {
    let wall = ratio_noise(settings, seen);
    match cost(settings, seen, trial) {
        Some(_) => together(settings, seen, wall),
        None => wall,
    }
}

/// How far a run's ratio by both clocks is off by chance, where run times vary by the share `wall`.
pub fn together(settings: &Settings, seen: &Seen, wall: f64) -> f64 {
    let knows = references_cpu(seen).is_some() && seen.references.iter().all(|r| r.stall_seconds.is_some());
    if !knows || wall <= 0.0 || may_cost_unseen(settings, seen) {
        return wall;
    }
    1.0 / (1.0 / (wall * wall) + 1.0 / cost_noise(settings, seen).powi(2)).sqrt()
}

fn cost_noise(settings: &Settings, seen: &Seen) -> f64 {
    cpu_noise(settings, seen).max(LEAST_NOISE)
}

/// How much the references vary in the CPU time that memory may change, as a share of the run time.
fn cpu_noise(settings: &Settings, seen: &Seen) -> f64 {
    let Some(cpu) = usual_cpu(settings, seen) else { return UNKNOWN_NOISE };
    share_of(seen, &usual_system(settings, seen).unwrap_or(cpu), cpu.median)
}

/// The standard deviation of what was used, as a share of `whole`; where there is one reference only it is taken to be [`UNKNOWN_NOISE`] of that at
/// least.
fn share_of(seen: &Seen, used: &Spread, whole: f64) -> f64 {
    let unknown = if seen.references.len() > 1 { 0.0 } else { UNKNOWN_NOISE * used.median };
    let deviation = used.stddev.max(unknown);
    if whole > 0.0 { deviation / whole } else { UNKNOWN_NOISE }
}

/// Whether a run's cost exceeds the slow-down by more than CPU times vary.
pub fn is_surely_more(settings: &Settings, seen: &Seen, cost: Cost) -> bool {
    cost.likely > 1.0 + settings.slowdown + cpu_noise(settings, seen)
}

/// A run under a limit that says as much of what the job uses as one without: it read next to nothing again, hardly waited, and little had to go
/// for it. That it used more for another reason is not ruled out, so one that used much more does not count.
fn is_unhindered(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    let Some(reference) = seen.reference_of(trial).filter(|_| !settings.sizes_itself) else { return false };
    let little = settings.slowdown * reference * LITTLE;
    let had_to_go =
        seen.peak_charge_bytes().zip(trial.limit_bytes).map(|(peak, limit)| peak.saturating_sub(limit) as f64);
    is_whole(trial)
        && !may_cost_unseen(settings, seen)
        && trial.refaults.is_some_and(|pages| pages * settings.page_bytes < TELLING_BYTES)
        && trial.stall_seconds.is_some_and(|stall| stall < little)
        && had_to_go.is_some_and(|bytes| bytes * MOST_RECLAIM_PRICE < little)
        && !computes_more(settings, seen, trial)
}

/// What the references used, and the runs that say as much of it.
fn used(settings: &Settings, seen: &Seen, references: Vec<f64>, of: fn(&Trial) -> Option<f64>) -> Option<Spread> {
    let trials = seen.search_trials().filter(|t| is_unhindered(settings, seen, t)).filter_map(of);
    let has_reference = !references.is_empty();
    let all: Vec<f64> = references.into_iter().chain(trials).collect();
    Spread::of(&all).filter(|_| has_reference)
}

/// What the kernel used where memory did not hinder the job; `None` where that is not known of each reference, and where a garbage collector may
/// use more.
fn usual_system(settings: &Settings, seen: &Seen) -> Option<Spread> {
    let system: Option<Vec<f64>> = seen.references.iter().map(|r| r.system_seconds).collect();
    used(settings, seen, system.filter(|_| !settings.sizes_itself)?, |t| t.system_seconds)
}

fn usual_cpu(settings: &Settings, seen: &Seen) -> Option<Spread> {
    used(settings, seen, seen.references.iter().filter_map(|r| r.cpu_seconds).collect(), |t| t.cpu_seconds)
}

fn references_cpu(seen: &Seen) -> Option<Spread> {
    let cpu: Vec<f64> = seen.references.iter().filter_map(|r| r.cpu_seconds).collect();
    Spread::of(&cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::trial;
    use crate::{MIB, Reference};

    fn seen(walls: &[f64]) -> Seen {
        let reference = |wall: &f64| Reference { wall_seconds: *wall, cpu_seconds: Some(1.8), ..Reference::default() };
        Seen { references: walls.iter().map(reference).collect(), ..Seen::default() }
    }

    fn ended(wall_seconds: f64, cpu_seconds: f64, stall_seconds: f64, reference: f64) -> Trial {
        Trial {
            cpu_seconds: Some(cpu_seconds),
            stall_seconds: Some(stall_seconds),
            runtime_ratio: Some(wall_seconds / reference),
            ..trial(0, wall_seconds)
        }
    }

    /// `samtools sort` on a machine that others share: references of 2.5 to 3.3 s with a CPU time of 1.7 to 1.9 s.
    #[test]
    fn cpu_time_and_stall_decide_where_wall_time_varies_more() {
        let (settings, seen) = (Settings::default(), seen(&[2.46, 3.00, 3.26, 2.92]));
        let slow_by_chance = ratio(&settings, &seen, &ended(3.3, 1.83, 0.0, 2.96)).unwrap();
        assert!(slow_by_chance < 1.05, "{slow_by_chance}");
        let fast_by_chance = ratio(&settings, &seen, &ended(2.7, 2.6, 0.4, 2.96)).unwrap();
        assert!(fast_by_chance > 1.05, "{fast_by_chance}");
    }

    /// `samtools sort` where its writes wait for storage: the processor was faster, and the pressure of memory shows what that cost.
    #[test]
    fn the_processors_speed_does_not_hide_what_memory_cost() {
        let mut seen = seen(&[2.28, 1.95]);
        seen.references[0].cpu_seconds = Some(2.22);
        seen.references[1].cpu_seconds = Some(1.90);
        seen.references.iter_mut().for_each(|r| r.system_seconds = Some(0.25));
        let settings = Settings::default();
        let fast = Trial { system_seconds: Some(0.2), ..ended(2.18, 1.55, 0.35, 2.11) };
        assert!(ratio(&settings, &seen, &fast).unwrap() > 1.1, "{:?}", ratio(&settings, &seen, &fast));
        let slow = Trial { system_seconds: Some(0.26), refaults: Some(30_000), ..ended(2.4, 2.33, 0.0, 2.11) };
        assert!(ratio(&settings, &seen, &slow).unwrap() < 1.05, "{:?}", ratio(&settings, &seen, &slow));
        let others_stalled = Trial { system_seconds: Some(0.25), ..ended(1.9, 1.85, 2.0, 2.11) };
        assert!(cost(&settings, &seen, &others_stalled).unwrap().likely < 1.2);
    }

    #[test]
    fn a_steady_wall_clock_decides_by_itself() {
        let (settings, seen) = (Settings::default(), seen(&[2.95, 2.96, 2.97]));
        let slow = ratio(&settings, &seen, &ended(3.2, 1.8, 0.0, 2.96)).unwrap();
        assert!(slow > 1.05, "a wait that shows in neither CPU time nor stall: {slow}");
    }

    #[test]
    fn what_can_hide_from_the_clock_is_left_to_wall_time() {
        let seen = seen(&[2.46, 3.00]);
        let swaps = Settings { has_slower_memory: true, ..Settings::default() };
        assert_eq!(cost(&swaps, &seen, &ended(3.3, 1.8, 0.0, 2.7)), None);
        let stopped = Trial { lower_bound: true, ..ended(3.3, 1.8, 0.0, 2.7) };
        assert_eq!(cost(&Settings::default(), &seen, &stopped), None);
    }

    /// `numpy.memmap` at 219 MiB beside one reference that was slow by chance: a run at 237 MiB, which read nothing again, was 15 % faster.
    #[test]
    fn a_run_that_memory_did_not_hinder_says_how_much_the_job_uses_without_a_limit() {
        let mut seen = seen(&[2.30]);
        seen.references[0] = Reference {
            cpu_seconds: Some(2.26),
            system_seconds: Some(1.45),
            stall_seconds: Some(0.0),
            peak_charge_bytes: Some(270 * MIB),
            refaults: Some(0),
            ..seen.references[0].clone()
        };
        let at = |limit: u64, wall: f64, cpu: f64, system: f64, refaults: u64| Trial {
            limit_bytes: Some(limit * MIB),
            peak_charge_bytes: Some(limit * MIB),
            outcome: Outcome::Ok,
            system_seconds: Some(system),
            refaults: Some(refaults),
            ..ended(wall, cpu, 0.0, 2.30)
        };
        let settings = Settings::default();
        let slow = at(219, 2.23, 2.21, 1.46, 51_474);
        assert!(cost(&settings, &seen, &slow).unwrap().likely < 1.01);
        let before = cost_noise(&settings, &seen);
        seen.trials = vec![at(237, 1.96, 1.93, 1.25, 115), slow.clone()];
        assert!(cost(&settings, &seen, &slow).unwrap().likely > 1.04, "{:?}", cost(&settings, &seen, &slow));
        assert!(cost_noise(&settings, &seen) > 2.0 * before, "and CPU times vary more than one tells");
        let computes = at(237, 2.8, 2.8, 1.9, 115);
        seen.trials = vec![computes];
        assert!(cost(&settings, &seen, &slow).unwrap().likely < 1.01, "what used much more may have been hindered");
    }
}
