//! Reports for a terminal, and for whoever pipes one into a file.

mod arms;
mod attribution;
mod budget;
mod diff;
mod faults;
mod jobs;
mod phases;
mod run;
pub mod short;
mod table;
mod tasks;
#[cfg(test)]
mod tests;
mod trace;
mod watch;

pub use arms::arms;
pub use attribution::attribution;
pub use budget::budget;
pub use diff::diff;
pub use faults::{faults, short_faults};
pub use jobs::jobs;
pub use phases::phases;
pub use run::run;
pub use table::paragraph;
pub use tasks::tasks;
pub use trace::trace;
pub use watch::watch;

/// How a report is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns to keep within; 40 at least.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub color: bool,
}
