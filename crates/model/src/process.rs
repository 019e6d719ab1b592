//! Processes and what is known of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which process, for good: a PID is used again, a PID with its start time is not (within one boot, which the record's
/// [`crate::Header`] names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Process id (thread group id).
    pub pid: i32,
    /// Start time in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
}

/// By which number a process knows itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnPid {
    /// In its own PID namespace.
    pub pid: i32,
    /// That namespace; `None`: not known.
    pub namespace: Option<u32>,
}

/// What a process had in memory, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Resident {
    /// Anonymous memory.
    pub heap_bytes: u64,
    /// All that was resident.
    pub all_bytes: u64,
    /// Whether the rest may be shared memory. Otherwise it is mapped files.
    pub may_share: bool,
    /// The most anonymous memory, perhaps at another time.
    pub most_heap_bytes: u64,
    /// Of that what it had from its parent, when it was forked: it may share it with others.
    pub inherited_bytes: u64,
    /// What of that it cannot have copied, by its page faults. Records of older versions do not tell.
    #[serde(default)]
    pub uncopied_bytes: u64,
}

impl Resident {
    /// With another look, at which so much was resident, heap of it, and had been faulted in, bytes.
    pub fn or_now(self, all_bytes: u64, heap_bytes: u64, may_share: bool, faulted_bytes: u64) -> Resident {
        let largest =
            if all_bytes > self.all_bytes { (all_bytes, heap_bytes) } else { (self.all_bytes, self.heap_bytes) };
        Resident {
            all_bytes: largest.0,
            heap_bytes: largest.1,
            may_share: self.may_share || may_share,
            most_heap_bytes: self.most_heap_bytes.max(heap_bytes),
            uncopied_bytes: self.inherited_bytes.saturating_sub(faulted_bytes),
            ..self
        }
    }
}

/// One process of a job. Unknown figures are `None`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Its identity.
    pub key: ProcessKey,
    /// Its parent's PID when it was started or first seen.
    pub parent: Option<i32>,
    /// The last command name it had.
    pub command: String,
    /// Seconds from the run's begin to its start; negative if it is older than the run.
    pub started_seconds: Option<f64>,
    /// Seconds from start to exit.
    pub lifetime_seconds: Option<f64>,
    /// Its own peak RSS in bytes, as `wait4` says.
    pub max_rss_bytes: Option<u64>,
    /// User time.
    pub user_seconds: Option<f64>,
    /// System time.
    pub system_seconds: Option<f64>,
    /// Faults that needed no I/O.
    pub minor_faults: Option<u64>,
    /// Faults that needed I/O.
    pub major_faults: Option<u64>,
    /// Time its threads waited for block I/O, summed.
    pub io_delay_seconds: Option<f64>,
    /// Lifetimes of its threads, summed: the denominator of the I/O wait share.
    pub thread_seconds: Option<f64>,
    /// Exit status, or 128 + signal.
    pub exit_status: Option<i32>,
    /// The signal that ended it. `None`: it exited, or that is not known.
    #[serde(default)]
    pub signal: Option<i32>,
    /// The most that it had in memory of the times that it looked itself: at its end, and before it gave much back. Of one that did not
    /// tell, as it was killed: of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_seen: Option<Resident>,
    /// By which number it knows itself, where that may be another than in `key`; not part of records.
    #[serde(skip)]
    pub own: Option<OwnPid>,
    /// Source of these figures: `wait4`, `tracepoint`, `taskstats`, `inside` (reported by the process), `sampled`.
    pub source: String,
}

/// Clocks that are read one after the other may differ by so many ticks.
const TICKS: u64 = 2;
/// taskstats says when a thread ended only as its record is read, and its start by its lifetime; a process tells of its begin once
/// its libraries are loaded: so late at most, in ticks.
const LATE_TICKS: u64 = 1000;

impl ProcessRecord {
    /// Whether it is the process of that identity, whose start is exact.
    pub fn is(&self, key: ProcessKey) -> bool {
        let late = if matches!(self.source.as_str(), "taskstats" | "inside") { LATE_TICKS } else { TICKS };
        let (known, exact) = (self.key.start_ticks, key.start_ticks);
        self.key.pid == key.pid && known + TICKS >= exact && known <= exact + late
    }

    /// A process of which only the identity is known yet.
    pub fn new(key: ProcessKey, source: &str) -> ProcessRecord {
        ProcessRecord {
            key,
            parent: None,
            command: String::new(),
            started_seconds: None,
            lifetime_seconds: None,
            max_rss_bytes: None,
            user_seconds: None,
            system_seconds: None,
            minor_faults: None,
            major_faults: None,
            io_delay_seconds: None,
            thread_seconds: None,
            exit_status: None,
            signal: None,
            largest_seen: None,
            own: None,
            source: source.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_is_known_late_is_the_same_process() {
        let at = |start_ticks| ProcessKey { pid: 7, start_ticks };
        let exact = ProcessRecord::new(at(1000), "tracepoint");
        assert!(exact.is(at(1000)) && exact.is(at(1002)) && exact.is(at(998)));
        assert!(!exact.is(at(997)) && !exact.is(at(1003)) && !exact.is(ProcessKey { pid: 8, start_ticks: 1000 }));
        let late = ProcessRecord::new(at(1000), "taskstats");
        assert!(late.is(at(1000)) && late.is(at(900)) && late.is(at(0)));
        assert!(!late.is(at(1003)), "it cannot have started later");
        assert!(!ProcessRecord::new(at(5000), "taskstats").is(at(1000)), "that is another of the same PID");
    }
}
