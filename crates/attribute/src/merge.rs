//! The processes of a run, brought together.

use std::collections::BTreeMap;

use model::{
    Attribution, Axis, FunctionUse, Holding, KindBytes, LibraryUse, OtherProcess, ProcessKey, RankHolding, RankUse,
    Series, Spread,
};

use crate::comm;
use crate::group::Groups;
use crate::init::{self, Initialized};
use crate::log::ProcessLog;
use crate::memory::{Lines, Measure, Row};
use crate::notes::{notes, rung};
use crate::peaks::Peaks;
use crate::phases::{self, RankPeaks, RankPhases};
use crate::replay::{Process, Sight, replay};
use crate::timelines::TimeLines;

/// What the logs do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The run they are of.
    pub run: u32,
    /// When it began, nanoseconds since 1970: 0 of the time lines.
    pub started_unix_ns: u64,
    /// What is to make memory a component's.
    pub by: Axis,
    /// Whether messages between ranks were counted.
    pub comm_matrix: bool,
}

/// What the logs of a run show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributed {
    /// The figures.
    pub attribution: Attribution,
    /// The time lines: of every rank (its `pid` and `start_ticks`), and of all ranks together. They are named by
    /// [`model::line_name`].
    pub series: Vec<Series>,
}

/// One rank, and what goes into the figures of all.
struct Rank<'a> {
    shown: RankUse,
    rss: Peaks,
    pss: Peaks,
    end_ns: Option<u64>,
    phases: Vec<RankPeaks<'a>>,
    init: Option<Initialized>,
    series: Vec<Series>,
}

/// Brings the logs of a run together.
pub fn attribute(logs: &[ProcessLog], options: Options) -> Attributed {
    let lines = Lines::of(logs);
    let processes = Process::of(logs, options.started_unix_ns, options.by);
    let rung = rung(options.by, &processes);
    let groups = Groups::of(&processes);
    let ranks: Vec<Rank> = groups.ranks.iter().map(|processes| rank(processes, &lines, &rung, options.by)).collect();

    let all: Vec<&Process> = groups.ranks.iter().flatten().copied().collect();
    let mut rss = Peaks::new(Measure::Rss, &lines);
    let mut pss = Peaks::new(Measure::Pss, &lines);
    let last_ns = all.iter().filter_map(|process| Some(process.at(process.totals.last()?.t_us))).max();
    let mut time_lines = TimeLines::of_all(last_ns.unwrap_or(0), &lines);
    let end_ns = end_of(&ranks);
    let mut at_end = vec![Row::default(); lines.total() + 1];
    replay(&all, &lines, Sight::Together, |moment| {
        [&mut rss, &mut pss].into_iter().for_each(|peaks| peaks.see(moment));
        time_lines.see(moment);
        if moment.t_ns < end_ns {
            at_end.copy_from_slice(moment.rows);
        }
    });
    let spread = |of: &dyn Fn(&Rank) -> u64| {
        Spread::of(&ranks.iter().map(|rank| of(rank) as f64).collect::<Vec<_>>()).unwrap_or_default()
    };
    let holding = |line: usize| Holding {
        peak_bytes: pss.of(line).bytes,
        peak_rss_bytes: rss.of(line).bytes,
        at_end_bytes: Measure::Pss.sum(&at_end[line]),
        at_peak: pss.of(line).kinds,
        rank_peaks: spread(&|rank| rank.rss.of(line).bytes),
        rank_peaks_pss: spread(&|rank| rank.pss.of(line).bytes),
    };
    let by_owner = options.by == Axis::Owner;
    let libraries = if by_owner { libraries(&all, &lines, &pss) } else { Vec::new() };
    let of_phases: Vec<Vec<RankPeaks>> = ranks.iter().map(|rank| rank.phases.clone()).collect();
    let components = lines.components().iter().enumerate();
    let (total, unattributed) = (holding(lines.total()), holding(lines.unattributed()));
    let retained = by_owner.then(|| holding(lines.retained()));
    let mut attribution = Attribution {
        run: options.run,
        by: options.by,
        rung: rung.clone(),
        ranks: ranks.len() as u32,
        total_peak_bytes: total.peak_bytes,
        unattributed_peak_bytes: unattributed.peak_bytes,
        allocator_retained_peak_bytes: retained.map(|retained| retained.peak_bytes),
        components: components.map(|(line, name)| (name.clone(), holding(line))).collect(),
        total,
        unattributed,
        allocator_retained: retained,
        own: holding(lines.own()),
        per_rank: Vec::new(),
        functions: functions(&all, &lines),
        init: None,
        phases: phases::of_ranks(&of_phases, &lines),
        libraries,
        comm_matrix: None,
        other_processes: groups.others.iter().map(|process| other(process, &lines)).collect(),
        not_looked_at_bytes: all.iter().filter_map(|process| process.log.unseen).map(|unseen| unseen.bytes).sum(),
        without_library: Vec::new(),
        notes: notes(&groups),
    };
    if options.comm_matrix {
        attribution.comm_matrix = comm::matrix(&all);
        attribution.notes.extend(attribution.comm_matrix.is_none().then(comm::why_none));
    }
    let mut series = time_lines.series(&lines, None, &rung);
    let mut initialized = Vec::new();
    for rank in ranks {
        attribution.per_rank.push(rank.shown);
        initialized.extend(rank.init);
        series.extend(rank.series);
    }
    attribution.init = init::of_ranks(&initialized, &lines);
    Attributed { attribution, series }
}

/// When the run was over: its ranks end one after the other, and those that are left then seem to hold what all shared;
/// without ranks, when the last of its large processes ended: a copy that was forked holds as much as who goes on. Nanoseconds
/// since it began.
fn end_of(ranks: &[Rank]) -> u64 {
    let of_ranks = ranks.iter().filter(|rank| rank.shown.rank.is_some()).filter_map(|rank| rank.end_ns).min();
    let most = ranks.iter().map(|rank| rank.shown.total_peak_bytes).max().unwrap_or(0);
    let large = ranks.iter().filter(|rank| rank.shown.total_peak_bytes >= most / 2);
    of_ranks.or(large.map(|rank| rank.end_ns.unwrap_or(u64::MAX)).max()).unwrap_or(u64::MAX)
}

fn rank<'a>(processes: &[&'a Process<'a>], lines: &Lines, rung: &str, by: Axis) -> Rank<'a> {
    let mut rss = Peaks::new(Measure::Rss, lines);
    let mut pss = Peaks::new(Measure::Pss, lines);
    let mut phases = RankPhases::new(processes, lines);
    let mut time_lines = TimeLines::of_rank(lines);
    replay(processes, lines, Sight::Each, |moment| {
        [&mut rss, &mut pss].into_iter().for_each(|peaks| peaks.see(moment));
        phases.see(moment);
        time_lines.see(moment);
    });
    let largest = processes.iter().copied().max_by_key(|process| peak_of(process, lines));
    let started = largest.map(|process| process.log.started.clone()).unwrap_or_default();
    let mut last = vec![Row::default(); lines.total() + 1];
    replay(largest.as_slice(), lines, Sight::Each, |moment| last.copy_from_slice(moment.rows));
    let mut initialized = processes.iter().filter_map(|process| init::of_process(process, lines));
    let init = initialized.next();
    let holding = |line: usize| RankHolding {
        peak_bytes: rss.of(line).bytes,
        peak_pss_bytes: pss.of(line).bytes,
        at_end_bytes: Measure::Rss.sum(&last[line]),
        at_peak: rss.of(line).kinds,
    };
    let components = lines.components().iter().enumerate();
    let shown = RankUse {
        rank: started.rank,
        world: largest.and_then(|process| process.rank).map(|id| id.world),
        pid: started.pid,
        start_ticks: started.start_ticks,
        host: started.host,
        command: started.executable,
        total_peak_bytes: rss.of(lines.total()).bytes,
        total_peak_pss_bytes: pss.of(lines.total()).bytes,
        unattributed_peak_bytes: rss.of(lines.unattributed()).bytes,
        allocator_retained_peak_bytes: (by == Axis::Owner).then(|| rss.of(lines.retained()).bytes),
        own_bytes: rss.of(lines.own()).bytes,
        components: components.map(|(line, name)| (name.clone(), holding(line))).collect(),
        init: init.as_ref().map(|init| init.rank),
        ended: largest.and_then(|process| process.log.ended.as_ref()).map(|end| end.how.clone()),
    };
    let key = ProcessKey { pid: started.pid, start_ticks: started.start_ticks };
    Rank {
        shown,
        rss,
        pss,
        end_ns: largest.and_then(|process| process.gone_ns),
        phases: phases.finish(),
        init,
        series: time_lines.series(lines, Some(key), rung),
    }
}

fn peak_of(process: &Process, lines: &Lines) -> u64 {
    let mut peaks = Peaks::new(Measure::Rss, lines);
    replay(&[process], lines, Sight::Each, |moment| peaks.see(moment));
    peaks.of(lines.total()).bytes
}

fn other(process: &Process, lines: &Lines) -> OtherProcess {
    let started = &process.log.started;
    OtherProcess {
        pid: started.pid,
        host: started.host.clone(),
        command: started.executable.clone(),
        peak_bytes: peak_of(process, lines),
    }
}

/// What each component's peak was made of, by library.
fn libraries(processes: &[&Process], lines: &Lines, peaks: &Peaks) -> Vec<LibraryUse> {
    let mut held: BTreeMap<(usize, String), [u64; 6]> = BTreeMap::new();
    replay(processes, lines, Sight::Together, |moment| {
        let is_peak = |line: usize| line < lines.components().len() && peaks.of(line).t_ns == moment.t_ns;
        if !(0..lines.components().len()).any(is_peak) {
            return;
        }
        for (process, cells) in processes.iter().zip(moment.held) {
            for ((owner, kind), cell) in cells {
                let line = lines.of_owner(process.log, *owner);
                if is_peak(line) {
                    let library = init::library(process.log, *owner);
                    held.entry((line, library)).or_default()[*kind as usize] += Measure::Pss.of(*cell);
                }
            }
        }
    });
    let library = |((line, library), kinds): ((usize, String), [u64; 6])| LibraryUse {
        component: lines.names()[line].to_string(),
        library,
        bytes: kinds.iter().sum(),
        kinds: KindBytes::of(kinds),
    };
    let mut libraries: Vec<LibraryUse> = held.into_iter().map(library).filter(|library| library.bytes > 0).collect();
    libraries.sort_by_key(|library| std::cmp::Reverse(library.bytes));
    libraries
}

/// What the functions were called for, all processes together.
fn functions(processes: &[&Process], lines: &Lines) -> Vec<FunctionUse> {
    let mut by_name: BTreeMap<(usize, &str), FunctionUse> = BTreeMap::new();
    for log in processes.iter().map(|process| process.log) {
        for (id, calls) in &log.calls {
            let Some(function) = log.functions.get(id) else { continue };
            let line = lines.of_component(log, function.component);
            let sum = by_name.entry((line, &function.name)).or_insert_with(|| FunctionUse {
                name: function.name.clone(),
                component: lines.names()[line].to_string(),
                ..FunctionUse::default()
            });
            sum.calls = sum.calls.saturating_add(calls.calls);
            sum.grew_bytes = sum.grew_bytes.saturating_add(calls.got_bytes);
            sum.shrank_bytes = sum.shrank_bytes.saturating_add(calls.gave_bytes);
            if let Some(ns) = log.durations.get(id) {
                *sum.seconds.get_or_insert_default() += *ns as f64 / 1e9;
            }
        }
    }
    let mut functions: Vec<FunctionUse> = by_name.into_values().filter(|function| function.calls > 0).collect();
    functions.sort_by_key(|function| std::cmp::Reverse((function.grew_bytes, function.shrank_bytes, function.calls)));
    functions
}
