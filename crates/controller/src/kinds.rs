//! Heap that is idle gives way to files that are not.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use balance::Active;
use linux::procfs;
use track::pages::Idle;

use crate::reclaim::{Tracked, page_out};

/// Files of which less was brought back than this share of the limit lack nothing.
const LACKING: u64 = 100;
/// This share of the limit is left free for what is not seen.
const MARGIN: u64 = 50;

/// Heap that gives way.
pub struct Spare {
    /// How much.
    pub bytes: u64,
    /// What it is part of is idle for so long.
    pub seconds: f64,
    idle: Vec<Idle>,
}

/// Whether a program lacks files, as so many of their pages were brought back.
pub fn lacks_files(limit: u64, files_back: u64) -> bool {
    files_back * procfs::page_bytes() >= (limit / LACKING).max(1)
}

impl Spare {
    /// What of a program's heap LRU of all kinds would not hold, if pages of files were brought back meanwhile. Those that are seen
    /// for the first time although they were brought back are active, too.
    pub fn of(tracked: &Tracked<'_>, limit: u64, files_back: u64) -> Option<Spare> {
        let (page, round) = (procfs::page_bytes(), tracked.round);
        if !lacks_files(limit, files_back) {
            return None;
        }
        let active = Active::within(limit, &round.ages)?;
        let new = (round.first_touches_per_second * round.seconds).min(files_back as f64) as u64 * page;
        let mut idle = tracked.idle(active.seconds);
        idle.retain(|run| run.is_heap);
        let room = (limit - limit / MARGIN).saturating_sub(new);
        let bytes = active.excess(room, idle.iter().map(|run| run.resident).sum());
        (bytes > 0).then_some(Spare { bytes, seconds: active.seconds, idle })
    }

    /// Pages it out, as far as that is done within the time. What was.
    pub fn page_out(&self, patience: Duration) -> u64 {
        let due = Instant::now() + patience;
        let before = self.anonymous();
        let out = || before.saturating_sub(self.anonymous());
        // What is refused is there next time.
        let _ = page_out(&self.idle, || out() >= self.bytes || Instant::now() >= due);
        out()
    }

    /// Resident heap of those that have some of it.
    fn anonymous(&self) -> u64 {
        let processes: BTreeSet<i32> = self.idle.iter().map(|run| run.pid).collect();
        processes.into_iter().filter_map(|pid| procfs::status(pid).ok()?.rss_anon).sum()
    }
}
