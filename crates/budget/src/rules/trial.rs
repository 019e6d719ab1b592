//! A run under a limit, as a step of the search.

use crate::analysis::Analysis;
use crate::grid::on_grid;
use crate::judge::give_up_after;
use crate::predict::predict;
use crate::round_up;
use crate::step::Step;

/// The step at exactly this limit.
pub fn trial(a: &Analysis, limit_bytes: u64, why: String) -> Step {
    Step::Trial {
        limit_bytes,
        give_up_after_seconds: give_up_after(a, None),
        predicted_ratio: predict(a, limit_bytes),
        why,
    }
}

/// Whether a limit lies within the bracket.
pub fn inside(a: &Analysis, limit: u64) -> bool {
    a.bracket.fail.is_none_or(|fail| limit > fail) && a.bracket.pass.is_none_or(|pass| limit < pass)
}

/// The step at the nearest grid limit, if that lies within the bracket.
pub fn on_grid_inside(a: &Analysis, limit: u64, why: String) -> Option<Step> {
    // Rounding may yield an edge; the bracket is wider than a mebibyte, so there is a limit between.
    let beside_edge = round_up(a.bracket.fail.unwrap_or(0) + 1);
    let limit = [on_grid(limit), limit, beside_edge].into_iter().find(|limit| inside(a, *limit))?;
    Some(trial(a, limit, why))
}
