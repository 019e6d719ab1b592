//! Runs of a command compared by their memory: what each figure is of a run, how many more runs are needed, and what is missing.

mod figures;
mod judge;
mod missing;

pub use figures::Figure;
pub use judge::{Checked, Judge, Unknown, values};
pub use missing::{missing_at_most, undecided};
