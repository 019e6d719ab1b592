//! Peaks that the kernel kept of processes, joined with what their logs saw.
//!
//! A process is looked at on a timer. What it grew by after the last look before it was killed, or between two looks that a
//! busy machine kept apart, is in no log; but the kernel keeps the largest resident set of each process. The difference is
//! memory of unknown owners.

use model::MemoryKind;

use crate::log::{End, Held, ProcessLog, Started, Totals};
use crate::replay::{Held as Cells, cells};

/// What the kernel kept of a process that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelPeak {
    /// Where it ran.
    pub host: String,
    /// PID.
    pub pid: i32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
    /// Its largest resident set (`VmHWM`), without hugetlb pages.
    pub max_rss_bytes: u64,
    /// When it ended, nanoseconds since 1970; `None`: not known.
    pub ended_unix_ns: Option<u64>,
    /// Exit status, or 128 + signal; `None`: not known.
    pub exit_status: Option<i32>,
}

/// What the kernel's peak adds to the looks at a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unseen {
    /// Resident at the peak, and at no look.
    pub bytes: u64,
    /// Where no look was.
    pub gap: Gap,
}

/// Where a process was resident in more memory than at any look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// Between two looks: it was looked at once more, at its end.
    BetweenLooks,
    /// After the last.
    BeforeEnd {
        /// Seconds between the last look and the end; `None`: not known.
        seconds: Option<f64>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
}

/// The id that logs give to memory of unknown owners.
const UNATTRIBUTED: u64 = runtime_abi::Owner::Unattributed as u64;
/// Clocks and counters of the kernel may differ by so many ticks.
const TICKS: u64 = 2;
/// The kernel counts resident pages per processor, so its peak is known to some MiB only; and so much or more of the peak.
const SLACK_BYTES: u64 = 2 << 20;
const SLACK_SHARE: u64 = 50;

/// Completes logs by what the kernel kept: a process without an end in its log has one, and what was resident at its peak but
/// at no look is unattributed: after the last look where the log has no end, and else between the look that saw the most and
/// the next.
pub fn add_kernel_peaks(logs: &mut [ProcessLog], peaks: &[KernelPeak]) {
    let parents: Vec<(Started, u64)> = logs.iter().map(|log| (log.started.clone(), largest(&log.totals))).collect();
    for peak in peaks {
        let is_its = |log: &ProcessLog| {
            let started = &log.started;
            started.pid == peak.pid
                && started.host == peak.host
                && started.start_ticks.abs_diff(peak.start_ticks) <= TICKS
        };
        let mut own: Vec<&mut ProcessLog> = logs.iter_mut().filter(|log| is_its(log)).collect();
        // What it was before exec has a log of its own, and the kernel's peak may be of any of them.
        let seen = own.iter().map(|log| largest(&log.totals)).max().unwrap_or(0);
        // Between fork and exec it may have shared what its parent held.
        let is_parent = |(parent, _): &&(Started, u64)| own.iter().any(|log| log.started.is_child_of(parent));
        let seen = parents.iter().filter(is_parent).map(|(_, bytes)| *bytes).fold(seen, u64::max);
        let Some(last) = own.iter_mut().max_by_key(|log| log.started.unix_ns) else { continue };
        complete(last, peak, seen);
    }
}

fn complete(log: &mut ProcessLog, peak: &KernelPeak, seen: u64) {
    let Some(last_us) = log.totals.last().map(|totals| totals.t_us) else { return };
    let end = log.ended.as_ref().map(|end| end.how.as_str());
    // It became a program that left no log: what that held is no part of this one.
    if end == Some("exec") {
        return;
    }
    let is_cut = end.is_none();
    let ended_us = peak.ended_unix_ns.map(|ns| (ns.saturating_sub(log.started.unix_ns) / 1000).max(last_us + 1));
    let signal = peak.exit_status.and_then(|status| status.checked_sub(128)).filter(|signal| *signal > 0);
    if let (true, Some(t_us)) = (is_cut, ended_us) {
        log.ended = Some(End { t_us, how: if signal.is_some() { "killed" } else { "ended" }.into() });
    }
    let has_seen_all = |seen: u64| peak.max_rss_bytes <= seen + SLACK_BYTES.max(seen / SLACK_SHARE);
    if has_seen_all(seen) {
        return;
    }
    if is_cut {
        add_growth(log, peak.max_rss_bytes);
    }
    let seen = largest(&log.totals).max(seen);
    if has_seen_all(seen) {
        return;
    }
    let told_us = log.totals.last().map_or(last_us, |totals| totals.t_us);
    let seconds = ended_us.map(|ended_us| ended_us.saturating_sub(told_us) as f64 / 1e6);
    let gap = if is_cut { Gap::BeforeEnd { seconds, signal } } else { Gap::BetweenLooks };
    log.unseen = Some(Unseen { bytes: peak.max_rss_bytes - seen, gap });
    for all in [&mut log.totals, &mut log.touched] {
        match gap {
            _ if all.is_empty() => {}
            Gap::BeforeEnd { .. } => raise(all, all.len() - 1, peak.max_rss_bytes, ended_us.unwrap_or(last_us + 1)),
            Gap::BetweenLooks => {
                let most = index_of_largest(all);
                raise(all, most, peak.max_rss_bytes, all[most].t_us + 1);
            }
        }
    }
}

/// What a process that was killed obtained of heap since its last totals, as its components' own, not told apart: `most` bytes at most
/// were resident then.
fn add_growth(log: &mut ProcessLog, most: u64) {
    let Some(grown) = log.grown.take() else { return };
    let mut held = Cells::new();
    log.totals.iter().for_each(|totals| held.extend(cells(totals)));
    let mut room = most.saturating_sub(resident(&held));
    let components = log.started.components.len() as u64;
    let grown_bytes = grown.bytes.into_iter().filter(|(component, _)| *component < components);
    let changed = grown_bytes.map(|(component, bytes)| {
        let owner = runtime_abi::OWNERS_BEGIN as u64 + component;
        let known = held.get(&(owner, MemoryKind::Heap)).copied().unwrap_or_default();
        let more = bytes.min(room);
        room -= more;
        Held {
            owner,
            kind: MemoryKind::Heap,
            rss_bytes: known.rss.saturating_add(more),
            pss_bytes: known.pss.saturating_add(more),
        }
    });
    let changed = changed.collect();
    let last_us = log.totals.last().map_or(0, |totals| totals.t_us);
    log.totals.push(Totals { t_us: grown.t_us.max(last_us), reason: "grown".into(), changed });
}

/// The most that was resident at a look.
fn largest(totals: &[Totals]) -> u64 {
    resident_at(totals).into_iter().max().unwrap_or(0)
}

/// The first look at which the most was resident.
fn index_of_largest(totals: &[Totals]) -> usize {
    let resident = resident_at(totals);
    (0..resident.len()).max_by_key(|at| (resident[*at], std::cmp::Reverse(*at))).unwrap_or(0)
}

/// What was resident at each look.
fn resident_at(totals: &[Totals]) -> Vec<u64> {
    let mut held = Cells::new();
    let looks = totals.iter().map(|totals| {
        held.extend(cells(totals));
        resident(&held)
    });
    looks.collect()
}

/// As the kernel counts it: with the runtime's own memory, without hugetlb.
fn resident(held: &Cells) -> u64 {
    held.iter().filter(|((_, kind), _)| *kind != MemoryKind::Hugetlb).map(|(_, cell)| cell.rss).sum()
}

/// Adds to what is unattributed from a time behind the look of this index until the next look, so that all together are `bytes`.
fn raise(all: &mut Vec<Totals>, look: usize, bytes: u64, t_us: u64) {
    let mut held = Cells::new();
    all[..=look].iter().for_each(|totals| held.extend(cells(totals)));
    let missing = bytes.saturating_sub(resident(&held));
    let known = held.get(&(UNATTRIBUTED, MemoryKind::Mapped)).copied().unwrap_or_default();
    let unattributed = |more| Held {
        owner: UNATTRIBUTED,
        kind: MemoryKind::Mapped,
        rss_bytes: known.rss + more,
        pss_bytes: known.pss + more,
    };
    if let Some(next) = all.get_mut(look + 1) {
        let is_told = next.changed.iter().any(|held| (held.owner, held.kind) == (UNATTRIBUTED, MemoryKind::Mapped));
        next.changed.extend((!is_told).then(|| unattributed(0)));
    }
    all.insert(look + 1, Totals { t_us, reason: "kernel".into(), changed: vec![unattributed(missing)] });
}
