//! DAMON, the kernel's data access monitor (Documentation/admin-guide/mm/damon/usage.rst).

mod reclaim;
mod watch;

pub use reclaim::pages_out;
pub use watch::{Error, INTERVAL, Watch, available};
pub(crate) use watch::{end, is_marked};
