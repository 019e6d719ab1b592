//! Run time by limit, foretold from the file demand curve.

use model::{FileDemand, Outcome, Trial};

use crate::{MIB, Seen, Settings};

/// Anonymous and kernel memory sampled at its peak is at most this much above what the job can do with: charges are
/// batched per processor, and caches inside the kernel give way.
const FLOOR_SLACK: f64 = 0.97;

/// Too few bytes read again to say what one costs.
pub const TELLING_BYTES: u64 = 4 * MIB;

/// Predicted run time at a limit over the reference's. `None`: the job would be killed there, or nothing is known to
/// tell from.
pub fn predict(settings: &Settings, seen: &Seen, limit_bytes: u64) -> Option<f64> {
    if too_little(settings, seen).is_some_and(|floor| limit_bytes < floor) {
        return None;
    }
    if seen.peak_charge_bytes().is_some_and(|peak| limit_bytes >= peak) {
        return Some(1.0);
    }
    match seen.demand.as_ref()?.refault_bytes_at(limit_bytes)? {
        0 => Some(1.0),
        bytes => Some(1.0 + bytes as f64 * seconds_per_byte(settings, seen)? / seen.reference()?.median),
    }
}

/// The limit below which the job is killed, from the floor; nothing is known where it may swap.
pub fn too_little(settings: &Settings, seen: &Seen) -> Option<u64> {
    let floor = seen.floor_bytes().filter(|_| !settings.swap_allowed)?;
    Some((floor as f64 * FLOOR_SLACK) as u64)
}

/// The smallest limit predicted to keep within the slow-down. Where nothing tells what a refault costs, any is too much;
/// where no references to the page cache were seen, files that are mapped are taken to be needed and others not.
pub fn knee(settings: &Settings, seen: &Seen) -> Option<u64> {
    let floor = seen.floor_bytes();
    let Some(demand) = &seen.demand else {
        let mapped = seen.references.iter().filter_map(|r| r.file_mapped_bytes).max().unwrap_or(0);
        return Some(floor? + mapped);
    };
    let allowed = seconds_per_byte(settings, seen)
        .zip(seen.reference())
        .map_or(0.0, |(price, reference)| settings.slowdown * reference.median / price);
    let limit = smallest_limit(demand, allowed)?;
    let limit = limit.max(floor.unwrap_or(0));
    Some(seen.peak_charge_bytes().map_or(limit, |peak| limit.min(peak)))
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
fn seconds_per_byte(settings: &Settings, seen: &Seen) -> Option<f64> {
    let mut prices: Vec<f64> = seen.trials.iter().filter_map(|trial| price_in(settings, seen, trial)).collect();
    prices.sort_by(f64::total_cmp);
    prices.get(prices.len() / 2).copied().or_else(|| first_reading(seen))
}

fn price_in(settings: &Settings, seen: &Seen, trial: &Trial) -> Option<f64> {
    if !matches!(trial.outcome, Outcome::Ok | Outcome::TooSlow) {
        return None;
    }
    // Stopped early, it tells only the price of what it did read again; at its end, that of what was foretold.
    let (seconds, bytes) = if trial.lower_bound {
        (trial.stall_seconds?, trial.refaults? * settings.page_bytes)
    } else {
        let extra = trial.wall_seconds - seen.reference()?.median;
        (extra, seen.demand.as_ref()?.refault_bytes_at(trial.limit_bytes?)?)
    };
    (bytes >= TELLING_BYTES && seconds > 0.0).then(|| seconds / bytes as f64)
}

fn first_reading(seen: &Seen) -> Option<f64> {
    let demand = seen.demand.as_ref()?;
    let foreign: u64 = demand.foreign.iter().map(|f| f.cached_bytes).sum();
    let read = demand.distinct_bytes.saturating_sub(demand.written_only_bytes).saturating_sub(foreign);
    let mut stalls: Vec<f64> = seen.references.iter().filter_map(|r| r.stall_seconds).collect();
    stalls.sort_by(f64::total_cmp);
    let stall = *stalls.get(stalls.len() / 2)?;
    (read >= TELLING_BYTES && stall > 0.0).then(|| stall / read as f64)
}
