//! Signals of phase changes while tracking is off.
//!
//! Hardware events where the processor counts them. Otherwise the accessed share of the small sample, and resident plus
//! newly faulted memory: a few faults of a large program are no change, many are.

use std::collections::BTreeMap;

use linux::perf::{self, Counter, Event};
use linux::procfs;
use model::Signal;

use super::page_bytes;
use super::small_sample::SAMPLE_PAGES;

/// Pages of the small sample that may differ from the mean by chance: two standard errors where a twelfth is accessed,
/// as in programs with much memory.
const SHARE_BY_CHANCE: f64 = 4.0 / SAMPLE_PAGES as f64;

const MEMORY_UNIT: f64 = (1 << 20) as f64;

/// Sources of the signals.
#[derive(Debug)]
pub struct Signals {
    hardware: Vec<Hardware>,
    /// Minor faults so far, by process.
    faults: BTreeMap<i32, u64>,
}

/// One event, counted over all processes.
#[derive(Debug)]
struct Hardware {
    event: Event,
    counters: Vec<Counter>,
    before: u64,
}

impl Signals {
    /// Signals of these processes and all that they will start.
    pub fn of(members: &BTreeMap<i32, u64>) -> Signals {
        let counting = |event| {
            let counters: Vec<_> = members.keys().filter_map(|pid| Counter::of(*pid, event).ok()).collect();
            (!counters.is_empty()).then_some(Hardware { event, counters, before: 0 })
        };
        let hardware = perf::available().unwrap_or_default().into_iter().filter_map(counting).collect();
        let mut signals = Signals { hardware, faults: BTreeMap::new() };
        signals.resident_and_faulted(members);
        signals
    }

    /// Values since the last call. `accessed`: the accessed share of the small sample, if known.
    pub fn sample(&mut self, members: &BTreeMap<i32, u64>, accessed: Option<f64>) -> Vec<Signal> {
        if !self.hardware.is_empty() {
            return self.hardware.iter_mut().map(Hardware::sample).collect();
        }
        let accessed = accessed.map(|value| Signal {
            name: format!("accessed share of {SAMPLE_PAGES} pages"),
            value,
            unit: SHARE_BY_CHANCE,
        });
        let bytes = self.resident_and_faulted(members) as f64;
        let memory = Signal { name: "resident and newly faulted bytes".into(), value: bytes, unit: MEMORY_UNIT };
        accessed.into_iter().chain([memory]).collect()
    }

    fn resident_and_faulted(&mut self, members: &BTreeMap<i32, u64>) -> u64 {
        let stats: Vec<_> = members.keys().filter_map(|pid| procfs::stat(*pid).ok()).collect();
        let before = std::mem::take(&mut self.faults);
        self.faults = stats.iter().map(|stat| (stat.pid, stat.minflt)).collect();
        let new = |stat: &procfs::Stat| stat.minflt.saturating_sub(before.get(&stat.pid).copied().unwrap_or(0));
        stats.iter().map(|stat| stat.rss_pages + new(stat)).sum::<u64>() * page_bytes()
    }
}

impl Hardware {
    fn sample(&mut self) -> Signal {
        let now = self.counters.iter_mut().map(Counter::read).sum();
        let before = std::mem::replace(&mut self.before, now);
        Signal { name: self.event.name().into(), value: now.saturating_sub(before) as f64, unit: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_memory_counts_as_resident_and_faulted() {
        let own = BTreeMap::from([(std::process::id() as i32, 0)]);
        let mut signals = Signals { hardware: Vec::new(), faults: BTreeMap::new() };
        signals.sample(&own, None);
        let before = signals.sample(&own, Some(0.5));
        let memory = vec![1u8; 64 << 20];
        let after = signals.sample(&own, None);
        std::hint::black_box(memory);
        assert_eq!((before[0].name.as_str(), before[0].value), ("accessed share of 64 pages", 0.5));
        // Once as resident, once as new, unless huge pages made the faults few.
        assert!(after[0].value - before[1].value > (60 << 20) as f64, "{before:?} {after:?}");
    }
}
