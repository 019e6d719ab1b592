//! Idle heap gives way to active files.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use balance::Active;
use linux::procfs;
use track::pages::Idle;

use crate::reclaim::{Tracked, page_out};

/// A program lacks files if it brought back at least this part (1/100) of its limit in file pages.
const LACKING_PART: u64 = 100;
/// This part (1/50) of the limit is left free for memory that cannot be seen.
const MARGIN_PART: u64 = 50;

/// Heap to page out.
pub struct Spare {
    /// How many bytes.
    pub bytes: u64,
    /// Seconds for which the heap around it is idle.
    pub seconds: f64,
    idle: Vec<Idle>,
}

/// Whether a program lacks files, given the file pages that it brought back.
pub fn lacks_files(limit: u64, files_back: u64) -> bool {
    files_back * procfs::page_bytes() >= (limit / LACKING_PART).max(1)
}

impl Spare {
    /// The heap that an LRU of all kinds of memory would not hold, if the program brought back file pages. File pages
    /// brought back but never seen before count as active too.
    pub fn of(tracked: &Tracked<'_>, limit: u64, files_back: u64) -> Option<Spare> {
        let (page, round) = (procfs::page_bytes(), tracked.round);
        if !lacks_files(limit, files_back) {
            return None;
        }
        let active = Active::within(limit, &round.ages)?;
        let new = (round.first_touches_per_second * round.seconds).min(files_back as f64) as u64 * page;
        let mut idle = tracked.idle(active.seconds);
        idle.retain(|run| run.is_heap);
        let room = (limit - limit / MARGIN_PART).saturating_sub(new);
        let bytes = active.excess(room, idle.iter().map(|run| run.resident).sum());
        (bytes > 0).then_some(Spare { bytes, seconds: active.seconds, idle })
    }

    /// Pages it out, as far as possible within `patience`. Returns the bytes paged out.
    pub fn page_out(&self, patience: Duration) -> u64 {
        let due = Instant::now() + patience;
        let before = self.anonymous();
        let out = || before.saturating_sub(self.anonymous());
        // Refused memory is tried again next time.
        let _ = page_out(&self.idle, || out() >= self.bytes || Instant::now() >= due);
        out()
    }

    /// Resident heap of the processes concerned.
    fn anonymous(&self) -> u64 {
        let processes: BTreeSet<i32> = self.idle.iter().map(|run| run.pid).collect();
        processes.into_iter().filter_map(|pid| procfs::status(pid).ok()?.rss_anon).sum()
    }
}
