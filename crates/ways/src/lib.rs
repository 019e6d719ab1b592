//! `bursar advise try`: a command in each way of having huge pages, interleaved, and which of them is the fastest.

mod comparison;
mod options;
mod program;
mod settings;
mod way;

pub use comparison::{Compared, compare};
pub use options::Options;
pub use way::Way;
