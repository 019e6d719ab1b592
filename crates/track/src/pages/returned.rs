//! Pages that return from swap between two scans.
//!
//! A program with too little memory brings pages back and loses them again before the next scan, so scans see only a
//! fraction of the kernel's refaults. While there are such faults, bursar listens to the faults on the sampled pages
//! themselves, in their order.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use linux::pages::{Return, Returns, Tables};
use linux::procfs;

/// Listening ends this long after the last major fault, because it costs all programs a little time at each fault.
const QUIET: Duration = Duration::from_secs(5);
/// Estimated cost to the program of a reported page, and of each fault that is dismissed (51 to 54 ns by
/// `bpf_stats_enabled`, its own clock included).
const REPORTED_SECONDS: f64 = 0.5e-6;
const DISMISSED_SECONDS: f64 = 50e-9;

/// Listens to faults while there are any.
#[derive(Default)]
pub struct Returned {
    faults: Option<Returns>,
    is_refused: bool,
    /// Of all processes together; `None`: unknown yet.
    major_faults: Option<u64>,
    /// When they last increased.
    last: Option<Instant>,
    /// Pages lost so far, because the buffer was full.
    lost: u64,
}

impl Returned {
    /// Listens to faults of these processes on one of 2^level pages, if they had recent major faults.
    pub fn listen(&mut self, tables: &mut Tables, pids: &BTreeSet<i32>, level: u32) {
        let major_faults = pids.iter().filter_map(|pid| procfs::stat(*pid).ok()).map(|stat| stat.majflt).sum();
        if self.major_faults.replace(major_faults).is_some_and(|before| before < major_faults) {
            self.last = Some(Instant::now());
        }
        let faults = self.faults.take();
        if self.is_refused || self.last.is_none_or(|last| last.elapsed() >= QUIET) {
            return;
        }
        tables.tell_one_of(level);
        let faults = faults.map_or_else(|| Returns::listen(tables), Ok);
        match faults.and_then(|faults| faults.follow(pids).map(|()| faults)) {
            Ok(faults) => self.faults = Some(faults),
            Err(error) => {
                tracing::debug!("pages that return from swap between scans are not seen: {error}");
                self.is_refused = true;
            }
        }
    }

    /// Stops until the next [`Returned::listen`].
    pub fn pause(&mut self) {
        self.faults = None;
    }

    /// Whether it listens.
    pub fn is_listening(&self) -> bool {
        self.faults.is_some()
    }

    /// The pages that have returned since the last call, in order.
    pub fn take(&self) -> Vec<Return> {
        self.faults.as_ref().map(Returns::take).unwrap_or_default()
    }

    /// Pages lost since the last call, because the buffer was full.
    pub fn lost(&mut self, tables: &Tables) -> u64 {
        let lost = tables.lost();
        lost - std::mem::replace(&mut self.lost, lost)
    }
}

/// Cost to the program of this many reported pages, of which one of 2^level is sampled, and of the dismissed faults on
/// their neighbours, in seconds.
pub fn cost(reported: usize, level: u32) -> (f64, f64) {
    let neighbours = reported as f64 * (1u64 << level) as f64;
    (reported as f64 * REPORTED_SECONDS, neighbours * DISMISSED_SECONDS)
}
