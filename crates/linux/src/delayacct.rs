//! Delay accounting: the time that tasks wait for block I/O (Documentation/accounting/delay-accounting.rst). Off by default since Linux
//! 5.14, because it costs a clock read per switch; tasks count only delays while it is on.

use std::path::Path;

use crate::journal::{Guard, Journal};
use crate::{Error, file};

const SYSCTL: &str = "kernel.task_delayacct";

/// Enables it until the guard, and that of every other bursar that enabled it, is dropped. `None`: it was on already, or this kernel always
/// counts (before 5.14).
///
/// # Errors
/// [`Error::Write`] without root.
pub fn enable(journal: &Journal) -> Result<Option<Guard>, Error> {
    if !Path::new("/proc/sys/kernel/task_delayacct").exists() {
        return Ok(None);
    }
    journal.sysctl_unless_set(SYSCTL, "1")
}

/// Whether tasks' block I/O delay is counted now; `None` if this kernel has no switch (before 5.14 it is counted unless the kernel was
/// started with `nodelayacct`, or built without it).
pub fn is_on() -> Option<bool> {
    file::number(Path::new("/proc/sys/kernel/task_delayacct")).map(|value| value != 0)
}
