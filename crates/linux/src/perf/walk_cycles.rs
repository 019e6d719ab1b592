//! Cycles in which a processor walks page tables for loads and stores.
//!
//! perf has no name of its own for these events; their numbers are Intel's (perfmon, and the kernel's `tools/perf/pmu-events`):
//! `DTLB_LOAD_MISSES.WALK_ACTIVE` and `DTLB_STORE_MISSES.WALK_ACTIVE`. AMD's processors count no such cycles.

use std::fs::File;

use libbpf_sys::{PERF_COUNT_HW_CPU_CYCLES, PERF_TYPE_HARDWARE, PERF_TYPE_RAW};

use super::{Begin, Mode, open, read};
use crate::procfs;

/// Cycles with at least one walk in progress: the unit mask, and a counter mask of 1, which counts cycles instead of walks.
const WALK_ACTIVE: u64 = 0x10 << 8 | 1 << 24;

/// Counts a process's cycles in user space, including later children, and those with a walk in progress.
#[derive(Debug)]
pub struct WalkCycles {
    all: Vec<File>,
    walking: Vec<File>,
}

impl WalkCycles {
    /// For all current threads of a process; `None` if the processor does not count them, or is unknown.
    pub fn of(pid: i32) -> Option<WalkCycles> {
        let events = events(&std::fs::read_to_string("/proc/cpuinfo").ok()?)?;
        let tasks = procfs::tasks(pid).ok()?;
        let counting = |kind: u32, config: u64| {
            let counters = tasks.iter().map(|task| open(*task, kind, config, Mode::User, Begin::Now));
            counters.collect::<Result<Vec<_>, _>>().ok().filter(|counters| !counters.is_empty())
        };
        let all = counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES.into())?;
        let mut walking = Vec::new();
        for event in events {
            walking.extend(counting(PERF_TYPE_RAW, event | WALK_ACTIVE)?);
        }
        Some(WalkCycles { all, walking })
    }

    /// The share of cycles so far with a walk in progress; `None`: none was counted, for example because a virtual machine's counters do
    /// not advance.
    pub fn share(&mut self) -> Option<f64> {
        let sum = |counters: &mut Vec<File>| counters.iter_mut().map(read).sum::<u64>();
        let (all, walking) = (sum(&mut self.all), sum(&mut self.walking));
        (all > 0).then(|| (walking as f64 / all as f64).min(1.0))
    }
}

/// The events of loads and of stores, for a processor described by `/proc/cpuinfo`.
fn events(cpuinfo: &str) -> Option<[u64; 2]> {
    let value = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split(':').nth(1).map(str::trim)
    };
    if value("vendor_id")? != "GenuineIntel" || value("cpu family")? != "6" {
        return None;
    }
    match value("model")?.parse().ok()? {
        // Skylake to Ice Lake, Tiger Lake and Rocket Lake.
        0x4e | 0x55 | 0x5e | 0x66 | 0x6a | 0x6c | 0x7d | 0x7e | 0x8c | 0x8d | 0x8e | 0x9e | 0xa5 | 0xa6 | 0xa7 => {
            Some([0x08, 0x49])
        }
        // Sapphire, Emerald and Granite Rapids, Alder Lake, Raptor Lake.
        0x8f | 0x97 | 0x9a | 0xad | 0xae | 0xb7 | 0xba | 0xbf | 0xcf => Some([0x12, 0x13]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpuinfo(vendor: &str, family: u32, model: u32) -> String {
        format!(
            "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: One\n"
        )
    }

    #[test]
    fn events_depend_on_the_processor_model() {
        assert_eq!(events(&cpuinfo("GenuineIntel", 6, 85)), Some([0x08, 0x49]));
        assert_eq!(events(&cpuinfo("GenuineIntel", 6, 143)), Some([0x12, 0x13]));
        assert_eq!(events(&cpuinfo("GenuineIntel", 6, 15)), None, "older");
        assert_eq!(events(&cpuinfo("AuthenticAMD", 6, 85)), None);
        assert_eq!(events(""), None);
    }

    #[test]
    fn without_counted_cycles_the_share_is_unknown() {
        let share = WalkCycles::of(std::process::id() as i32).and_then(|mut walks| walks.share());
        assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "{share:?}");
        assert!(WalkCycles::of(i32::MAX).is_none());
    }
}
