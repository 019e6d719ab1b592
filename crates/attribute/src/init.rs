//! What `MPI_Init` brought.

use std::collections::BTreeMap;

use model::{InitGrowth, LibraryGrowth, RankInit, Spread};
use runtime_abi::LogReason;

use crate::log::ProcessLog;
use crate::memory::Lines;
use crate::replay::Process;

/// One process's way through `MPI_Init`.
pub struct Initialized {
    pub rank: RankInit,
    /// Growth of RSS by line and library.
    grew: BTreeMap<(usize, String), i64>,
    function: String,
}

/// The first time the process came through it; `None` if it never did.
pub fn of_process(process: &Process, lines: &Lines) -> Option<Initialized> {
    let (log, totals) = (process.log, process.totals);
    let begin = totals.iter().position(|totals| totals.reason == LogReason::Init.name())?;
    let end = begin + totals[begin..].iter().position(|totals| totals.reason == LogReason::Initialized.name())?;
    let mut held = BTreeMap::new();
    let mut grew: BTreeMap<(usize, String), i64> = BTreeMap::new();
    for (number, totals) in totals[..=end].iter().enumerate() {
        for now in &totals.changed {
            let before = held.insert((now.owner, now.kind), now.rss_bytes).unwrap_or(0);
            let line = lines.of_owner(log, now.owner);
            if number > begin && line != lines.own() {
                *grew.entry((line, library(log, now.owner))).or_default() += now.rss_bytes as i64 - before as i64;
            }
        }
    }
    let seconds = |at: usize| process.at(totals[at].t_us) as f64 / 1e9;
    let rank =
        RankInit { begin_seconds: seconds(begin), end_seconds: seconds(end), grew_bytes: grew.values().sum::<i64>() };
    Some(Initialized { rank, grew, function: function(log) })
}

/// Of all ranks that came through it; `None` if none did.
pub fn of_ranks(ranks: &[Initialized], lines: &Lines) -> Option<InitGrowth> {
    let count = ranks.len() as i64;
    let grew: Vec<f64> = ranks.iter().map(|initialized| initialized.rank.grew_bytes as f64).collect();
    let mut components: BTreeMap<String, i64> = BTreeMap::new();
    let mut libraries: BTreeMap<(usize, &str), i64> = BTreeMap::new();
    for ((line, library), bytes) in ranks.iter().flat_map(|initialized| &initialized.grew) {
        *components.entry(lines.names()[*line].to_string()).or_default() += bytes;
        *libraries.entry((*line, library)).or_default() += bytes;
    }
    components.values_mut().for_each(|bytes| *bytes /= count);
    let library = |((line, library), bytes): ((usize, &str), i64)| LibraryGrowth {
        component: lines.names()[line].to_string(),
        library: library.to_string(),
        grew_bytes: bytes / count,
    };
    let mut libraries: Vec<LibraryGrowth> =
        libraries.into_iter().map(library).filter(|library| library.grew_bytes != 0).collect();
    libraries.sort_by_key(|library| std::cmp::Reverse(library.grew_bytes));
    let seconds: f64 = ranks.iter().map(|of| of.rank.end_seconds - of.rank.begin_seconds).sum();
    Some(InitGrowth {
        function: ranks.first()?.function.clone(),
        ranks: count as u32,
        seconds: seconds / count as f64,
        grew_bytes: Spread::of(&grew)?,
        components,
        libraries,
    })
}

/// The file of an owner's object; empty: not told apart.
pub fn library(log: &ProcessLog, owner: u64) -> String {
    let object = log.owners.get(&owner).and_then(|owner| log.objects.get(&owner.object));
    object.map(|object| object.path.rsplit('/').next().unwrap_or_default().to_string()).unwrap_or_default()
}

/// The function by which a program initialized MPI.
fn function(log: &ProcessLog) -> String {
    let called = |id: &u64| log.calls.get(id).is_some_and(|calls| calls.calls > 0);
    let initializes = |name: &str| {
        let name = name.to_ascii_lowercase();
        (name.starts_with("mpi_init") && !name.starts_with("mpi_initialized")) || name.starts_with("mpi_session_init")
    };
    let named = log.functions.iter().find(|(id, function)| called(id) && initializes(&function.name));
    named.map_or("MPI_Init", |(_, function)| &function.name).to_string()
}
