//! What the logs of a run show, and that nothing is lost between its lines.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use attribute::{Attributed, KernelPeak, Options, ProcessLog, add_kernel_peaks, attribute};
use common::{APPLICATION, BEGIN, LLVM, Log, MIB, MPI, OWN, RETAINED, UNATTRIBUTED, Who};
use model::{Axis, MemoryKind, Messages, Series, Share, line_name, lines};
use proptest::collection::vec;
use proptest::prelude::*;

const OPTIONS: Options = Options { run: 0, started_unix_ns: BEGIN, by: Axis::Owner, comm_matrix: false };
const COUNTED: Options = Options { comm_matrix: true, ..OPTIONS };
const MS: u64 = 1_000_000;

fn rank(rank: u64) -> Who {
    Who { pid: 100 + rank, rank: Some(rank), ranks: 2, ..Who::default() }
}

fn of(logs: &[Log]) -> Attributed {
    with(OPTIONS, logs)
}

fn with(options: Options, logs: &[Log]) -> Attributed {
    let logs: Vec<ProcessLog> = logs.iter().map(Log::read).collect();
    attribute(&logs, options)
}

fn series<'a>(attributed: &'a Attributed, name: &str, pid: Option<i32>) -> &'a Series {
    let found = attributed.series.iter().find(|s| s.name == name && s.process.map(|key| key.pid) == pid);
    found.unwrap_or_else(|| panic!("no series {name} of {pid:?}"))
}

#[test]
fn each_component_has_its_own_peak_and_the_total_the_one_of_the_sum() {
    let one = of(&[Log::new(Who::default())
        .heap(1, "start", &[(APPLICATION, 10), (OWN, 3)])
        .heap(2, "timer", &[(MPI, 20), (UNATTRIBUTED, 1), (RETAINED, 2)])
        .heap(3, "timer", &[(APPLICATION, 12), (MPI, 5), (UNATTRIBUTED, 0)])
        .end(4, "exit")]);
    let found = &one.attribution;
    assert_eq!(found.ranks, 1);
    assert_eq!(found.total_peak_bytes, 33 * MIB);
    assert_eq!((found.unattributed_peak_bytes, found.allocator_retained_peak_bytes), (MIB, Some(2 * MIB)));
    let (application, mpi) = (&found.components["application"], &found.components["mpi"]);
    assert_eq!(
        (application.peak_bytes, application.at_end_bytes, application.at_peak.heap),
        (12 * MIB, 12 * MIB, 12 * MIB)
    );
    assert_eq!((mpi.peak_bytes, mpi.at_end_bytes), (20 * MIB, 5 * MIB));
    assert_eq!(found.own.peak_bytes, 3 * MIB);
    let alone = &found.per_rank[0];
    assert_eq!((alone.rank, alone.pid, alone.start_ticks, alone.own_bytes), (None, 100, 1000, 3 * MIB));
    assert_eq!((alone.total_peak_bytes, alone.components["mpi"].peak_bytes), (33 * MIB, 20 * MIB));
    assert_eq!(alone.ended.as_deref(), Some("exit"));
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn ranks_are_summed_at_each_moment_of_one_clock() {
    // Rank 1 began 10 ms later, when rank 0 had given its heap back.
    let logs = [
        Log::new(rank(0)).heap(1, "start", &[(APPLICATION, 10)]).heap(5, "timer", &[(APPLICATION, 2)]).end(30, "exit"),
        Log::new(Who { unix_ns: BEGIN + 10 * MS, ..rank(1) }).heap(1, "start", &[(APPLICATION, 9)]).end(20, "exit"),
    ];
    let both = of(&logs);
    let application = &both.attribution.components["application"];
    assert_eq!((both.attribution.ranks, application.peak_bytes), (2, 11 * MIB));
    assert_eq!((application.rank_peaks.mean, application.rank_peaks.max), (9.5 * MIB as f64, 10.0 * MIB as f64));
    assert!((application.rank_peaks.stddev - 0.5f64.sqrt() * MIB as f64).abs() < 1e-6);
    assert_eq!(application.at_end_bytes, 11 * MIB);
    let sum = series(&both, "attribute.application_bytes", None);
    let mib = |points: &Series| points.points.iter().map(|(t, v)| (t / MS, v / MIB as f64)).collect::<Vec<_>>();
    assert_eq!(mib(sum), [(1, 10.0), (5, 2.0), (11, 11.0)]);
    assert_eq!(mib(series(&both, "attribute.application_bytes", Some(101))), [(11, 9.0)]);
    assert_eq!(mib(series(&both, "attribute.application.heap_pss_bytes", Some(100))), [(1, 10.0), (5, 2.0)]);
}

#[test]
fn shared_memory_counts_once_in_the_sum_and_whole_by_rss() {
    let segment = [(MPI, MemoryKind::Shared, 64 << 10, 32 << 10), (MPI, MemoryKind::Hugetlb, 2 << 10, 2 << 10)];
    let both = of(&[Log::new(rank(0)).totals(1, "timer", &segment), Log::new(rank(1)).totals(1, "timer", &segment)]);
    let mpi = &both.attribution.components["mpi"];
    assert_eq!((mpi.at_peak.shared, mpi.at_peak.hugetlb), (64 * MIB, 4 * MIB));
    assert_eq!((mpi.peak_bytes, mpi.peak_rss_bytes), (68 * MIB, 132 * MIB));
    assert_eq!((mpi.rank_peaks.mean, mpi.rank_peaks_pss.mean), (66.0 * MIB as f64, 34.0 * MIB as f64));
}

#[test]
fn a_segment_that_ranks_come_to_one_after_the_other_counts_once_at_any_time() {
    let shared = |pss_mib: u64| [(MPI, MemoryKind::Shared, 64 << 10, pss_mib << 10)];
    // Rank 0 sees at its next look that rank 1 has come, and rank 1 that rank 0 has gone.
    let both = of(&[
        Log::new(rank(0))
            .totals(1, "timer", &shared(64))
            .totals(100, "timer", &shared(32))
            .totals(500, "exit", &[])
            .end(500, "exit"),
        Log::new(rank(1)).totals(40, "timer", &shared(32)).totals(510, "exit", &shared(64)).end(511, "exit"),
    ]);
    let mpi = &both.attribution.components["mpi"];
    assert_eq!((mpi.peak_bytes, mpi.at_end_bytes), (64 * MIB, 64 * MIB));
    assert_eq!(mpi.rank_peaks_pss.max, 64.0 * MIB as f64, "as rank 0 saw it, alone");
}

#[test]
fn what_children_shared_that_are_gone_when_the_parent_looks_counts_once() {
    let heap = |rss_mib: u64, pss_mib: u64| [(APPLICATION, MemoryKind::Heap, rss_mib << 10, pss_mib << 10)];
    let child = |pid| Log::new(Who { pid, parent: 100, ..Who::default() });
    let parent = || Log::new(Who::default()).heap(1, "start", &[(APPLICATION, 48)]);
    // Its own 16 MiB beside the parent's.
    let one = child(200).totals(300, "fork", &heap(56, 32)).totals(900, "timer", &heap(64, 40)).end(1300, "exit");
    let late = parent().totals(1400, "exit", &[]).end(1400, "exit");
    for (parent, at_end_mib) in [(late.clone(), 48), (parent(), 64)] {
        let found = of(&[parent, one.clone()]);
        let application = &found.attribution.components["application"];
        assert_eq!((application.peak_bytes, application.at_end_bytes), (64 * MIB, at_end_mib * MIB));
        let sum = series(&found, "attribute.application_bytes", None);
        let mib: Vec<_> = sum.points.iter().map(|(t, v)| (t / MS, *v as u64 / MIB)).collect();
        assert_eq!(mib[..3], [(1, 48), (300, 56), (900, 64)]);
    }
    let three = [
        child(200).totals(300, "fork", &heap(48, 16)).end(500, "exit"),
        child(201).totals(300, "fork", &heap(48, 16)).end(700, "exit"),
        late.clone(),
    ];
    assert_eq!(of(&three).attribution.components["application"].peak_bytes, 48 * MIB);
    // What calls exec at once, or was started by another, has a program of its own.
    let apart = child(200).totals(300, "start", &heap(56, 32)).end(1300, "exit");
    let other = Log::new(Who { pid: 200, ..Who::default() }).totals(300, "fork", &heap(56, 32)).end(1300, "exit");
    for beside in [apart, other] {
        assert_eq!(of(&[late.clone(), beside]).attribution.components["application"].peak_bytes, 80 * MIB);
    }
}

#[test]
fn what_a_process_was_before_exec_and_a_process_beside_it_are_of_the_same_rank() {
    let shell = Who { executable: "/bin/sh", ..rank(0) };
    let logs = [
        Log::new(shell.clone()).heap(1, "start", &[(APPLICATION, 3)]).heap(2, "exec", &[(APPLICATION, 4)]),
        Log::new(Who { unix_ns: BEGIN + 3 * MS, ..rank(0) }).heap(1, "start", &[(APPLICATION, 10)]).end(9, "exit"),
        Log::new(Who { pid: 500, unix_ns: BEGIN + 5 * MS, ..shell })
            .heap(1, "start", &[(APPLICATION, 1)])
            .end(2, "exit"),
    ];
    let one = of(&logs);
    assert_eq!(one.attribution.per_rank.len(), 1);
    let rank = &one.attribution.per_rank[0];
    assert_eq!((rank.pid, rank.command.as_str()), (100, "/usr/bin/app"));
    assert_eq!(
        (rank.components["application"].peak_bytes, rank.components["application"].at_end_bytes),
        (11 * MIB, 10 * MIB)
    );
    assert_eq!(one.attribution.notes, ["1 of 2 ranks left no log and are in no figure"], "exec is no kill");
    let line: Vec<_> = series(&one, "attribute.application_bytes", Some(100))
        .points
        .iter()
        .map(|p| (p.0 / MS, p.1 as u64 / MIB))
        .collect();
    assert_eq!(line, [(1, 3), (2, 4), (2, 0), (4, 10), (6, 11), (7, 10)]);
}

#[test]
fn a_rank_that_was_killed_counts_to_the_end() {
    let logs = [
        Log::new(rank(0)).heap(1, "start", &[(APPLICATION, 10)]),
        Log::new(rank(1)).heap(50, "start", &[(APPLICATION, 7)]).end(60, "exit"),
    ];
    let both = of(&logs).attribution;
    assert_eq!(both.components["application"].peak_bytes, 17 * MIB);
    assert_eq!((both.per_rank[0].ended.as_deref(), both.per_rank[1].ended.as_deref()), (None, Some("exit")));
    assert_eq!(both.notes.len(), 1);
    assert!(both.notes[0].contains("no end") && both.notes[0].ends_with("(rank 0)"), "{:?}", both.notes);
}

/// What the kernel kept of the process of [`Who::default`]; it ended after so many milliseconds.
fn kernel(max_rss_mib: u64, ended_ms: Option<u64>, exit_status: i32) -> KernelPeak {
    KernelPeak {
        host: Who::default().host.into(),
        pid: Who::default().pid as i32,
        start_ticks: Who::default().pid * 10 + 1,
        max_rss_bytes: max_rss_mib * MIB,
        ended_unix_ns: ended_ms.map(|ms| BEGIN + ms * MS),
        exit_status: Some(exit_status),
    }
}

fn with_kernel(logs: &[Log], peaks: &[KernelPeak]) -> Attributed {
    let mut logs: Vec<ProcessLog> = logs.iter().map(Log::read).collect();
    add_kernel_peaks(&mut logs, peaks);
    attribute(&logs, OPTIONS)
}

#[test]
fn what_a_killed_process_grew_by_since_its_last_look_is_unattributed() {
    let log = Log::new(Who::default()).heap(1, "start", &[(APPLICATION, 10), (OWN, 3)]);
    let log = log.heap(100, "timer", &[(APPLICATION, 57)]);
    for (ended_ms, why) in [(Some(1100), "not sampled in the last 1.00 s before"), (None, "not sampled again before")] {
        let found = with_kernel(std::slice::from_ref(&log), &[kernel(160, ended_ms, 137)]).attribution;
        assert_eq!(found.total_peak_bytes, 157 * MIB, "without the runtime's own");
        assert_eq!((found.unattributed_peak_bytes, found.components["application"].peak_bytes), (100 * MIB, 57 * MIB));
        assert_eq!((found.total.at_end_bytes, found.own.peak_bytes), (157 * MIB, 3 * MIB));
        let note = &found.notes[0];
        assert!(note.contains("100 MiB of the peak") && note.contains(why), "{note}");
        assert!(note.ends_with("it was killed by signal 9"), "{note}");
    }
}

#[test]
fn heap_that_a_killed_process_told_of_since_its_last_look_is_attributed() {
    let log = || Log::new(Who::default()).heap(1, "start", &[(APPLICATION, 10)]);
    let log = || log().heap(100, "timer", &[(APPLICATION, 57), (MPI, 5)]).grown(200, &[(0, 20)]);
    let killed = log().grown(300, &[(0, 60), (1, 2), (99, 7)]);
    let found = with_kernel(std::slice::from_ref(&killed), &[kernel(160, Some(1100), 137)]).attribution;
    assert_eq!((found.total_peak_bytes, found.unattributed_peak_bytes), (160 * MIB, 36 * MIB));
    assert_eq!((found.components["application"].peak_bytes, found.components["mpi"].peak_bytes), (117 * MIB, 7 * MIB));
    assert!(found.notes[0].contains("36.0 MiB of the peak"), "{:?}", found.notes);
    assert!(found.notes[0].contains("not sampled in the last 0.80 s before"), "{:?}", found.notes);
    let all = with_kernel(&[killed], &[kernel(124, Some(1100), 137)]).attribution;
    assert_eq!((all.total_peak_bytes, all.unattributed_peak_bytes), (124 * MIB, 0));
    // The next look knows better.
    let looked = log().heap(400, "timer", &[(APPLICATION, 58)]);
    let found = with_kernel(&[looked], &[kernel(63, Some(1100), 137)]).attribution;
    assert_eq!((found.total_peak_bytes, found.components["application"].peak_bytes), (63 * MIB, 58 * MIB));
}

#[test]
fn a_killed_process_holds_nothing_after_its_end() {
    let parent = Who { pid: 7, ..Who::default() };
    let killed = Log::new(Who::default()).heap(1, "start", &[(APPLICATION, 50)]);
    let later = Log::new(parent).heap(1, "start", &[(APPLICATION, 1)]).heap(9, "exit", &[(APPLICATION, 60)]);
    let found = with_kernel(&[killed, later.end(10, "exit")], &[kernel(50, Some(5), 134)]).attribution;
    assert_eq!((found.total_peak_bytes, found.unattributed_peak_bytes), (60 * MIB, 0));
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    assert_eq!(found.per_rank.iter().find(|rank| rank.pid == 100).unwrap().ended.as_deref(), Some("killed"));
}

#[test]
fn a_peak_that_exec_or_fork_explain_changes_nothing() {
    let log =
        || Log::new(Who::default()).heap(1, "start", &[(APPLICATION, 10)]).heap(100, "timer", &[(APPLICATION, 40)]);
    let parent = Log::new(Who { pid: 1, ..Who::default() }).heap(1, "start", &[(APPLICATION, 80)]).end(500, "exit");
    let found = with_kernel(&[log(), parent], &[kernel(80, Some(201), 137)]).attribution;
    assert_eq!(found.unattributed_peak_bytes, 0, "its parent held as much when it forked");
}

#[test]
fn a_peak_between_two_looks_is_in_the_total_and_unattributed() {
    let log = Log::new(Who::default()).heap(1, "start", &[(APPLICATION, 10)]).heap(100, "timer", &[(APPLICATION, 40)]);
    let ended = log.heap(199, "exit", &[(APPLICATION, 12)]).end(200, "exit");
    let found = with_kernel(&[ended], &[kernel(80, Some(201), 0)]).attribution;
    assert_eq!(
        (found.total_peak_bytes, found.unattributed_peak_bytes, found.not_looked_at_bytes),
        (80 * MIB, 40 * MIB, 40 * MIB)
    );
    assert_eq!((found.components["application"].peak_bytes, found.total.at_end_bytes), (40 * MIB, 12 * MIB));
    assert!(found.notes[0].ends_with("not sampled when it held the most"), "{:?}", found.notes);
}

#[test]
fn a_peak_of_the_kernel_that_is_no_more_than_was_seen_changes_nothing() {
    let exec = Log::new(Who::default()).heap(1, "start", &[(APPLICATION, 90)]).heap(2, "exec", &[]);
    let log = Log::new(Who { unix_ns: BEGIN + 3 * MS, ..Who::default() }).heap(1, "start", &[(APPLICATION, 40)]);
    let log = log.end(3, "exit");
    let hugetlb = [(APPLICATION, MemoryKind::Hugetlb, 64 << 10, 64 << 10)];
    let pool = Log::new(Who { pid: 8, ..Who::default() }).totals(1, "start", &hugetlb).end(2, "exit");
    let before = of(&[exec.clone(), log.clone(), pool.clone()]);
    let elsewhere = KernelPeak { host: "node2".into(), ..kernel(500, Some(7), 137) };
    let other = KernelPeak { pid: 8, start_ticks: 80, ..kernel(1, Some(7), 0) };
    assert_eq!(with_kernel(&[exec, log, pool], &[kernel(90, Some(7), 0), elsewhere, other]), before);
}

#[test]
fn what_a_run_held_at_its_end_is_what_its_last_large_process_did() {
    let parent = Who { pid: 7, ..Who::default() };
    let copy = Log::new(Who { pid: 8, ..Who::default() }).heap(2, "fork", &[(APPLICATION, 64)]).end(3, "exit");
    let shrinks = |log: Log| log.heap(1, "start", &[(APPLICATION, 60)]).heap(5, "timer", &[(APPLICATION, 10)]);
    let all = of(&[shrinks(Log::new(parent)).end(9, "exit"), copy]).attribution;
    assert_eq!((all.total_peak_bytes, all.total.at_end_bytes), (124 * MIB, 10 * MIB));
}

#[test]
fn processes_without_a_rank_stand_beside_a_run_with_ranks_and_alone_they_are_the_run() {
    let shell = Who { pid: 7, executable: "/bin/sh", ..Who::default() };
    let shell = Log::new(shell).heap(1, "start", &[(APPLICATION, 2)]).end(9, "exit");
    let with_ranks = of(&[shell.clone(), Log::new(rank(0)).heap(1, "start", &[(APPLICATION, 5)]).end(9, "exit")]);
    assert_eq!((with_ranks.attribution.ranks, with_ranks.attribution.total_peak_bytes), (1, 5 * MIB));
    let other = &with_ranks.attribution.other_processes[0];
    assert_eq!((other.pid, other.command.as_str(), other.peak_bytes), (7, "/bin/sh", 2 * MIB));
    assert!(with_ranks.attribution.notes[0].contains("1 of 2 ranks left no log"), "{:?}", with_ranks.attribution.notes);
    let child = Log::new(Who { pid: 8, ..Who::default() }).heap(1, "start", &[(APPLICATION, 5)]).end(9, "exit");
    let alone = of(&[child, shell]).attribution;
    assert_eq!((alone.ranks, alone.total_peak_bytes, alone.other_processes.len()), (2, 7 * MIB, 0));
    assert_eq!(alone.per_rank.iter().map(|rank| rank.pid).collect::<Vec<_>>(), [7, 8], "in the order of their start");
}

#[test]
fn what_init_brought_is_told_by_component_and_library() {
    let log = |number: u64, llvm: u64| {
        Log::new(rank(number))
            .function(1, 1, "MPI_Initialized")
            .function(2, 1, "mpi_init_")
            .heap(1, "start", &[(APPLICATION, 4), (LLVM, 1)])
            .heap(2, "init", &[(APPLICATION, 5)])
            .heap(3, "timer", &[(LLVM, 20), (OWN, 9)])
            .heap(4, "initialized", &[(LLVM, llvm + 1), (MPI, 8), (APPLICATION, 4)])
            .heap(5, "timer", &[(APPLICATION, 100)])
            .calls(6, &[(1, 3, 0, 0), (2, 1, 40 * MIB, MIB)])
            .durations(6, &[(2, 250_000_000)])
            .end(6, "exit")
    };
    let found = of(&[log(0, 40), log(1, 42)]).attribution;
    let init = found.init.unwrap();
    assert_eq!((init.function.as_str(), init.ranks, init.seconds), ("mpi_init_", 2, 0.002));
    assert_eq!(init.grew_bytes.mean, 48.0 * MIB as f64);
    assert_eq!(
        init.components,
        BTreeMap::from([("application".into(), -(MIB as i64)), ("mpi".into(), 49 * MIB as i64)])
    );
    let largest = &init.libraries[0];
    assert_eq!(
        (largest.library.as_str(), largest.component.as_str(), largest.grew_bytes),
        ("libLLVM.so", "mpi", 41 * MIB as i64)
    );
    let rank = found.per_rank[1].init.unwrap();
    assert_eq!((rank.begin_seconds, rank.end_seconds, rank.grew_bytes), (0.002, 0.004, 49 * MIB as i64));
    assert_eq!(found.functions[0].name, "mpi_init_");
    assert_eq!(
        (found.functions[0].calls, found.functions[0].grew_bytes, found.functions[0].shrank_bytes),
        (2, 80 * MIB, 2 * MIB)
    );
    assert_eq!((found.functions[1].name.as_str(), found.functions[1].calls), ("MPI_Initialized", 6));
    assert_eq!((found.functions[0].seconds, found.functions[1].seconds), (Some(0.5), None));
}

#[test]
fn libraries_make_up_their_component_at_its_peak() {
    let log = Log::new(Who::default())
        .heap(1, "start", &[(MPI, 10), (LLVM, 30)])
        .heap(2, "timer", &[(MPI, 20)])
        .heap(3, "timer", &[(LLVM, 1), (APPLICATION, 500)])
        .end(4, "exit");
    let found = of(&[log]).attribution;
    let listed: Vec<_> = found
        .libraries
        .iter()
        .map(|of| (of.component.as_str(), of.library.as_str(), of.bytes / MIB, of.kinds.heap / MIB))
        .collect();
    assert_eq!(listed, [("application", "", 500, 500), ("mpi", "libLLVM.so", 30, 30), ("mpi", "", 20, 20)]);
}

#[test]
fn a_phase_has_what_was_there_at_its_begin_and_at_its_end() {
    // Totals are taken at each mark, just before it.
    let log = Log::new(Who::default())
        .heap(1, "start", &[(APPLICATION, 1)])
        .heap(9, "mark", &[(APPLICATION, 6)])
        .mark(10, "assemble")
        .heap(20, "mark", &[(APPLICATION, 50)])
        .mark(20, "solve")
        .heap(25, "timer", &[(APPLICATION, 20)])
        .heap(29, "mark", &[(APPLICATION, 10)])
        .mark(30, "assemble")
        .heap(31, "timer", &[(APPLICATION, 70)])
        .end(40, "exit");
    let phases = of(&[log]).attribution.phases;
    let listed: Vec<_> = phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.begin_seconds, phase.components["application"].mean as u64 / MIB))
        .collect();
    assert_eq!(listed, [("start", 0.0, 6), ("assemble", 0.01, 70), ("solve", 0.02, 50)]);
    assert_eq!(phases[2].total.max, 50.0 * MIB as f64);
    assert!(of(&[Log::new(Who::default()).end(1, "exit")]).attribution.phases.is_empty());
}

#[test]
fn the_time_lines_of_many_ranks_are_bounded_and_keep_the_peak() {
    let mut logs = Vec::new();
    for number in 0..8 {
        let mut log = Log::new(rank(number));
        for step in 0..4000 {
            let spike = if (number, step) == (5, 1234) { 500 } else { 0 };
            log = log.heap(1 + step * 10 + number, "timer", &[(APPLICATION, 1 + step % 7 + spike)]);
        }
        logs.push(log.end(50_000, "exit"));
    }
    let all = of(&logs);
    let sum = series(&all, "attribute.application_bytes", None);
    assert!((5_000..=10_001).contains(&sum.points.len()), "{} points", sum.points.len());
    assert_eq!(sum.peak(), Some(all.attribution.components["application"].peak_bytes as f64));
    assert_eq!(series(&all, "attribute.application_bytes", Some(105)).points.len(), 4000);
}

#[test]
fn by_touch_memory_is_whose_code_touched_it_first() {
    let by_touch = Options { by: Axis::Touch, ..OPTIONS };
    let log = |number: u64, rung: &str| {
        Log::new(rank(number))
            .note(rung)
            .heap(1, "start", &[(APPLICATION, 64), (RETAINED, 9)])
            .touched(1, "start", &[(APPLICATION, 4), (OWN, 1)])
            .heap(5, "exit", &[])
            .touched(5, "exit", &[(MPI, 65), (UNATTRIBUTED, 4)])
            .end(5, "exit")
    };
    let logs = [log(0, "by touch: page-fault events"), log(1, "by touch: page-fault events")];
    let owned = of(&logs).attribution;
    assert_eq!((owned.by, owned.components["application"].peak_bytes), (Axis::Owner, 128 * MIB));
    assert!(owned.notes.is_empty(), "{:?}", owned.notes);
    let attributed = with(by_touch, &logs);
    let found = &attributed.attribution;
    assert_eq!((found.by, found.rung.as_str(), found.notes.len()), (Axis::Touch, "page-fault events", 0));
    assert_eq!((found.components["mpi"].peak_bytes, found.components["application"].peak_bytes), (130 * MIB, 8 * MIB));
    assert_eq!((found.total_peak_bytes, found.total.at_end_bytes), (146 * MIB, 146 * MIB));
    assert_eq!((found.unattributed_peak_bytes, found.own.peak_bytes), (8 * MIB, 2 * MIB));
    assert_eq!(
        (found.allocator_retained_peak_bytes, &found.allocator_retained, found.libraries.len()),
        (None, &None, 0)
    );
    assert_eq!(series(&attributed, "attribute.mpi_bytes", Some(100)).rung, "in-process runtime: page-fault events");
    let untold = with(by_touch, &[Log::new(rank(0)).heap(1, "start", &[(MPI, 1)])]).attribution;
    assert_eq!(untold.total_peak_bytes, 0);
    assert!(untold.rung.contains("--by touch"), "{}", untold.rung);
}

#[test]
fn ranks_of_another_world_stand_beside_those_that_spawned_them() {
    let parent = Who { ranks: 1, world: "job@1", ..rank(0) };
    let child = |number: u64| Who { pid: 200 + number, world: "job@2", unix_ns: BEGIN + 5 * MS, ..rank(number) };
    let logs = [
        Log::new(child(0)).heap(1, "start", &[(APPLICATION, 3)]).sent(2, &[(None, 1, 7)]).end(9, "exit"),
        Log::new(parent).heap(1, "start", &[(APPLICATION, 10)]).sent(2, &[(None, 2, 20)]).end(20, "exit"),
        Log::new(child(1)).heap(1, "start", &[(APPLICATION, 4)]).sent(2, &[(Some(0), 5, 50)]).end(9, "exit"),
    ];
    let found = with(COUNTED, &logs).attribution;
    assert_eq!((found.ranks, found.components["application"].peak_bytes), (3, 17 * MIB));
    let ranks: Vec<_> = found.per_rank.iter().map(|rank| (rank.rank, rank.id().unwrap().to_string())).collect();
    assert_eq!(ranks, [(Some(0), "0".into()), (Some(0), "w2:0".into()), (Some(1), "w2:1".into())]);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let matrix = found.comm_matrix.unwrap();
    assert_eq!(matrix.ranks, ["0", "w2:0", "w2:1"]);
    assert_eq!(matrix.bytes, [[0, 0, 0], [0, 0, 0], [0, 50, 0]]);
    assert_eq!(matrix.to_other_worlds, Messages { messages: 3, bytes: 27 });
}

#[test]
fn messages_are_counted_by_sender_and_receiver_though_one_left_no_log() {
    let shell = Who { executable: "/bin/sh", ..rank(0) };
    let logs = [
        Log::new(shell).sent(1, &[(Some(1), 1, 1)]).heap(2, "exec", &[]),
        Log::new(Who { unix_ns: BEGIN + 3 * MS, ranks: 3, ..rank(0) })
            .sent(1, &[(Some(1), 2, 20), (Some(2), 1, 4)])
            .sent(2, &[(Some(1), 3, 30)])
            .end(9, "exit"),
        Log::new(rank(1)).sent(2, &[(Some(1), 1, 0)]).end(9, "exit"),
    ];
    let found = with(COUNTED, &logs).attribution.comm_matrix.unwrap();
    assert_eq!(found.ranks, ["0", "1", "2"]);
    assert_eq!(found.messages, [[0, 4, 1], [0, 1, 0], [0, 0, 0]]);
    assert_eq!(found.bytes, [[0, 31, 4], [0, 0, 0], [0, 0, 0]]);
    let far = with(COUNTED, &[Log::new(rank(0)).sent(1, &[(Some(u64::from(u32::MAX) - 1), 1, 1)])]).attribution;
    assert_eq!(far.comm_matrix, None);
    assert!(far.notes.iter().any(|note| note.contains("no matrix of messages")), "{:?}", far.notes);
}

#[test]
fn totals_at_a_process_end_or_that_a_thread_tells_after_it_are_its_last() {
    for told_ms in [5, 6] {
        let logs = [
            Log::new(rank(0)).heap(1, "start", &[(APPLICATION, 10)]).end(5, "exit").heap(told_ms, "timer", &[(MPI, 7)]),
            Log::new(rank(1)).heap(1, "start", &[(APPLICATION, 1)]).end(20, "exit"),
        ];
        let both = of(&logs);
        let first = &both.attribution.per_rank[0];
        assert_eq!((first.total_peak_bytes, first.components["application"].at_end_bytes), (17 * MIB, 10 * MIB));
        assert_eq!((both.attribution.total_peak_bytes, both.attribution.total.at_end_bytes), (18 * MIB, 18 * MIB));
        let line = series(&both, "attribute.total_bytes", None);
        assert_eq!(line.at(10 * MS), Some(MIB as f64), "it is gone");
    }
}

#[test]
fn no_logs_are_no_ranks() {
    let nothing = attribute(&[], OPTIONS);
    assert_eq!((nothing.attribution.ranks, nothing.series.len()), (0, 0));
}

/// Owner, kind, RSS and PSS; at a time in milliseconds.
type Step = (u64, Vec<(u64, usize, u64, u64)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let owner = prop_oneof![Just(0u64), Just(1), Just(2), 8..12u64];
    vec((0..5u64, vec((owner, 0..6usize, 0..1u64 << 20, 0..1u64 << 20), 0..6)), 0..12)
}

/// A log of these steps, and when it had the last.
fn stepped(who: Who, steps: &[Step]) -> (Log, u64) {
    let (mut log, mut ms) = (Log::new(who), 0);
    for (pause, held) in steps {
        ms += pause;
        let held: Vec<_> =
            held.iter().map(|(owner, kind, rss, pss)| (*owner, MemoryKind::ALL[*kind], *rss, *pss)).collect();
        log = log.totals(ms, "timer", &held);
    }
    (log, ms)
}

proptest! {
    #[test]
    fn components_unattributed_and_retained_are_the_total_at_every_moment(ranks in vec((steps(), any::<bool>()), 1..4)) {
        let mut logs = Vec::new();
        for (number, (steps, ends)) in ranks.iter().enumerate() {
            let (log, ms) = stepped(rank(number as u64), steps);
            logs.push(if *ends { log.end(ms + 1, "exit") } else { log });
        }
        let found = of(&logs);
        let value = |line: &str, kind, share, pid: Option<i32>, t_ns| {
            let name = line_name(line, kind, share);
            let series = found.series.iter().find(|s| s.name == name && s.process.map(|key| key.pid) == pid);
            series.and_then(|s| s.at(t_ns)).unwrap_or(0.0)
        };

        // Between its lines nothing is lost, of any rank and of all together.
        let lines_but_own = ["application", "mpi", lines::UNATTRIBUTED, lines::RETAINED];
        let moments: BTreeSet<u64> = found.series.iter().flat_map(|s| s.points.iter().map(|(t_ns, _)| *t_ns)).collect();
        let pids = (0..ranks.len()).map(|number| Some(100 + number as i32));
        for (t_ns, pid) in moments.iter().flat_map(|t_ns| pids.clone().chain([None]).map(|pid| (*t_ns, pid))) {
            for share in [Share::Whole, Share::Proportional] {
                let of_lines = lines_but_own.map(|line| value(line, None, share, pid, t_ns));
                prop_assert_eq!(of_lines.iter().sum::<f64>(), value(lines::TOTAL, None, share, pid, t_ns));
                for (line, sum) in lines_but_own.iter().zip(of_lines) {
                    let kinds = MemoryKind::ALL.map(|kind| value(line, Some(kind), share, pid, t_ns));
                    prop_assert_eq!(kinds.iter().sum::<f64>(), sum);
                }
            }
        }

        // The total of each rank is what its log says.
        for (number, (steps, _)) in ranks.iter().enumerate() {
            let pid = Some(100 + number as i32);
            let mut held: BTreeMap<(u64, usize), (u64, u64)> = BTreeMap::new();
            let mut at: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            let mut ms = 0;
            for (pause, now) in steps {
                ms += pause;
                held.extend(now.iter().map(|(owner, kind, rss, pss)| ((*owner, *kind), (*rss << 10, *pss << 10))));
                let counted = || held.iter().filter(|((owner, _), _)| *owner != OWN).map(|(_, bytes)| *bytes);
                at.insert(ms * MS, (counted().map(|(rss, _)| rss).sum(), counted().map(|(_, pss)| pss).sum()));
            }
            for (t_ns, (rss, pss)) in &at {
                prop_assert_eq!(value(lines::TOTAL, None, Share::Whole, pid, *t_ns), *rss as f64);
                prop_assert_eq!(value(lines::TOTAL, None, Share::Proportional, pid, *t_ns), *pss as f64);
            }
            let shown = &found.attribution.per_rank[number];
            prop_assert_eq!(shown.total_peak_bytes, at.values().map(|(rss, _)| *rss).max().unwrap_or(0));
            prop_assert_eq!(shown.total_peak_pss_bytes, at.values().map(|(_, pss)| *pss).max().unwrap_or(0));
        }
    }
}

/// How a process ends: killed, exit, exec to another that ends at once.
#[derive(Clone, Copy, Debug)]
enum How {
    Killed,
    Exit,
    Exec,
}

proptest! {
    #[test]
    fn what_is_held_at_the_end_is_at_most_the_peak(
        processes in vec(
            (0..3u64, 0..9u64, steps(), prop_oneof![Just(How::Killed), Just(How::Exit), Just(How::Exec)]), 1..5,
        ),
    ) {
        let mut logs = Vec::new();
        for (pid, (number, begin, steps, how)) in (100..).zip(&processes) {
            let who = Who { pid, unix_ns: BEGIN + begin * MS, ..rank(*number) };
            let (log, ms) = stepped(who.clone(), steps);
            // The last totals and the end are of the same time.
            match how {
                How::Killed => logs.push(log),
                How::Exit => logs.push(log.heap(ms, "exit", &[(APPLICATION, 1 << 11)]).end(ms, "exit")),
                How::Exec => {
                    logs.push(log.heap(ms, "exec", &[(MPI, 1 << 12)]));
                    let later = Who { unix_ns: who.unix_ns + ms * MS, ..who };
                    logs.push(Log::new(later).heap(0, "start", &[(APPLICATION, 1)]).end(0, "exit"));
                }
            }
        }
        let found = of(&logs).attribution;
        for held in found.components.values().chain([&found.total, &found.unattributed]) {
            prop_assert!(held.at_end_bytes <= held.peak_bytes, "{:?}", held);
        }
        for held in found.per_rank.iter().flat_map(|rank| rank.components.values()) {
            prop_assert!(held.at_end_bytes <= held.peak_bytes, "{:?}", held);
        }
    }
}
