//! Tries a limit between the edges of the bracket.

use model::Bytes;

use super::trial::on_grid_inside;
use crate::analysis::Analysis;
use crate::bracket::{CLOSE, is_close};
use crate::grid::{GRID, above, below};
use crate::step::Step;
use crate::{MIB, round_down, round_up};

/// While the bracket is wide.
pub fn step(a: &Analysis) -> Option<Step> {
    let (limit, why) = between_edges(a).filter(|_| !is_close(&a.bracket))?;
    on_grid_inside(a, limit, why)
}

/// A limit between the edges: near the one that a curve predicted, in case it was only slightly off; else halfway.
fn between_edges(a: &Analysis) -> Option<(u64, String)> {
    let passes = a.tried.iter().filter(|t| t.passed).count();
    let fails = a.tried.len() - passes;
    // The steps grow, up to fourfold. Without a nearly right curve, the first miss does not show its distance. With slower memory, no edge
    // is predicted.
    let ahead = usize::from(a.settings.has_slower_memory) + 3 * usize::from(a.settings.sizes_itself);
    let stride = |times: usize| CLOSE.powi([1, 3, 12][(times + ahead).clamp(1, 3) - 1]);
    let down = |pass: u64| below(pass).min(round_up((pass as f64 / stride(passes)) as u64));
    let up = |fail: u64| above(fail).max(round_down((fail as f64 * stride(fails)) as u64));
    let middle = |fail: u64, pass: u64| round_up((fail as f64 * pass as f64).sqrt() as u64);
    let trusts_curve = a.evidence.demand.is_some();
    // There is a cost already: the knee is near.
    let is_slope = |pass: u64| a.tried.iter().any(|t| t.limit == pass && t.costs);
    let limit = match (a.bracket.failed, a.bracket.passed, a.bracket.fail, a.bracket.pass) {
        (Some(fail), Some(passed), _, pass) => {
            let pass = pass.unwrap_or(passed);
            if is_slope(pass) {
                middle(fail, pass).max((pass as f64 / GRID.powi(2)) as u64)
            } else {
                middle(fail, pass)
            }
        }
        (Some(fail), None, _, Some(peak)) if trusts_curve => up(fail).min(middle(fail, peak)),
        (Some(fail), None, _, Some(peak)) => middle(fail, peak),
        (Some(fail), None, _, None) => up(fail),
        (None, _, _, Some(pass)) if is_slope(pass) => below(pass),
        (None, _, floor, Some(pass)) => floor.map_or(down(pass), |floor| down(pass).max(middle(floor, pass))),
        (None, _, Some(floor), None) => up(floor),
        (None, _, None, None) => return None,
    };
    let why = match (a.bracket.fail, a.bracket.pass) {
        (Some(fail), Some(pass)) if a.bracket.failed.is_some() => {
            format!("between {}, which failed, and {}, which is enough", Bytes(fail), Bytes(pass))
        }
        (_, Some(pass)) => format!("{} is enough: is less?", Bytes(pass)),
        _ => "the last limit was too little: is more enough?".to_string(),
    };
    Some((limit.max(MIB), why))
}
