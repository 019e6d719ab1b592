//! Tries the limit at which the knee is predicted now.

use model::Bytes;

use super::trial::{inside, settled};
use crate::analysis::Analysis;
use crate::bracket::is_close;
use crate::grid::{GRID, above, below, on_grid};
use crate::predict::knee;
use crate::step::Step;
use crate::{MIB, round_up};

/// Above what cannot be reclaimed, for what reclaim needs to work: it starts before a limit is quite full.
const FLOOR_SLACK: f64 = 1.03;

/// While the bracket is wide, and unless what is known lies so close to the knee that a step from there is as good.
pub fn step(a: &Analysis) -> Option<Step> {
    let (limit, why) = guided(a).filter(|(limit, _)| !is_close(&a.bracket) && inside(a, *limit))?;
    settled(a, limit, why)
}

/// The knee as it is predicted now, unless what is known lies so close to it that the step from there is as good.
fn guided(a: &Analysis) -> Option<(u64, String)> {
    let knee = knee(a)?;
    // Below these a job cannot do at all, so it must be a little above; a curve may be off to either side.
    let is_bound = a.writers_knee.is_some() || a.floor.is_some_and(|floor| (knee as f64) < floor as f64 * FLOOR_SLACK);
    let limit = if is_bound { round_up((knee as f64 * FLOOR_SLACK) as u64 + MIB) } else { round_up(knee) };
    // The next of the grid above: just below the knee, all is lost.
    let limit =
        [limit, (limit as f64 * GRID.sqrt()) as u64].map(on_grid).into_iter().find(|l| *l >= limit).unwrap_or(limit);
    // One step below the passing edge covers a knee just below that step, too.
    let limit = a.bracket.pass.map(below).filter(|below| limit < *below && *below <= above(limit)).unwrap_or(limit);
    let is_new = a.bracket.failed.is_none_or(|fail| limit >= above(fail))
        && a.bracket.pass.is_none_or(|pass| limit <= below(pass));
    let what = if a.writers_knee.is_some() {
        "what it writes fits into the share of memory that may wait to be written"
    } else if a.evidence.demand.is_some() {
        "what cannot be reclaimed and the file pages used again fit just so"
    } else {
        "what cannot be reclaimed and the mapped files fit just so"
    };
    let why = if a.tried.is_empty() {
        format!("near {}, where {what}", Bytes(knee))
    } else {
        format!("the trials so far put the knee at {}", Bytes(knee))
    };
    is_new.then_some((limit, why))
}
