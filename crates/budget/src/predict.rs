//! Run time by limit, foretold from the file demand curve.

use model::{FileDemand, Outcome, Trial};

use crate::clock::ratio;
use crate::facts::TELLING_BYTES;
use crate::noise::Noise;
use crate::{MIB, Reference};

/// Programs and their libraries map less than this.
const MUCH_MAPPED_BYTES: u64 = 48 * MIB;

/// Reading a byte again costs at least this, whatever the first reading seemed to: a page is allocated, filled, mapped
/// into the cache and reclaimed at about 2 GiB/s where the storage is no hindrance. A first reading ahead of the program
/// hides that; one that must also be reclaimed does not. In seconds per byte.
pub const LEAST_PRICE: f64 = 1.0 / (2u64 << 30) as f64;

/// Predicted run time at a limit over the reference's. `None`: the job would be killed there, or nothing is known to
/// tell from.
pub fn predict(a: &Noise, limit_bytes: u64) -> Option<f64> {
    if a.too_little.is_some_and(|floor| limit_bytes < floor) {
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

/// The smallest limit predicted to keep within the slow-down. Where nothing tells what a refault costs, any is too much;
/// where no references to the page cache were seen, files that are mapped are taken to be needed and others not.
pub fn knee(a: &Noise) -> Option<u64> {
    a.writers_knee.or_else(|| readers_knee(a)).filter(|_| !a.settings.sizes_itself)
}

/// What cannot be reclaimed and the mapped file pages in use. Of pages that were not scanned the curve knows only when they were first
/// touched: below this, more may be read again than it says. Of data that a job maps, the kernel's lists tell little of what is in use:
/// it is taken to be all.
fn mapped_floor(a: &Noise) -> Option<u64> {
    let most = |of: fn(&Reference) -> Option<u64>| a.evidence.references.iter().filter_map(of).max().unwrap_or(0);
    let data = Some(most(|r| r.file_mapped_bytes)).filter(|mapped| *mapped >= MUCH_MAPPED_BYTES);
    let in_use = data.unwrap_or(0).max(most(|r| r.mapped_in_use_bytes));
    let floor = a.floor?;
    Some(floor + in_use.saturating_sub(well_scanned(a, floor)))
}

/// Mapped bytes whose references the curve knows. A run that was short for its scans shows only a part of what was read again: the curve is
/// believed where it shows that all was, at least once, or next to nothing.
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

/// The smallest limit with no more than `allowed` bytes read again.
fn smallest_limit(demand: &FileDemand, allowed: f64) -> Option<u64> {
    let last_above = demand.points.iter().rposition(|p| p.refault_bytes as f64 > allowed);
    let Some(above) = last_above else { return demand.points.first().map(|p| p.limit_bytes) };
    let (left, right) = (demand.points[above], demand.points.get(above + 1)?);
    let fall = (left.refault_bytes - right.refault_bytes) as f64;
    let share = (left.refault_bytes as f64 - allowed) / fall;
    Some(left.limit_bytes + ((right.limit_bytes - left.limit_bytes) as f64 * share).ceil() as u64)
}

/// What reading a byte again costs: measured in the trials that showed it (the median), else what the first reading of a
/// byte cost the reference.
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
    // Stopped early, it tells only the price of what it did read again; at its end, that of what was foretold, or of what was
    // read again where that is more: a price of the little that a curve foretold would make the curve's whole rest dear.
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
    // Much was read again and took next to no time: even what chance may have hidden makes it cheaper than a first reading.
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

    /// Heap of 100 MiB and a loop over 300 MiB, 16 times in 10 s; the first reading stalls for 0.6 s.
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
    fn a_refault_costs_what_the_first_reading_did_until_a_trial_tells_better() {
        let (settings, mut seen) = (Settings::default(), looping());
        let at = |seen: &Evidence, limit: u64| {
            predict(&Noise::of(&settings, seen), limit * MIB).map(|r| (r * 100.0).round() / 100.0)
        };
        assert_eq!(at(&seen, 250), Some(1.9));
        assert_eq!((at(&seen, 400), at(&seen, 420), at(&seen, 9999)), (Some(1.0), Some(1.0), Some(1.0)));
        seen.trials.push(trial(370, 32.5));
        assert_eq!(at(&seen, 250), Some(3.25));
        seen.trials[0] =
            Trial { lower_bound: true, stall_seconds: Some(2.0), refaults: Some(300 * MIB / 4096), ..trial(370, 3.0) };
        assert_eq!(at(&seen, 250), Some(4.0), "what it read again before it was stopped tells the price");
    }

    #[test]
    fn below_the_floor_and_without_a_curve_nothing_is_predicted() {
        let (settings, mut seen) = (Settings::default(), looping());
        assert_eq!(predict(&Noise::of(&settings, &seen), 90 * MIB), None);
        let swaps = Settings { has_slower_memory: true, ..settings.clone() };
        assert!(predict(&Noise::of(&swaps, &seen), 90 * MIB).is_some());
        seen.demand = None;
        assert_eq!(predict(&Noise::of(&settings, &seen), 200 * MIB), None);
        assert_eq!(predict(&Noise::of(&settings, &seen), 420 * MIB), Some(1.0));
    }

    #[test]
    fn mapped_pages_that_were_scanned_are_needed_as_far_as_the_curve_says() {
        let (settings, mut seen) = (Settings::default(), looping());
        seen.references.iter_mut().for_each(|r| r.mapped_in_use_bytes = Some(310 * MIB));
        assert_eq!(knee(&Noise::of(&settings, &seen)), Some(410 * MIB));
        seen.demand.iter_mut().for_each(|demand| demand.mapped_scanned_bytes = 300 * MIB);
        let found = knee(&Noise::of(&settings, &seen)).unwrap();
        assert!(found > 399 * MIB && found < 400 * MIB, "{found}");
    }

    #[test]
    fn the_knee_is_where_the_refaults_allowed_are_not_exceeded() {
        let (settings, mut seen) = (Settings::default(), looping());
        // 0.5 s buy 250 MiB of the 4500 that the last mebibyte saves.
        let found = knee(&Noise::of(&settings, &seen)).unwrap();
        assert!(found > 399 * MIB && found < 400 * MIB, "{found}");
        seen.references.iter_mut().for_each(|r| r.stall_seconds = None);
        assert_eq!(knee(&Noise::of(&settings, &seen)), Some(400 * MIB), "of unknown price, none is allowed");
        seen.demand = None;
        assert_eq!(knee(&Noise::of(&settings, &seen)), Some(107 * MIB), "floor and mapped files");
    }

    /// `numpy.memmap`, five times through a file of 200 MiB: its curve is flat.
    #[test]
    fn data_that_is_mapped_is_taken_to_be_needed_until_a_trial_shows_that_it_is_not() {
        let (settings, mut seen) = (Settings::default(), looping());
        let flat = DemandPoint { limit_bytes: 100 * MIB, refault_bytes: 0 };
        seen.demand = Some(FileDemand { distinct_bytes: 70 * MIB, points: vec![flat], ..FileDemand::default() });
        assert_eq!(knee(&Noise::of(&settings, &seen)), Some(100 * MIB));
        seen.references.iter_mut().for_each(|r| r.file_mapped_bytes = Some(203 * MIB));
        assert_eq!(knee(&Noise::of(&settings, &seen)), Some(303 * MIB));
    }
}
