//! Pressure stall information (Documentation/accounting/psi.rst): time in which tasks were stalled.

use std::path::Path;

use crate::file;

/// Total seconds since boot, or since the cgroup was created.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Psi {
    /// Some task stalled on memory.
    pub memory_some_seconds: Option<f64>,
    /// All tasks stalled on memory.
    pub memory_full_seconds: Option<f64>,
    /// Some task stalled on I/O.
    pub io_some_seconds: Option<f64>,
    /// All tasks stalled on I/O.
    pub io_full_seconds: Option<f64>,
}

/// The whole machine's; `None` if the kernel has none or it is disabled (`psi=0`).
pub fn system() -> Option<Psi> {
    read(Path::new("/proc/pressure/memory"), Path::new("/proc/pressure/io"))
}

pub(crate) fn read(memory: &Path, io: &Path) -> Option<Psi> {
    let (memory, io) = (file::read_if_present(memory), file::read_if_present(io));
    let total = |text: &Option<String>, line: &str| total_seconds(text.as_deref()?, line);
    let psi = Psi {
        memory_some_seconds: total(&memory, "some"),
        memory_full_seconds: total(&memory, "full"),
        io_some_seconds: total(&io, "some"),
        io_full_seconds: total(&io, "full"),
    };
    (psi != Psi::default()).then_some(psi)
}

fn total_seconds(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let microseconds: u64 = line.split(' ').find_map(|field| field.strip_prefix("total="))?.parse().ok()?;
    Some(microseconds as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_microseconds() {
        let text = "some avg10=1.53 avg60=0.87 avg300=0.17 total=1217234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n";
        assert_eq!(total_seconds(text, "some"), Some(1.217234));
        assert_eq!(total_seconds(text, "full"), Some(0.5));
        assert_eq!(total_seconds("some avg10=0.00 total=", "some"), None);
    }
}
