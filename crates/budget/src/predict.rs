//! Predicts the run time at a limit from the file demand curve.

use model::{FileDemand, Outcome, Trial};

use crate::clock::ratio;
use crate::facts::TELLING_BYTES;
use crate::noise::Noise;
use crate::{MIB, Reference};

/// Programs and their libraries map less than this.
const MUCH_MAPPED_BYTES: u64 = 48 * MIB;

/// The minimum cost of a refault in seconds per byte, however cheap the first read seemed: even with fast storage, allocating, filling,
/// caching and reclaiming a page runs at about 2 GiB/s. Read-ahead hides that cost for a first read, but not for one that also needs
/// reclaim.
pub const LEAST_PRICE: f64 = 1.0 / (2u64 << 30) as f64;

/// Predicted run time at a limit over the reference's. `None`: the job would be killed there, or the data is insufficient.
pub fn predict(a: &Noise, limit_bytes: u64) -> Option<f64> {
    if a.killed_below.is_some_and(|floor| limit_bytes < floor) {
        return None;
    }
    if a.is_no_limit(limit_bytes) {
        return Some(1.0);
    }
    if a.writers_knee.is_some_and(|knee| limit_bytes < knee) {
        return None;
    }
    match a.evidence.demand.as_ref()?.refault_bytes_at(limit_bytes)? {
        0 if mapped_floor(a).is_some_and(|floor| limit_bytes < floor) => None,
        0 => Some(1.0),
        bytes => Some(1.0 + bytes as f64 * seconds_per_byte(a)? / a.reference?.median),
    }
}

/// The smallest limit predicted to keep within the slow-down. If the price of a refault is unknown, any refault is too much. If no page
/// cache references were observed, mapped files count as needed and others do not.
pub fn knee(a: &Noise) -> Option<u64> {
    a.writers_knee.or_else(|| readers_knee(a)).filter(|_| !a.settings.sizes_itself)
}

/// The unreclaimable memory and the mapped file pages in use. For pages that were not scanned the curve knows only the first touch, so
/// below this size there may be more refaults than it shows. Of mapped data, the kernel's lists show little about what is in use: all of it
/// is assumed to be.
fn mapped_floor(a: &Noise) -> Option<u64> {
    let most = |of: fn(&Reference) -> Option<u64>| a.evidence.references.iter().filter_map(of).max().unwrap_or(0);
    let data = Some(most(|r| r.file_mapped_bytes)).filter(|mapped| *mapped >= MUCH_MAPPED_BYTES);
    let in_use = data.unwrap_or(0).max(most(|r| r.mapped_in_use_bytes));
    let floor = a.floor?;
    Some(floor + in_use.saturating_sub(well_scanned(a, floor)))
}

/// Mapped bytes whose references the curve knows. A run that was short for its scans shows only a part of the refaults: the curve is
/// trusted if it shows that all mapped bytes were reused at least once, or almost none.
fn well_scanned(a: &Noise, floor: u64) -> u64 {
    let Some(demand) = &a.evidence.demand else { return 0 };
    let again = demand.refault_bytes_at(floor).unwrap_or(0);
    let scanned = demand.mapped_scanned_bytes;
    if again < TELLING_BYTES || again >= scanned { scanned } else { 0 }
}

fn readers_knee(a: &Noise) -> Option<u64> {
    let Some(demand) = &a.evidence.demand else {
        let mapped = a.evidence.references.iter().filter_map(|r| r.file_mapped_bytes).max().unwrap_or(0);
        return Some(a.floor? + mapped);
    };
    let allowed = seconds_per_byte(a)
        .zip(a.reference)
        .map_or(0.0, |(price, reference)| a.settings.slowdown * reference.median / price);
    let limit = smallest_limit(demand, allowed)?;
    let limit = limit.max(mapped_floor(a).unwrap_or(0));
    Some(a.peak.map_or(limit, |peak| limit.min(peak)))
}

/// The smallest limit with at most `allowed` bytes refaulted.
fn smallest_limit(demand: &FileDemand, allowed: f64) -> Option<u64> {
    let last_above = demand.points.iter().rposition(|p| p.refault_bytes as f64 > allowed);
    let Some(above) = last_above else { return demand.points.first().map(|p| p.limit_bytes) };
    let (left, right) = (demand.points[above], demand.points.get(above + 1)?);
    let fall = (left.refault_bytes - right.refault_bytes) as f64;
    let share = (left.refault_bytes as f64 - allowed) / fall;
    Some(left.limit_bytes + ((right.limit_bytes - left.limit_bytes) as f64 * share).ceil() as u64)
}

/// The price of a refault per byte: the median of the trials that show it, else the cost of the first read in the reference.
fn seconds_per_byte(a: &Noise) -> Option<f64> {
    let mut prices: Vec<f64> = a.evidence.trials.iter().filter_map(|trial| price_in(a, trial)).collect();
    prices.sort_by(f64::total_cmp);
    prices.get(prices.len() / 2).copied().or_else(|| first_reading(a).map(|price| price.max(LEAST_PRICE)))
}

fn price_in(a: &Noise, trial: &Trial) -> Option<f64> {
    if !matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow) {
        return None;
    }
    let reference = a.evidence.reference_of(trial)?;
    // A run that was stopped early shows the price of its actual refaults. A completed one is divided by the predicted or the actual
    // refaults, whichever are more: otherwise a curve that predicts too few refaults would make all others expensive.
    let (seconds, bytes) = if trial.lower_bound {
        let lost = trial.stall_seconds.unwrap_or(0.0).max((trial.runtime_ratio? - 1.0) * reference);
        (lost, trial.refaults? * a.settings.page_bytes)
    } else {
        let foretold = a.evidence.demand.as_ref()?.refault_bytes_at(trial.limit_bytes?)?;
        let again = trial.refaults.map_or(0, |refaults| refaults * a.settings.page_bytes);
        ((ratio(a, trial)? - 1.0) * reference, foretold.max(again))
    };
    if bytes < TELLING_BYTES {
        return None;
    }
    let by_chance = a.ratio_noise * reference;
    // Many refaults took almost no time: even with possible noise added, a refault is cheaper than a first read.
    let is_cheap = || first_reading(a).is_some_and(|price| by_chance / (bytes as f64) < price);
    (seconds > by_chance || !trial.lower_bound && is_cheap()).then(|| seconds.max(0.0) / bytes as f64)
}

fn first_reading(a: &Noise) -> Option<f64> {
    let demand = a.evidence.demand.as_ref()?;
    let foreign: u64 = demand.foreign.iter().map(|f| f.cached_bytes).sum();
    let read = demand.distinct_bytes.saturating_sub(demand.written_only_bytes).saturating_sub(foreign);
    let mut stalls: Vec<f64> = a.evidence.references.iter().filter_map(|r| r.stall_seconds).collect();
    stalls.sort_by(f64::total_cmp);
    let stall = *stalls.get(stalls.len() / 2)?;
    (read >= TELLING_BYTES).then(|| stall / read as f64)
}

#[cfg(test)]
mod tests {
    use model::DemandPoint;

    use super::*;
    use crate::tests::trial;
    use crate::{Evidence, Settings};

    /// Heap of 100 MiB and a loop over 300 MiB, 16 times in 10 s; the first read stalls for 0.6 s.
    fn looping() -> Evidence {
        let point = |limit, refaults| DemandPoint { limit_bytes: limit * MIB, refault_bytes: refaults * MIB };
        let reference = Reference {
            wall_seconds: 10.0,
            stall_seconds: Some(0.6),
            peak_charge_bytes: Some(420 * MIB),
            floor_bytes: Some(100 * MIB),
            file_mapped_bytes: Some(7 * MIB),
            ..Reference::default()
        };
        Evidence {
            references: vec![reference.clone(), reference],
            demand: Some(FileDemand {
                distinct_bytes: 300 * MIB,
                points: vec![point(100, 4500), point(399, 4500), point(400, 0)],
                ..FileDemand::default()
            }),
            ..Evidence::default()
        }
    }

    #[test]
    fn a_refault_costs_as_much_as_a_first_read_until_measured() {
        let (settings, mut evidence) = (Settings::default(), looping());
        let at = |evidence: &Evidence, limit: u64| {
            predict(&Noise::of(&settings, evidence), limit * MIB).map(|r| (r * 100.0).round() / 100.0)
        };
        assert_eq!(at(&evidence, 250), Some(1.9));
        assert_eq!((at(&evidence, 400), at(&evidence, 420), at(&evidence, 9999)), (Some(1.0), Some(1.0), Some(1.0)));
        evidence.trials.push(trial(370, 32.5));
        assert_eq!(at(&evidence, 250), Some(3.25));
        evidence.trials[0] =
            Trial { lower_bound: true, stall_seconds: Some(2.0), refaults: Some(300 * MIB / 4096), ..trial(370, 3.0) };
        assert_eq!(at(&evidence, 250), Some(4.0), "the refaults before the stop show the price");
    }

    #[test]
    fn below_the_floor_and_without_a_curve_nothing_is_predicted() {
        let (settings, mut evidence) = (Settings::default(), looping());
        assert_eq!(predict(&Noise::of(&settings, &evidence), 90 * MIB), None);
        let swaps = Settings { has_slower_memory: true, ..settings.clone() };
        assert!(predict(&Noise::of(&swaps, &evidence), 90 * MIB).is_some());
        evidence.demand = None;
        assert_eq!(predict(&Noise::of(&settings, &evidence), 200 * MIB), None);
        assert_eq!(predict(&Noise::of(&settings, &evidence), 420 * MIB), Some(1.0));
    }

    #[test]
    fn scanned_mapped_pages_are_needed_as_the_curve_says() {
        let (settings, mut evidence) = (Settings::default(), looping());
        evidence.references.iter_mut().for_each(|r| r.mapped_in_use_bytes = Some(310 * MIB));
        assert_eq!(knee(&Noise::of(&settings, &evidence)), Some(410 * MIB));
        evidence.demand.iter_mut().for_each(|demand| demand.mapped_scanned_bytes = 300 * MIB);
        let found = knee(&Noise::of(&settings, &evidence)).unwrap();
        assert!(found > 399 * MIB && found < 400 * MIB, "{found}");
    }

    #[test]
    fn the_knee_is_where_refaults_stay_within_the_allowed_ones() {
        let (settings, mut evidence) = (Settings::default(), looping());
        // 0.5 s allow for 250 MiB of the 4500 MiB of refaults that the last mebibyte avoids.
        let found = knee(&Noise::of(&settings, &evidence)).unwrap();
        assert!(found > 399 * MIB && found < 400 * MIB, "{found}");
        evidence.references.iter_mut().for_each(|r| r.stall_seconds = None);
        assert_eq!(knee(&Noise::of(&settings, &evidence)), Some(400 * MIB), "of unknown price, none is allowed");
        evidence.demand = None;
        assert_eq!(knee(&Noise::of(&settings, &evidence)), Some(107 * MIB), "floor and mapped files");
    }

    /// `numpy.memmap`, five times through a file of 200 MiB: its curve is flat.
    #[test]
    fn mapped_data_counts_as_needed_until_a_trial_refutes_it() {
        let (settings, mut evidence) = (Settings::default(), looping());
        let flat = DemandPoint { limit_bytes: 100 * MIB, refault_bytes: 0 };
        evidence.demand = Some(FileDemand { distinct_bytes: 70 * MIB, points: vec![flat], ..FileDemand::default() });
        assert_eq!(knee(&Noise::of(&settings, &evidence)), Some(100 * MIB));
        evidence.references.iter_mut().for_each(|r| r.file_mapped_bytes = Some(203 * MIB));
        assert_eq!(knee(&Noise::of(&settings, &evidence)), Some(303 * MIB));
    }
}
