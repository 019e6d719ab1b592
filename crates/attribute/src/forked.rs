//! What a process shared with its children without having looked meanwhile.
//!
//! A fork shares all memory of the parent at once, and the parent's PSS is then too high until it looks again. Where its children
//! were gone by then, it has never seen it; but what they saw of the same pages holds for it, too.

use model::MemoryKind;

use crate::log::Totals;
use crate::memory::Cell;
use crate::replay::{Change, Held, Process, cells};

/// What PSS of a process must have been between two of its looks, and from when on, nanoseconds since the run began. O(looks of
/// the children x what the process holds).
pub fn unseen<'a>(process: &Process, others: &[&Process<'a>]) -> Vec<(u64, Change<'a>)> {
    let children: Vec<_> = others.iter().copied().filter(|other| is_child(other, process)).collect();
    let mut told = Held::new();
    let mut shares = Vec::new();
    for (look, totals) in process.totals.iter().enumerate().take_while(|_| !children.is_empty()) {
        told.extend(cells(totals));
        let next_ns = process.totals.get(look + 1).map(|next| process.at(next.t_us)).or(process.gone_ns);
        let between = |t_ns: u64| t_ns >= process.at(totals.t_us) && next_ns.is_none_or(|next| t_ns < next);
        let lived = |child: &&Process<'_>| {
            let born = child.totals.first().is_some_and(|first| between(child.at(first.t_us)));
            born && between(child.gone_ns.unwrap_or(u64::MAX))
        };
        let children: Vec<_> = children.iter().copied().filter(lived).collect();
        shares.extend(between_looks(&told, &children));
    }
    shares
}

/// It has a copy of the process's memory, not a program of its own.
fn is_child(other: &Process, process: &Process) -> bool {
    let (child, parent) = (&other.log.started, &process.log.started);
    let forked = other.totals.first().is_some_and(|first| first.reason == runtime_abi::LogReason::Fork.name());
    forked && child.is_child_of(parent)
}

/// By what children saw that lived between two looks. The numbers of owners are the same after a fork.
fn between_looks<'a>(told: &Held, children: &[&Process]) -> Vec<(u64, Change<'a>)> {
    let mut looks = Vec::new();
    for (number, child) in children.iter().enumerate() {
        looks.extend(child.totals.iter().map(|totals| (child.at(totals.t_us), number, Some(totals))));
        looks.extend(child.gone_ns.map(|t_ns| (t_ns, number, None)));
    }
    looks.sort_by_key(|(t_ns, ..)| *t_ns);
    let mut held = vec![Held::new(); children.len()];
    let after = |(t_ns, child, totals): (u64, usize, Option<&Totals>)| {
        match totals {
            Some(totals) => held[child].extend(cells(totals)),
            None => held[child].clear(),
        }
        let share = |(key, cell): (&(u64, MemoryKind), &Cell)| {
            let seen = held.iter().filter_map(|held| held.get(key));
            let common = seen.map(|seen| seen.rss.saturating_sub(seen.pss)).max().unwrap_or(0);
            (*key, cell.pss.min(cell.rss.saturating_sub(common)))
        };
        let shares = told.iter().map(share).collect();
        (t_ns, if totals.is_some() { Change::Shared(shares) } else { Change::Parted(shares) })
    };
    looks.into_iter().map(after).collect()
}
