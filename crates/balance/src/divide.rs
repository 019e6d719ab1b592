//! The best division of memory.

use crate::Demand;

/// What one program wants.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// How much what it loses counts.
    pub weight: f64,
    /// It gets at least so much.
    pub least: u64,
    /// It gets at most so much, unless that is below the least.
    pub most: u64,
    /// What it loses with how much.
    pub demand: &'a Demand,
}

/// Divides a total into shares of whole units, so that the weighted sum of what all lose is the least that such shares can have; `None` if
/// the total is less than the least of all. Curves need not be convex. What nobody gains from goes to all by weight, up to their most; what
/// they may not take stays.
///
/// Dynamic programming over units: O(n * u^2) time and O(n * u) memory for n programs and u = `total / unit`.
pub fn divide(total: u64, unit: u64, wants: &[Want<'_>]) -> Option<Vec<u64>> {
    let unit = unit.max(1);
    let units = (total / unit) as usize;
    let bounds: Vec<(usize, usize)> = wants.iter().map(|want| bounds(want, unit, units)).collect();
    // best[u]: the least loss of those so far with u units; shares[i][u]: what the i-th has of them then.
    let mut best: Vec<f64> = vec![0.0; units + 1];
    let mut shares = Vec::with_capacity(wants.len());
    for (want, (least, most)) in wants.iter().zip(&bounds) {
        let lost: Vec<f64> =
            (*least..=*most).map(|own| want.weight * want.demand.lost_with(own as u64 * unit)).collect();
        let mut with = vec![f64::INFINITY; units + 1];
        let mut share = vec![0usize; units + 1];
        for all in *least..=units {
            for (own, lost) in (*least..=all).zip(&lost) {
                let sum = best[all - own] + lost;
                if sum < with[all] {
                    (with[all], share[all]) = (sum, own);
                }
            }
        }
        best = with;
        shares.push(share);
    }
    if best[units].is_infinite() {
        return None;
    }
    let mut left = best.iter().position(|lost| *lost <= best[units]).unwrap_or(units);
    let mut free = units - left;
    let mut given = vec![0; wants.len()];
    for (given, share) in given.iter_mut().zip(&shares).rev() {
        *given = share[left];
        left -= *given;
    }
    let mut extra = vec![0usize; wants.len()];
    while free > 0 {
        let takes = (0..wants.len()).filter(|at| given[*at] + extra[*at] < bounds[*at].1 && wants[*at].weight > 0.0);
        let has = |at: &usize| extra[*at] as f64 / wants[*at].weight;
        let Some(at) = takes.min_by(|one, other| has(one).total_cmp(&has(other))) else { break };
        extra[at] += 1;
        free -= 1;
    }
    Some(given.iter().zip(&extra).map(|(given, extra)| (given + extra) as u64 * unit).collect())
}

/// In units: the least is rounded up, the most down but not below it.
fn bounds(want: &Want<'_>, unit: u64, units: usize) -> (usize, usize) {
    let least = want.least.div_ceil(unit) as usize;
    let most = (want.most / unit).min(units as u64) as usize;
    (least, most.max(least))
}
