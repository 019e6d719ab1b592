//! Reclaims memory page by page, the coldest first.

use std::time::Duration;

use balance::Active;
use linux::pages::{Advised, Refusal};
use linux::procfs;
use model::PagesRound;
use track::pages::{Idle, Pages};

/// Bytes paged out by one call; the target is checked between calls.
const PIECE_BYTES: u64 = 4 << 20;

/// What is known of a program's memory.
#[derive(Clone, Copy)]
pub struct Tracked<'a> {
    pub pages: &'a Pages,
    pub round: &'a PagesRound,
}

impl Tracked<'_> {
    /// Memory not accessed for `seconds`.
    pub fn idle(&self, seconds: f64) -> Vec<Idle> {
        self.pages.idle(Duration::from_secs_f64(seconds))
    }

    /// Pages out the memory that an LRU with `bytes` of memory would not hold, until `is_enough`.
    ///
    /// # Errors
    /// Why none of it could be paged out.
    pub fn shrink(&self, bytes: u64, is_enough: impl FnMut() -> bool) -> Result<(), Refusal> {
        page_out(&self.idle(Active::oldest(bytes, &self.round.ages)), is_enough)
    }
}

/// Pages out these ranges until `is_enough`.
///
/// # Errors
/// Why the last of them could not be paged out. Shared pages are skipped without an error.
pub fn page_out(idle: &[Idle], mut is_enough: impl FnMut() -> bool) -> Result<(), Refusal> {
    let mut refused = Ok(());
    let pieces = idle.iter().flat_map(|run| {
        (run.start..run.end)
            .step_by(PIECE_BYTES as usize)
            .map(|start| (run.pid, start, PIECE_BYTES.min(run.end - start)))
    });
    for (pid, start, bytes) in pieces {
        if is_enough() {
            return Ok(());
        }
        let process = procfs::stat(pid).and_then(|stat| Advised::of(pid, stat.starttime));
        match process.map(|process| process.page_out(start, bytes)) {
            Ok(Err(why)) if why != Refusal::Unsuitable => refused = Err(why),
            _ => {}
        }
    }
    refused
}
