//! Reports for a terminal, and for whoever pipes one into a file.

mod budget;
mod run;
mod table;
#[cfg(test)]
mod tests;
mod trace;

pub use budget::budget;
pub use run::run;
pub use trace::trace;

/// How a report is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns to keep within; 40 at least.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub color: bool,
}
