//! The grid of limits, and steps from a known limit.

use crate::bracket::CLOSE;
use crate::{MIB, round_down, round_up};

/// The ratio of two neighbouring limits that the search tries: at most [`CLOSE`].
pub const GRID: f64 = 1.08;

/// The nearest limit of the grid. Its steps are a fixed ratio starting at a mebibyte, so that two searches of one program end at the same
/// or at neighbouring limits, whatever their references were.
pub fn on_grid(limit: u64) -> u64 {
    let steps = (limit as f64 / MIB as f64).max(1.0).ln() / GRID.ln();
    round_up((MIB as f64 * GRID.powf(steps.round())) as u64)
}

/// The limit below a passing one, and the one above a failing one, that make the bracket just [`CLOSE`].
pub fn below(pass: u64) -> u64 {
    round_up((pass as f64 / CLOSE) as u64).min(pass.saturating_sub(MIB))
}

pub fn above(fail: u64) -> u64 {
    round_down((fail as f64 * CLOSE) as u64).max(round_up(fail + 1))
}
