//! A clock that is steadier than the wall: what memory cost a run in CPU time and in stall.
//!
//! Other programs, the hypervisor and the storage change the run time of a short job by more than the slow-down that is asked
//! about. What a limit costs shows elsewhere, too: in CPU time (reclaim, faults, garbage collection) and in waiting for storage. Where
//! nothing of memory's cost can hide from both, the two clocks are weighed by how well each is known.

use model::{Outcome, Spread, Trial};

use crate::noise::ratio_noise;
use crate::predict::may_cost_unseen;
use crate::{Seen, Settings};

/// The share of a stall that is sure to be seen.
const SEEN_STALL: f64 = 0.5;

/// How far this clock may be off, as a share of the run time: waits for locks and for other processes are not in it.
const LEAST_NOISE: f64 = 0.025;

/// What a CPU time is taken to vary by while there is one reference only, as a share.
const UNKNOWN_NOISE: f64 = 0.05;

/// What memory cost a run that came to its end, as a ratio to the references' run time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Where the additional CPU time was shared by as many processors as the references used.
    pub likely: f64,
    /// Where one processor had all of it, and half of the stall was not seen.
    pub most: f64,
}

/// `None` where memory's cost can hide from this clock (swap, writers that are held back), or is not known.
pub fn cost(settings: &Settings, seen: &Seen, trial: &Trial) -> Option<Cost> {
    let is_whole = !trial.lower_bound && matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow);
    if !is_whole || may_cost_unseen(settings, seen) {
        return None;
    }
    let (wall, usual) = (seen.reference_of(trial)?, usual_cpu(seen)?.median);
    let processors = (usual / wall).max(1.0);
    let (cpu, stall) = ((trial.cpu_seconds? - usual).max(0.0), trial.stall_seconds?.max(0.0));
    Some(Cost { likely: 1.0 + (cpu / processors + stall) / wall, most: 1.0 + (cpu + stall / SEEN_STALL) / wall })
}

/// Additional CPU seconds of a run that came to its end; `None` if not known.
pub fn additional_cpu(seen: &Seen, trial: &Trial) -> Option<f64> {
    let is_whole = !trial.lower_bound && matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow);
    Some((trial.cpu_seconds.filter(|_| is_whole)? - usual_cpu(seen)?.median).max(0.0))
}

/// Whether a run used so much more CPU time than the references that this alone exceeds the slow-down. A garbage collector that has
/// little room shows so, and neither stalls nor reads again.
pub fn computes_more(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    let allowed = usual_cpu(seen).map(|usual| (settings.slowdown + 2.0 * cpu_noise(seen)) * usual.median);
    additional_cpu(seen, trial).zip(allowed).is_some_and(|(cpu, allowed)| cpu > allowed)
}

/// How many times as long as the references a run took, by both clocks.
pub fn ratio(settings: &Settings, seen: &Seen, trial: &Trial) -> Option<f64> {
    let wall = trial.runtime_ratio?;
    let Some(cost) = cost(settings, seen, trial) else { return Some(wall) };
    let weight = |deviation: f64| 1.0 / (deviation * deviation);
    let (by_wall, by_cost) = (weight(ratio_noise(settings, seen)), weight(cost_noise(seen)));
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
    let knows = usual_cpu(seen).is_some() && seen.references.iter().all(|r| r.stall_seconds.is_some());
    if !knows || wall <= 0.0 || may_cost_unseen(settings, seen) {
        return wall;
    }
    1.0 / (1.0 / (wall * wall) + 1.0 / cost_noise(seen).powi(2)).sqrt()
}

fn cost_noise(seen: &Seen) -> f64 {
    cpu_noise(seen).max(LEAST_NOISE)
}

/// How much the references' CPU time varies, as a share.
fn cpu_noise(seen: &Seen) -> f64 {
    let spread = usual_cpu(seen).filter(|cpu| cpu.median > 0.0 && seen.references.len() > 1);
    spread.map_or(UNKNOWN_NOISE, |cpu| cpu.stddev / cpu.median)
}

/// Whether a run's cost exceeds the slow-down by more than CPU times vary.
pub fn is_surely_more(settings: &Settings, seen: &Seen, cost: Cost) -> bool {
    cost.likely > 1.0 + settings.slowdown + cpu_noise(seen)
}

fn usual_cpu(seen: &Seen) -> Option<Spread> {
    let cpu: Vec<f64> = seen.references.iter().filter_map(|r| r.cpu_seconds).collect();
    Spread::of(&cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;
    use crate::tests::trial;

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
}
