//! `bursar check`: whether a command needs more than a maximum, or more than it did before, by as many runs as the spread asks for.

mod comparison;
mod options;
mod runs;

pub use options::Options;
pub use runs::{Ended, check};
