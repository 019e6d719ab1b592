//! Huge pages of running programs: their costs on this machine, names of memory ranges, and which regions to promote or
//! split.

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

pub use agent::{Agent, SCAN_SHARE, Settings, Stats};
pub use cost_lines::cost_lines;
pub use explain::of_stats;
pub use kept::Kept;
pub use names::{Named, Names};
pub use trial::{Trials, Tried};
pub use walks::walks;

/// The capabilities needed to scan another process's memory, as the end of a sentence.
pub const NEEDS: &str = "needs CAP_SYS_NICE, CAP_SYS_PTRACE, CAP_BPF and CAP_PERFMON";
