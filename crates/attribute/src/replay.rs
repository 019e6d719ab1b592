//! The logs of several processes, gone through in order of time.

use std::collections::BTreeMap;

use model::{Axis, MemoryKind, RankId};

use crate::forked::unseen;
use crate::log::{ProcessLog, Totals};
use crate::memory::{Cell, Lines, Row};

/// A process on the run's axis of time.
#[derive(Clone, Debug)]
pub struct Process<'a> {
    pub log: &'a ProcessLog,
    /// By the axis that is asked for.
    pub totals: &'a [Totals],
    /// `None`: it is no rank.
    pub rank: Option<RankId>,
    /// When its log began, nanoseconds since the run did.
    begin_ns: i128,
    /// When its memory was gone; `None`: not known, it counts to the end.
    pub gone_ns: Option<u64>,
}

/// The memory of several processes at one moment.
pub struct Moment<'a> {
    /// Nanoseconds since the run began.
    pub t_ns: u64,
    /// By line.
    pub rows: &'a [Row],
    /// By process, owner and kind.
    pub held: &'a [Held],
}

/// Memory of one process by owner and kind.
pub type Held = BTreeMap<(u64, MemoryKind), Cell>;

/// Whether PSS is as each process saw it, or as it must have been for all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Of one rank.
    Each,
    /// A PSS that fell without anything being given back fell when another process came to share the memory, not when
    /// this one next looked: else the sum would count it twice in between. So it would for what children shared that were
    /// gone by then.
    Together,
}

/// So long before it is seen PSS may have changed: large processes look seldom.
const LATE_NS: u64 = 3_000_000_000;

/// What becomes another for one process.
pub enum Change<'a> {
    /// What it told.
    Totals(&'a Totals),
    /// Its PSS when others came to share its memory.
    Shared(Shares),
    /// And when one of them had gone.
    Parted(Shares),
    /// It had gone itself.
    Gone,
}

/// PSS by owner and kind.
pub type Shares = Vec<((u64, MemoryKind), u64)>;

impl<'a> Process<'a> {
    /// All processes of a run that began at `started_unix_ns`.
    pub fn of(logs: &'a [ProcessLog], started_unix_ns: u64, by: Axis) -> Vec<Process<'a>> {
        let worlds = worlds(logs);
        let process = |log: &'a ProcessLog| {
            let world = worlds.iter().position(|world| *world == log.started.world).unwrap_or_default() as u32 + 1;
            let mut process = Process {
                log,
                totals: match by {
                    Axis::Owner => &log.totals,
                    Axis::Touch => &log.touched,
                },
                rank: log.started.rank.map(|rank| RankId { world, rank }),
                begin_ns: i128::from(log.started.unix_ns) - i128::from(started_unix_ns),
                gone_ns: None,
            };
            // What it was before exec may have been cut off before it could say so.
            let is_later = |other: &&ProcessLog| {
                other.started.is_same_process(&log.started) && other.started.unix_ns > log.started.unix_ns
            };
            let later = logs.iter().filter(is_later);
            let next = later.map(|other| (other.started.unix_ns - log.started.unix_ns) / 1000).min();
            // Its last totals may be of the same microsecond, or of another thread that was still at them.
            let last_us = process.totals.last().map_or(0, |last| last.t_us);
            let gone_us = log.ended.as_ref().map(|end| end.t_us).or(next).map(|t_us| t_us.max(last_us));
            process.gone_ns = gone_us.map(|t_us| process.at(t_us).saturating_add(1));
            process
        };
        logs.iter().map(process).collect()
    }

    /// A time of its log on the run's axis.
    pub fn at(&self, t_us: u64) -> u64 {
        (self.begin_ns + i128::from(t_us) * 1000).clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// What tells the worlds of ranks apart, in the order in which they began.
fn worlds(logs: &[ProcessLog]) -> Vec<&str> {
    let mut ranks: Vec<_> = logs.iter().map(|log| &log.started).filter(|started| started.rank.is_some()).collect();
    ranks.sort_by_key(|started| started.unix_ns);
    let mut worlds: Vec<&str> = Vec::new();
    for started in ranks {
        if !worlds.contains(&started.world.as_str()) {
            worlds.push(&started.world);
        }
    }
    worlds
}

/// Calls `each` with every moment at which anything changed. What a process held at its end is gone, unless it was the last
/// of them.
pub fn replay(processes: &[&Process], lines: &Lines, sight: Sight, mut each: impl FnMut(&Moment)) {
    let mut changes = Vec::new();
    for (number, process) in processes.iter().enumerate() {
        let mut own = changes_of(process, sight);
        if sight == Sight::Together {
            own.extend(unseen(process, processes));
        }
        changes.extend(own.into_iter().map(|(t_ns, change)| (t_ns, number, change)));
        changes.extend(process.gone_ns.map(|t_ns| (t_ns, number, Change::Gone)));
    }
    changes.sort_by_key(|(t_ns, ..)| *t_ns);
    let end_ns = changes.last().map_or(0, |(t_ns, ..)| *t_ns);
    changes.retain(|(t_ns, _, change)| *t_ns < end_ns || !matches!(change, Change::Gone | Change::Parted(_)));

    let owner_lines: Vec<BTreeMap<u64, usize>> = processes.iter().map(|process| owners(process, lines)).collect();
    let mut rows = vec![Row::default(); lines.total() + 1];
    let mut held = vec![Held::new(); processes.len()];
    for moment in changes.chunk_by(|a, b| a.0 == b.0) {
        for (_, process, change) in moment {
            let mut set = |held: &mut Cell, owner: u64, kind: MemoryKind, now: Cell| {
                let line = owner_lines[*process].get(&owner).copied().unwrap_or(lines.unattributed());
                let whole = (line != lines.own()).then_some(lines.total());
                for line in [Some(line), whole].into_iter().flatten() {
                    let cell = &mut rows[line][kind as usize];
                    *cell = Cell { rss: cell.rss - held.rss + now.rss, pss: cell.pss - held.pss + now.pss };
                }
                *held = now;
            };
            match change {
                Change::Totals(totals) => {
                    for ((owner, kind), cell) in cells(totals) {
                        set(held[*process].entry((owner, kind)).or_default(), owner, kind, cell);
                    }
                }
                Change::Shared(cells) | Change::Parted(cells) => {
                    for ((owner, kind), pss) in cells {
                        let held = held[*process].entry((*owner, *kind)).or_default();
                        set(held, *owner, *kind, Cell { rss: held.rss, pss: *pss });
                    }
                }
                Change::Gone => {
                    for ((owner, kind), held) in &mut held[*process] {
                        set(held, *owner, *kind, Cell::default());
                    }
                }
            }
        }
        each(&Moment { t_ns: moment[0].0, rows: &rows, held: &held });
    }
}

/// What totals say anew.
pub fn cells(totals: &Totals) -> impl Iterator<Item = ((u64, MemoryKind), Cell)> {
    let cell = |now: &crate::log::Held| Cell { rss: now.rss_bytes, pss: now.pss_bytes };
    totals.changed.iter().map(move |now| ((now.owner, now.kind), cell(now)))
}

/// The changes of one process in their order.
fn changes_of<'a>(process: &Process<'a>, sight: Sight) -> Vec<(u64, Change<'a>)> {
    let mut held = Held::new();
    let mut before_ns = 0;
    let mut changes = Vec::new();
    for totals in process.totals {
        let t_ns = process.at(totals.t_us);
        let mut fell = Vec::new();
        for (key, cell) in cells(totals) {
            let before = held.insert(key, cell).unwrap_or_default();
            if cell.pss < before.pss && cell.rss >= before.rss {
                fell.push((key, cell.pss));
            }
        }
        if sight == Sight::Together && !fell.is_empty() {
            changes.push((t_ns.saturating_sub(LATE_NS).max(before_ns), Change::Shared(fell)));
        }
        changes.push((t_ns, Change::Totals(totals)));
        before_ns = t_ns;
    }
    changes
}

/// The lines of all owners that the totals of a process name.
fn owners(process: &Process, lines: &Lines) -> BTreeMap<u64, usize> {
    let named = process.totals.iter().flat_map(|totals| &totals.changed);
    named.map(|held| (held.owner, lines.of_owner(process.log, held.owner))).collect()
}
