//! Output while something goes on: a status line on a terminal while runs are made, and the intervals of `bursar watch`
//! in a view, as lines and as JSON.

mod display;
mod json_lines;
mod options;
mod outputs;
mod replay;
mod view;
mod watch;

pub use display::Display;
pub use json_lines::JsonLines;
pub use options::Options;
pub use replay::{checked, replay, write_json};
pub use watch::watch;
