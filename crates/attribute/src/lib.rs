//! From the logs that the in-process runtime leaves (`preload/abi.h`) to who held the memory. Pure: frames and logs in, figures out.
//!
//! [`Reader`] understands the log of one process, [`attribute`] brings the processes of a run together.

mod comm;
mod forked;
mod group;
mod identify;
mod init;
mod kernel;
mod log;
mod memory;
mod merge;
mod notes;
mod patterns;
mod peaks;
mod phases;
mod replay;
mod timelines;

pub use identify::{Here, identify};
pub use kernel::{Gap, KernelPeak, Unseen, add_kernel_peaks};
pub use log::{Calls, End, Function, Held, LogError, Mark, Object, Owner, ProcessLog, Reader, Started, Totals};
pub use merge::{Attributed, Options, attribute};
pub use patterns::unmatched;
