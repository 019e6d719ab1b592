//! What comes back from swap between two looks.
//!
//! A program that has too little memory brings pages back and loses them again before anybody looks: of the refaults that the
//! kernel counts, looks see a fraction. Where there are any, the faults themselves tell of those of the sample, in their order.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use linux::pages::{Return, Returns, Tables};
use linux::procfs;

/// So long after the last major fault faults are not listened to any more, for that takes those of all programs a little time.
const QUIET: Duration = Duration::from_secs(5);
/// What telling of a page takes the program, about; and what each fault does that is not told (51 to 54 ns by `bpf_stats_enabled`, its own clock
/// included).
const TOLD_SECONDS: f64 = 0.5e-6;
const DISMISSED_SECONDS: f64 = 50e-9;

/// Listens while there is something to hear.
#[derive(Default)]
pub struct Returned {
    faults: Option<Returns>,
    is_refused: bool,
    /// Of all processes together; `None`: not known yet.
    major_faults: Option<u64>,
    /// When there were more of them.
    last: Option<Instant>,
    /// Pages that found no room so far.
    lost: u64,
}

impl Returned {
    /// Listens to these processes, to one page of 2^level, if they have had major faults of late.
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
                tracing::debug!("what comes back from swap between looks is not seen: {error}");
                self.is_refused = true;
            }
        }
    }

    /// Not until the next [`Returned::listen`].
    pub fn pause(&mut self) {
        self.faults = None;
    }

    /// Whether it listens.
    pub fn is_listening(&self) -> bool {
        self.faults.is_some()
    }

    /// What has come back since the last call, in its order.
    pub fn take(&self) -> Vec<Return> {
        self.faults.as_ref().map(Returns::take).unwrap_or_default()
    }

    /// Pages that found no room since the last call.
    pub fn lost(&mut self, tables: &Tables) -> u64 {
        let lost = tables.lost();
        lost - std::mem::replace(&mut self.lost, lost)
    }
}

/// What it took the program that so many were told, one page of 2^level, and that their neighbours were not, in seconds.
pub fn cost(told: usize, level: u32) -> (f64, f64) {
    let neighbours = told as f64 * (1u64 << level) as f64;
    (told as f64 * TOLD_SECONDS, neighbours * DISMISSED_SECONDS)
}
