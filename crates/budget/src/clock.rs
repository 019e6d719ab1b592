//! A clock that is steadier than wall time: what memory cost a run in CPU time and in stall.
//!
//! Other programs, the hypervisor and the storage change the run time of a short job by more than the slow-down in question. The cost of a
//! limit also shows in the kernel's CPU time (reclaim, faults, reading), in the CPU time of a garbage collector, and in waiting for memory
//! and storage. Where none of memory's cost can hide from this clock, both clocks are weighted by their precision. The CPU time of a
//! program's own code varies with the speed of the processor, and memory changes it little: half of the additional time counts, as far as
//! refaulted pages can explain it; all of it counts where garbage is collected.

use model::Trial;

use crate::noise::Noise;
use crate::processor::is_whole;

/// What memory cost a completed run, as a ratio to the references' run time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The likely ratio, if the additional CPU time was spread over as many processors as the references used.
    pub likely: f64,
    /// How far `likely` may be off, because the additional time in the program's own code may have another cause.
    pub doubt: f64,
}

/// `None` where memory's cost can hide from this clock (swap, throttled writers), or is unknown.
pub fn cost(a: &Noise, trial: &Trial) -> Option<Cost> {
    if !is_whole(trial) || a.has_hidden_cost {
        return None;
    }
    let wall = a.evidence.reference_of(trial)?;
    let processors = (a.usual?.median / wall).max(1.0);
    let (cpu, stall) = (a.additional(trial)?, trial.stall_seconds?.max(0.0));
    // Refaulted pages displace the program's data in the processor's caches: half of the additional time in its own code may be memory's.
    let own = a.additional_of_all(trial).map_or(0.0, |all| (all - cpu).max(0.0) / 2.0);
    let likely = 1.0 + ((cpu + own) / processors + stall) / wall;
    // Where the machine's pressure stands in for the job's, other programs may have stalled: a run that was fast lost nothing.
    let by_wall = trial.runtime_ratio? + 2.0 * a.ratio_noise;
    Some(Cost { likely: likely.min(by_wall.max(1.0)), doubt: own / processors / wall })
}

/// The ratio of a run's time to the references', by both clocks.
pub fn ratio(a: &Noise, trial: &Trial) -> Option<f64> {
    let wall = trial.runtime_ratio?;
    let Some(cost) = cost(a, trial) else { return Some(wall) };
    let weight = |deviation: f64| 1.0 / (deviation * deviation);
    let (by_wall, by_cost) = (weight(a.ratio_noise), weight(a.cost_noise().hypot(cost.doubt)));
    Some((wall * by_wall + cost.likely * by_cost) / (by_wall + by_cost))
}

/// The standard deviation of [`ratio`].
pub fn deviation(a: &Noise, trial: &Trial) -> f64 {
    let wall = a.ratio_noise;
    match cost(a, trial) {
        Some(_) => a.together(wall),
        None => wall,
    }
}

/// Whether a run's cost exceeds the slow-down by more than CPU times vary.
pub fn is_surely_more(a: &Noise, cost: Cost) -> bool {
    cost.likely > 1.0 + a.settings.slowdown + a.processor_noise()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::trial;
    use crate::{Evidence, MIB, Reference, Settings};
    use model::Outcome;

    fn evidence(walls: &[f64]) -> Evidence {
        let reference = |wall: &f64| Reference { wall_seconds: *wall, cpu_seconds: Some(1.8), ..Reference::default() };
        Evidence { references: walls.iter().map(reference).collect(), ..Evidence::default() }
    }

    fn ended(wall_seconds: f64, cpu_seconds: f64, stall_seconds: f64, reference: f64) -> Trial {
        Trial {
            cpu_seconds: Some(cpu_seconds),
            stall_seconds: Some(stall_seconds),
            runtime_ratio: Some(wall_seconds / reference),
            ..trial(0, wall_seconds)
        }
    }

    /// `samtools sort` on a shared machine: references of 2.5 to 3.3 s with a CPU time of 1.7 to 1.9 s.
    #[test]
    fn cpu_time_and_stall_decide_where_wall_time_varies_more() {
        let (settings, evidence) = (Settings::default(), evidence(&[2.46, 3.00, 3.26, 2.92]));
        let slow_by_chance = ratio(&Noise::of(&settings, &evidence), &ended(3.3, 1.83, 0.0, 2.96)).unwrap();
        assert!(slow_by_chance < 1.05, "{slow_by_chance}");
        let fast_by_chance = ratio(&Noise::of(&settings, &evidence), &ended(2.7, 2.6, 0.4, 2.96)).unwrap();
        assert!(fast_by_chance > 1.05, "{fast_by_chance}");
    }

    /// `samtools sort` whose writes wait for storage: the processor was faster, and memory pressure shows the cost.
    #[test]
    fn the_processors_speed_does_not_hide_what_memory_cost() {
        let mut evidence = evidence(&[2.28, 1.95]);
        evidence.references[0].cpu_seconds = Some(2.22);
        evidence.references[1].cpu_seconds = Some(1.90);
        evidence.references.iter_mut().for_each(|r| r.system_seconds = Some(0.25));
        let settings = Settings::default();
        let fast = Trial { system_seconds: Some(0.2), ..ended(2.18, 1.55, 0.35, 2.11) };
        assert!(
            ratio(&Noise::of(&settings, &evidence), &fast).unwrap() > 1.1,
            "{:?}",
            ratio(&Noise::of(&settings, &evidence), &fast)
        );
        let slow = Trial { system_seconds: Some(0.26), refaults: Some(30_000), ..ended(2.4, 2.33, 0.0, 2.11) };
        assert!(
            ratio(&Noise::of(&settings, &evidence), &slow).unwrap() < 1.05,
            "{:?}",
            ratio(&Noise::of(&settings, &evidence), &slow)
        );
        let others_stalled = Trial { system_seconds: Some(0.25), ..ended(1.9, 1.85, 2.0, 2.11) };
        assert!(cost(&Noise::of(&settings, &evidence), &others_stalled).unwrap().likely < 1.2);
    }

    #[test]
    fn a_steady_wall_clock_decides_by_itself() {
        let (settings, evidence) = (Settings::default(), evidence(&[2.95, 2.96, 2.97]));
        let slow = ratio(&Noise::of(&settings, &evidence), &ended(3.2, 1.8, 0.0, 2.96)).unwrap();
        assert!(slow > 1.05, "a wait that shows in neither CPU time nor stall: {slow}");
    }

    #[test]
    fn costs_that_can_hide_are_judged_by_wall_time() {
        let evidence = evidence(&[2.46, 3.00]);
        let swaps = Settings { has_slower_memory: true, ..Settings::default() };
        assert_eq!(cost(&Noise::of(&swaps, &evidence), &ended(3.3, 1.8, 0.0, 2.7)), None);
        let stopped = Trial { lower_bound: true, ..ended(3.3, 1.8, 0.0, 2.7) };
        assert_eq!(cost(&Noise::of(&Settings::default(), &evidence), &stopped), None);
    }

    /// `numpy.memmap` at 219 MiB, with one reference that was slow by chance: a run at 237 MiB without refaults was 15 % faster.
    #[test]
    fn an_unhindered_run_counts_like_a_reference() {
        let mut evidence = evidence(&[2.30]);
        evidence.references[0] = Reference {
            cpu_seconds: Some(2.26),
            system_seconds: Some(1.45),
            stall_seconds: Some(0.0),
            peak_charge_bytes: Some(270 * MIB),
            refaults: Some(0),
            ..evidence.references[0].clone()
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
        assert!(cost(&Noise::of(&settings, &evidence), &slow).unwrap().likely < 1.01);
        let before = Noise::of(&settings, &evidence).cost_noise();
        evidence.trials = vec![at(237, 1.96, 1.93, 1.25, 115), slow.clone()];
        assert!(
            cost(&Noise::of(&settings, &evidence), &slow).unwrap().likely > 1.04,
            "{:?}",
            cost(&Noise::of(&settings, &evidence), &slow)
        );
        assert!(
            Noise::of(&settings, &evidence).cost_noise() > 2.0 * before,
            "and CPU times vary more than a single one shows"
        );
        let computes = at(237, 2.8, 2.8, 1.9, 115);
        evidence.trials = vec![computes];
        assert!(
            cost(&Noise::of(&settings, &evidence), &slow).unwrap().likely < 1.01,
            "what used much more may have been hindered"
        );
    }
}
