//! Huge pages of running programs: what they cost here, what memory is called, which regions become huge pages and which none any more.

pub mod advised;
mod agent;
mod choose;
mod cost_lines;
pub mod costs;
mod explain;
mod kept;
mod names;
pub mod profiling;
mod trial;
mod walks;

pub use agent::{Agent, LOOKING, Settings, Stats};
pub use cost_lines::cost_lines;
pub use explain::of_stats;
pub use kept::Kept;
pub use names::{Named, Names};
pub use trial::{Trials, Tried};
pub use walks::walks;

/// What looking at another process's memory takes, as the end of a sentence.
pub const NEEDS: &str = "needs CAP_SYS_NICE, CAP_SYS_PTRACE, CAP_BPF and CAP_PERFMON";
