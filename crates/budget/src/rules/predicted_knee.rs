//! Tries the limit that is now predicted as the knee.

use model::Bytes;

use super::trial::{inside, on_grid_inside};
use crate::analysis::Analysis;
use crate::bracket::is_close;
use crate::grid::{GRID, above, below, on_grid};
use crate::predict::knee;
use crate::step::Step;
use crate::{MIB, round_up};

/// The factor above the unreclaimable memory that reclaim needs: it starts before a limit is quite full.
const FLOOR_SLACK: f64 = 1.03;

/// While the bracket is wide, unless an edge is so close to the predicted knee that a step from the edge is as good.
pub fn step(a: &Analysis) -> Option<Step> {
    let (limit, why) = predicted(a).filter(|(limit, _)| !is_close(&a.bracket) && inside(a, *limit))?;
    on_grid_inside(a, limit, why)
}

/// The predicted knee, unless an edge is so close to it that a step from there is as good.
fn predicted(a: &Analysis) -> Option<(u64, String)> {
    let knee = knee(a)?;
    // Below these values a job cannot run, so the limit must be slightly above; a curve may be off in both directions.
    let is_bound = a.writers_knee.is_some() || a.floor.is_some_and(|floor| (knee as f64) < floor as f64 * FLOOR_SLACK);
    let limit = if is_bound { round_up((knee as f64 * FLOOR_SLACK) as u64 + MIB) } else { round_up(knee) };
    // The next grid limit above: just below the knee, everything is lost.
    let limit =
        [limit, (limit as f64 * GRID.sqrt()) as u64].map(on_grid).into_iter().find(|l| *l >= limit).unwrap_or(limit);
    // One step below the passing edge also covers a knee just below that step.
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
