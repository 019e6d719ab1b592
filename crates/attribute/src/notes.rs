//! What the reader should know of the logs.

use std::collections::BTreeMap;

use model::{Axis, Bytes};

use crate::group::Groups;
use crate::kernel::{Gap, Unseen};
use crate::replay::Process;

/// How the runtime begins its sentence of how it follows touches.
const TOUCH: &str = "by touch: ";

/// How it was seen to whom memory belongs.
pub fn rung(by: Axis, processes: &[Process]) -> String {
    if by == Axis::Owner {
        return "smaps and pagemap, divided by owner".into();
    }
    let mut said: Vec<&str> = Vec::new();
    for rung in processes.iter().flat_map(|process| &process.log.notes).filter_map(|note| note.strip_prefix(TOUCH)) {
        if !said.contains(&rung) {
            said.push(rung);
        }
    }
    if said.is_empty() { "no process followed first touches (--by touch)".into() } else { said.join("; ") }
}

/// Sentences, each once, with the ranks it is of.
pub fn notes(groups: &Groups) -> Vec<String> {
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut order = Vec::new();
    for process in groups.ranks.iter().flatten() {
        let log = process.log;
        let mut of_log: Vec<_> = log.notes.iter().filter(|note| !note.starts_with(TOUCH)).cloned().collect();
        if !log.complete {
            of_log.push("the log is cut or damaged: its rest is missing".into());
        } else if process.gone_ns.is_none() {
            of_log.push(
                "the log has no end, because the process was killed or goes on: its figures are those until then"
                    .into(),
            );
        }
        for note in of_log {
            let by = said.entry(note.clone()).or_default();
            if by.is_empty() {
                order.push(note);
            }
            by.extend(Some(name(process)).filter(|name| by.last() != Some(name)));
        }
    }
    let mut notes: Vec<String> = missing(groups).into_iter().chain(unseen(groups)).collect();
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
    let mut worlds: BTreeMap<u32, u32> = BTreeMap::new();
    for process in groups.ranks.iter().flatten() {
        if let (Some(id), Some(ranks)) = (process.rank, process.log.started.ranks) {
            let most = worlds.entry(id.world).or_default();
            *most = ranks.max(*most);
        }
    }
    let ranks: u64 = worlds.values().map(|ranks| u64::from(*ranks)).sum();
    let absent = ranks.checked_sub(groups.ranks.len() as u64).filter(|absent| *absent > 0)?;
    Some(format!("{absent} of {ranks} ranks left no log and are in no figure"))
}

/// What the kernel counted and nobody looked at, in one sentence of the process in which it is most.
fn unseen(groups: &Groups) -> Option<String> {
    let processes = groups.ranks.iter().flatten();
    let mut all: Vec<(&Process, Unseen)> = processes.filter_map(|each| Some((*each, each.log.unseen?))).collect();
    all.sort_by_key(|(_, unseen)| std::cmp::Reverse(unseen.bytes));
    let (process, most) = all.first()?;
    let why = match most.gap {
        Gap::BetweenLooks => "not sampled when it held the most".into(),
        Gap::BeforeEnd { seconds, signal } => {
            let end = signal.map_or_else(|| "ended".into(), |signal| format!("was killed by signal {signal}"));
            match seconds {
                Some(seconds) => format!("not sampled in the last {seconds:.2} s before it {end}"),
                None => format!("not sampled again before it {end}"),
            }
        }
    };
    let more = match all.len() {
        1 => String::new(),
        count => format!("; {} more processes likewise", count - 1),
    };
    Some(format!(
        "{} of the peak of {} ({}), which the kernel counted, are unattributed: {why}{more}",
        Bytes(most.bytes),
        name(process),
        base(&process.log.started.executable)
    ))
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn name(process: &Process) -> String {
    process.rank.map_or_else(|| format!("process {}", process.log.started.pid), |rank| format!("rank {rank}"))
}
