//! Files in memory that the processes have open: the tracepoints of the page cache do not show reads and writes of these.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linux::holders::FileId;
use linux::open_in_memory::{OpenFile, open_in_memory};
use model::PagesRound;

use super::own_cpu;

/// Between two searches.
const PAUSE: Duration = Duration::from_millis(500);
/// Searching takes at most one part in so many of a processor.
const MOST_COST: u32 = 200;
/// The working set is of so many intervals together, and so are these.
const ROUNDS: u64 = 8;

/// What was found of late.
#[derive(Default)]
pub struct InMemory {
    /// Each with the round in which it was found last.
    files: BTreeMap<FileId, (u64, OpenFile)>,
    round: u64,
    due: Option<Instant>,
    cost: Duration,
}

impl InMemory {
    /// Searches, unless it has just searched.
    pub fn search(&mut self, pids: impl Iterator<Item = i32>) {
        if self.due.is_some_and(|due| Instant::now() < due) {
            return;
        }
        let began = own_cpu();
        let found = open_in_memory(pids).files;
        self.files.extend(found.into_iter().map(|(id, file)| (id, (self.round, file))));
        let cost = own_cpu() - began;
        self.cost += cost;
        self.due = Some(Instant::now() + PAUSE.max(cost * MOST_COST));
    }

    /// Adds what was found to a round that is over.
    pub fn tell(&mut self, round: &mut PagesRound) {
        self.files.retain(|_, (found, _)| *found + ROUNDS > self.round);
        self.round += 1;
        let files = || self.files.values().map(|(_, file)| file).filter(|file| file.unmapped_bytes() > 0);
        let largest = files().max_by_key(|file| file.unmapped_bytes());
        round.files_in_memory_bytes = files().map(|file| file.unmapped_bytes()).sum();
        round.largest_file_in_memory = largest.map(|file| file.name.clone());
        if round.seconds > 0.0 {
            round.overhead.own += std::mem::take(&mut self.cost).as_secs_f64() / round.seconds;
        }
    }
}
