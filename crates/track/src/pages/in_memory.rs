//! Files in memory that the processes have open. The page cache tracepoints do not show reads and writes of these.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linux::holders::FileId;
use linux::open_in_memory::{OpenFile, open_in_memory};
use model::PagesRound;

use super::own_cpu;

/// Time between two searches.
const PAUSE: Duration = Duration::from_millis(500);
/// A search takes at most 1/200 of a processor.
const MAX_COST_PART: u32 = 200;
/// The working set covers 8 intervals, and so do the files.
const ROUNDS: u64 = 8;

/// Files found in the last rounds.
#[derive(Default)]
pub struct InMemory {
    /// Each file with the round in which it was last found.
    files: BTreeMap<FileId, (u64, OpenFile)>,
    round: u64,
    due: Option<Instant>,
    cost: Duration,
}

impl InMemory {
    /// Searches, unless the last search was too recent.
    pub fn search(&mut self, pids: impl Iterator<Item = i32>) {
        if self.due.is_some_and(|due| Instant::now() < due) {
            return;
        }
        let began = own_cpu();
        let found = open_in_memory(pids).files;
        self.files.extend(found.into_iter().map(|(id, file)| (id, (self.round, file))));
        let cost = own_cpu() - began;
        self.cost += cost;
        self.due = Some(Instant::now() + PAUSE.max(cost * MAX_COST_PART));
    }

    /// Adds the files found to a finished round.
    pub fn add_to(&mut self, round: &mut PagesRound) {
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
