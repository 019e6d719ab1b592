//! What the reader should know of the logs.

use std::collections::BTreeMap;

use crate::group::Groups;
use crate::log::ProcessLog;

/// Sentences, each once, with the ranks it is of.
pub fn notes(groups: &Groups) -> Vec<String> {
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut order = Vec::new();
    for process in groups.ranks.iter().flatten() {
        let log = process.log;
        let mut of_log = log.notes.clone();
        if !log.complete {
            of_log.push("the log is cut or damaged: what followed is not told".into());
        } else if process.gone_ns.is_none() {
            of_log.push("the log has no end, as after a kill: what was logged until then is told".into());
        }
        for note in of_log {
            let by = said.entry(note.clone()).or_default();
            if by.is_empty() {
                order.push(note);
            }
            by.extend(Some(name(log)).filter(|name| by.last() != Some(name)));
        }
    }
    let mut notes: Vec<String> = missing(groups).into_iter().collect();
    notes.extend(order.into_iter().map(|note| match &said[&note][..] {
        by if by.len() == groups.ranks.len() => note,
        [one] => format!("{note} ({one})"),
        [one, more @ ..] => format!("{note} ({one} and {} more)", more.len()),
        [] => note,
    }));
    notes
}

/// Ranks that left no log.
fn missing(groups: &Groups) -> Option<String> {
    let ranks = groups.ranks.iter().flatten().filter_map(|process| process.log.started.ranks).max()?;
    let absent = (ranks as usize).checked_sub(groups.ranks.len()).filter(|absent| *absent > 0)?;
    Some(format!("{absent} of {ranks} ranks left no log and are in no figure"))
}

fn name(log: &ProcessLog) -> String {
    log.started.rank.map_or_else(|| format!("process {}", log.started.pid), |rank| format!("rank {rank}"))
}
