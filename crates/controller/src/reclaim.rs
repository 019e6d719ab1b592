//! Memory taken back page by page, the coldest first.

use std::time::Duration;

use balance::Active;
use linux::pages::{Advised, Refusal};
use linux::procfs;
use model::PagesRound;
use track::pages::{Idle, Pages};

/// What is paged out by one call: what has been reached is looked at in between.
const PIECE: u64 = 4 << 20;

/// What is known of a program's memory.
#[derive(Clone, Copy)]
pub struct Tracked<'a> {
    pub pages: &'a Pages,
    pub round: &'a PagesRound,
}

impl Tracked<'_> {
    /// What was not accessed for so long.
    pub fn idle(&self, seconds: f64) -> Vec<Idle> {
        self.pages.idle(Duration::from_secs_f64(seconds))
    }

    /// Pages out what would leave first with so much memory, until that is enough.
    ///
    /// # Errors
    /// Why none of it could be.
    pub fn shrink(&self, bytes: u64, is_enough: impl FnMut() -> bool) -> Result<(), Refusal> {
        page_out(&self.idle(Active::oldest(bytes, &self.round.ages)), is_enough)
    }
}

/// Pages these out until it is enough.
///
/// # Errors
/// Why the last of them could not be. Of what is shared, nothing is.
pub fn page_out(idle: &[Idle], mut is_enough: impl FnMut() -> bool) -> Result<(), Refusal> {
    let mut refused = Ok(());
    let pieces = idle.iter().flat_map(|run| {
        (run.start..run.end).step_by(PIECE as usize).map(|start| (run.pid, start, PIECE.min(run.end - start)))
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
