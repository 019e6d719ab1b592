//! A job's accounts as series: its cgroup, its processes, the machine, and what looking at them costs.

mod exits;
mod lines;
mod moves;
mod own;
mod pace;
mod processes;
mod sampler;

pub use exits::ExitRecords;
pub use lines::{NewSeries, Row};
pub use sampler::{IoWait, Options, Sampled, Sampler, Scope};
