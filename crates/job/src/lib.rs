//! A command as a job: started from a small stub, waited for, signalled and stopped as a whole.
//!
//! A job starts in two steps, so that everything is in place before its first instruction: [`Prepared::new`] starts the
//! stub, whose PID can be put into a cgroup and given to trackers; [`Prepared::go`] lets it become the command.

mod error;
mod missing;
pub mod preload;
mod prepared;
mod running;
mod signals;
mod stub;

pub use error::Error;
pub use linux::wait::Ended;
pub use prepared::{Command, Output, Prepared};
pub use running::Running;
pub use signals::{Forwarding, end_like};
