//! The grid of limits, and steps from a known limit.

use crate::bracket::CLOSE;
use crate::{MIB, round_down, round_up};

/// The ratio of two neighbouring limits that the search tries: at most [`CLOSE`].
pub const GRID: f64 = 1.08;

/// The nearest limit of the grid. The grid's steps are a fixed ratio from a mebibyte on, so that two searches of one
/// program, whatever their references happened to be, end at the same limit or at its neighbour.
pub fn on_grid(limit: u64) -> u64 {
    let steps = (limit as f64 / MIB as f64).max(1.0).ln() / GRID.ln();
    round_up((MIB as f64 * GRID.powf(steps.round())) as u64)
}

/// The limit below one that passed, and the one above one that failed, that leave the bracket just [`CLOSE`].
pub fn below(pass: u64) -> u64 {
    round_up((pass as f64 / CLOSE) as u64).min(pass.saturating_sub(MIB))
}

pub fn above(fail: u64) -> u64 {
    round_down((fail as f64 * CLOSE) as u64).max(round_up(fail + 1))
}
