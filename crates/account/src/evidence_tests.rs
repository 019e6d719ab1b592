//! Doubts about observations made by hand.

use std::collections::BTreeMap;

use model::{
    Buffers, BytesMoved, Doubt, DoubtKind, Evidence, FileDemand, ForeignFile, Header, Named, Observation, RecordKind,
    RunRole, Rusage, Series, Target, Unit, names,
};

use super::{doubts, limit_not_held, work_differs};
use crate::account;

const MIB: u64 = 1 << 20;

fn header(command: &[&str]) -> Header {
    Header {
        kind: RecordKind::Run,
        bursar_version: "0.1.0".into(),
        host: "h".into(),
        boot_id: "b".into(),
        kernel: "6.18".into(),
        cpus: 2,
        memory_bytes: 1 << 34,
        page_bytes: 4096,
        command: command.iter().map(|word| word.to_string()).collect(),
        directory: "/".into(),
        started_unix_ns: 0,
        placement: "cgroup v2 memory controller".into(),
        swap: "no swap".into(),
        options: BTreeMap::new(),
    }
}

/// A run whose lines have these peaks, in MiB.
fn run(lines: &[(&str, u64)], evidence: Evidence) -> Observation {
    let series = lines.iter().map(|(name, mib)| Series {
        name: name.to_string(),
        process: None,
        unit: Unit::Bytes,
        rung: "cgroup v2".into(),
        points: vec![(0, 0.0), (1, (mib * MIB) as f64)],
    });
    Observation {
        series: series.collect(),
        evidence,
        ..Observation::begun(0, RunRole::Plain, Target::Command, String::new(), 0)
    }
}

fn kinds(run: &Observation, command: &[&str]) -> Vec<(DoubtKind, Option<u64>, bool)> {
    let of = |doubt: Doubt| (doubt.kind, doubt.bytes.map(|bytes| bytes / MIB), doubt.voids);
    doubts(run, &header(command)).into_iter().map(of).collect()
}

fn named(name: &str, mib: u64) -> Named {
    Named { name: name.into(), bytes: Some(mib * MIB) }
}

fn with_rss(run: Observation, mib: u64) -> Observation {
    Observation { rusage: Some(Rusage { max_rss_bytes: mib * MIB, ..Default::default() }), ..run }
}

fn cached(mib: u64) -> Option<FileDemand> {
    let file = ForeignFile { path: Some("/data".into()), device: 1, inode: 2, cached_bytes: mib * MIB };
    Some(FileDemand { foreign: vec![file], ..Default::default() })
}

const CHARGED: [(&str, u64); 2] = [(names::CHARGE, 40), (names::HEAP, 38)];

#[test]
fn a_run_like_others_leaves_no_doubt() {
    let moved = Some(BytesMoved { read: 500 * MIB, ..Default::default() });
    let seen = with_rss(run(&CHARGED, Evidence { moved, ..Default::default() }), 41);
    let seen = Observation { file_demand: cached(1), ..seen };
    assert_eq!(kinds(&seen, &["sort", "big"]), []);
    assert_eq!(kinds(&run(&[], Evidence::default()), &[]), []);
}

#[test]
fn a_peak_rss_above_the_charge_shows_that_the_command_left() {
    let left = with_rss(run(&CHARGED, Evidence::default()), 113);
    assert_eq!(kinds(&left, &["x"]), [(DoubtKind::LeftCgroup, Some(113), true)]);
    let seen = account(&left, &header(&["x"]));
    assert_eq!((seen.peak_charge_bytes, seen.floor_bytes, seen.peak_breakdown.heap), (None, None, None));
    assert!(seen.doubts[0].sentence.contains("or mapped files"), "{:?}: no sample saw its RSS", seen.doubts);
    let mut sampled = left.clone();
    sampled.series.extend(run(&[(names::TREE_RSS, 110)], Evidence::default()).series);
    assert!(doubts(&sampled, &header(&["x"]))[0].sentence.starts_with("the command left its cgroup"));
    // What it maps of others' page cache is in its RSS alone, and its RSS tells how much that is.
    let mapped = Observation { file_demand: cached(70), ..left.clone() };
    assert_eq!(kinds(&mapped, &["x"]), [(DoubtKind::CachedBefore, Some(73), false)]);
    // So it is where references are told of a few of the pages only, and scans found all.
    let scanned = FileDemand { mapped_scanned_bytes: 70 * MIB, ..cached(8).unwrap() };
    let with_file = |mib| {
        let mut run = Observation { file_demand: Some(scanned.clone()), ..left.clone() };
        run.kept.most_cached_bytes = Some(mib * MIB);
        run
    };
    assert_eq!(kinds(&with_file(1), &["x"]), [(DoubtKind::CachedBefore, Some(73), false)]);
    assert_eq!(kinds(&with_file(70), &["x"])[0].0, DoubtKind::LeftCgroup, "what it mapped was charged to it");
    let mut mapped = left.clone();
    mapped.series.extend(run(&[(names::TREE_RSS_FILE, 72)], Evidence::default()).series);
    // Which files it mapped is not known where no reference is told.
    mapped.series.extend(run(&[(names::TREE_RSS, 110)], Evidence::default()).series);
    assert_eq!(kinds(&mapped, &["x"]), [(DoubtKind::CachedBefore, Some(73), false)]);
    // No sample saw it at its peak, and none what was charged then.
    let mut missed = mapped.clone();
    missed.rusage.as_mut().unwrap().max_rss_bytes = 150 * MIB;
    let is_cached = |run: &Observation| kinds(run, &["x"]).iter().any(|(kind, ..)| *kind == DoubtKind::CachedBefore);
    assert!(!is_cached(&missed));
    missed.kept.charge_bytes = Some(70 * MIB);
    assert!(is_cached(&missed));
    let mostly = with_rss(mapped, 133);
    assert_eq!(kinds(&mostly, &["x"]), [(DoubtKind::CachedBefore, Some(93), false)]);
    let of_a_search = Observation { role: RunRole::Reference, ..mostly };
    assert_eq!(kinds(&of_a_search, &["x"]), [(DoubtKind::CachedBefore, Some(93), true)]);
    // Nor does it show where the limit has made it give memory back, or where there is no charge.
    assert_eq!(kinds(&Observation { limit_bytes: Some(40 * MIB), ..left }, &["x"]), []);
    assert_eq!(kinds(&with_rss(run(&[], Evidence::default()), 113), &["x"]), []);
}

#[test]
fn shared_memory_that_no_sample_saw_is_not_counted_among_files() {
    let shared_opened = vec![named("/dev/shm/x", 64)];
    let left = with_rss(run(&CHARGED, Evidence { shared_opened, ..Default::default() }), 105);
    let reader = Observation { file_demand: cached(11), ..left };
    assert_eq!(
        kinds(&reader, &["x"]),
        [(DoubtKind::SharedBefore, Some(64), false), (DoubtKind::CachedBefore, Some(11), false)]
    );
}

#[test]
fn processes_outside_void_the_figure_unless_they_are_small() {
    let outside = |mib| Evidence { outside: vec![named("sh", 1), named("worker", mib)], ..Default::default() };
    assert_eq!(kinds(&run(&CHARGED, outside(10)), &["x"]), [(DoubtKind::LeftCgroup, Some(10), true)]);
    let left = doubts(&run(&CHARGED, outside(10)), &header(&["x"]));
    assert!(
        left[0].sentence.ends_with("(worker and 1 more, the largest with at least 10.0 MiB, are in another)"),
        "{left:?}: looks tell what it had until then"
    );
    assert_eq!(kinds(&run(&CHARGED, outside(2)), &["x"]), [(DoubtKind::LeftCgroup, Some(2), false)]);
}

#[test]
fn clients_are_known_by_name() {
    let seen = run(&CHARGED, Evidence::default());
    assert_eq!(kinds(&seen, &["nice", "docker", "run"]), [(DoubtKind::Client, None, true)]);
    assert_eq!(kinds(&seen, &["sh", "-c", "make; docker run x"]), [(DoubtKind::Client, None, false)]);
    // A job over several nodes is observed on each.
    let whole = Observation { sources: BTreeMap::from([("parts".into(), "2 records".into())]), ..seen };
    assert_eq!(kinds(&whole, &["srun", "x"]), []);
}

#[test]
fn shared_memory_counts_as_far_as_it_is_charged_elsewhere() {
    let mapped = |mib| Evidence { shared_mapped_bytes: Some(mib * MIB), ..Default::default() };
    assert_eq!(kinds(&run(&CHARGED, mapped(64)), &["x"]), [(DoubtKind::SharedBefore, Some(64), false)]);
    let own = [CHARGED[0], CHARGED[1], (names::SHARED, 64)];
    assert_eq!(kinds(&run(&own, mapped(64)), &["x"]), []);
    // A file on tmpfs that somebody opened counts if the job read or mapped as much.
    let moved = |mib| Some(BytesMoved { read: mib * MIB, ..Default::default() });
    let opened =
        |mib| Evidence { shared_before: vec![named("/dev/shm/x", 64)], moved: moved(mib), ..Default::default() };
    let of = |mib| Observation { file_demand: cached(0), ..run(&CHARGED, opened(mib)) };
    assert_eq!(kinds(&of(64), &["x"]), [(DoubtKind::SharedBefore, Some(64), false)]);
    assert_eq!(kinds(&of(1), &["x"]), []);
}

#[test]
fn huge_pages_of_the_pool_count_as_far_as_they_are_charged_elsewhere() {
    let mapped = Evidence { hugetlb_mapped_bytes: Some(64 * MIB), ..Default::default() };
    let of = |charged| run(&[CHARGED[0], (names::HUGETLB, charged)], mapped.clone());
    assert_eq!(kinds(&of(0), &["x"]), [(DoubtKind::SharedBefore, Some(64), false)]);
    assert_eq!(kinds(&of(64), &["x"]), []);
}

#[test]
fn files_in_memory_are_a_doubt_where_no_cgroup_charges_them() {
    let evidence = Evidence { files_in_memory: Some(named("/memfd:x (deleted)", 120)), ..Default::default() };
    let tree = [(names::TREE_RSS, 9)];
    assert_eq!(kinds(&run(&tree, evidence.clone()), &["x"]), [(DoubtKind::FilesInMemory, Some(120), false)]);
    let kept = model::KeptPeaks { charge_bytes: Some(130 * MIB), ..Default::default() };
    let charged = Observation { kept, ..run(&CHARGED, evidence.clone()) };
    assert_eq!(kinds(&charged, &["x"]), [], "the kernel's peak of the cgroup has them");
    let large = [(names::TREE_RSS, 9_000)];
    assert_eq!(kinds(&run(&large, evidence), &["x"]), []);
}

#[test]
fn pipes_are_a_doubt_up_to_what_was_written() {
    let tree = [(names::TREE_RSS, 9)];
    let buffers = Buffers { pipes: 60, pipe_bytes: 60 * MIB, ..Default::default() };
    let of = |lines: &[(&str, u64)], written: Option<u64>| {
        let moved = written.map(|written| BytesMoved { written, ..Default::default() });
        kinds(&run(lines, Evidence { buffers, moved, ..Default::default() }), &["x"])
    };
    assert_eq!(of(&tree, None), [(DoubtKind::NotCounted, Some(60), false)]);
    assert_eq!(of(&tree, Some(30 * MIB)), [(DoubtKind::NotCounted, Some(30), false)]);
    assert_eq!(of(&tree, Some(100)), []);
    assert_eq!(of(&CHARGED, None), [], "a cgroup charges them");
    let sockets = Buffers { unknown_sockets: 20, socket_bytes: 4 * MIB, ..Default::default() };
    let unknown = run(&tree, Evidence { buffers: sockets, ..Default::default() });
    assert_eq!(kinds(&unknown, &["x"]), [(DoubtKind::NotCounted, Some(4), false)]);
}

#[test]
fn without_references_what_was_read_is_not_seen() {
    let moved = Some(BytesMoved { read: 286 * MIB, ..Default::default() });
    let read = Evidence { moved, ..Default::default() };
    let tree = run(&[(names::TREE_RSS, 3)], read.clone());
    assert_eq!(kinds(&tree, &["x"]), [(DoubtKind::NotSeen, Some(286), false)]);
    let charged = run(&[CHARGED[0], (names::FILE, 284)], read.clone());
    assert_eq!(kinds(&charged, &["x"]), []);
    let warm = run(&[CHARGED[0], (names::FILE, 1)], read);
    assert_eq!(kinds(&warm, &["x"]), [(DoubtKind::NotSeen, Some(285), false)]);
}

#[test]
fn with_references_from_inside_what_is_charged_to_nobody_here_is_missing() {
    let of = |lines: &[(&'static str, u64)], storage_read: u64| {
        let moved = Some(BytesMoved { read: 360 * MIB, storage_read: storage_read * MIB, ..Default::default() });
        let file_demand = Some(FileDemand { distinct_bytes: 60 * MIB, ..FileDemand::default() });
        Observation { file_demand, ..run(lines, Evidence { moved, ..Evidence::default() }) }
    };
    let tree = [(names::TREE_RSS, 9)];
    assert_eq!(kinds(&of(&tree, 0), &["x"]), [(DoubtKind::NotSeen, Some(60), false)]);
    let warm = [CHARGED[0], (names::FILE, 1)];
    assert_eq!(kinds(&of(&warm, 0), &["x"]), [(DoubtKind::NotSeen, Some(59), false)]);
    assert_eq!(kinds(&of(&warm, 60), &["x"]), [], "read from storage, and reclaimed since");
    assert_eq!(kinds(&of(&[CHARGED[0], (names::FILE, 60)], 0), &["x"]), []);
    let limited = Observation { limit_bytes: Some(64 * MIB), ..of(&warm, 0) };
    assert_eq!(kinds(&limited, &["x"]), []);
}

#[test]
fn heap_that_no_process_has_is_others() {
    let shared =
        BTreeMap::from([("charge".to_string(), "cgroup v2 memory.stat, with all else that is in it".to_string())]);
    let of = |own| {
        let lines = [CHARGED[0], CHARGED[1], (names::TREE_RSS_ANON, own)];
        Observation { sources: shared.clone(), ..run(&lines, Evidence::default()) }
    };
    assert_eq!(kinds(&of(4), &["x"]), [(DoubtKind::OthersInCgroup, Some(34), false)]);
    assert_eq!(kinds(&of(38), &["x"]), []);
}

#[test]
fn processes_that_went_on_are_a_doubt() {
    let went_on = Evidence { went_on: vec![named("redis-server", 30), named("x", 2)], ..Default::default() };
    assert_eq!(kinds(&run(&CHARGED, went_on.clone()), &["x"]), [(DoubtKind::WentOn, Some(32), false)]);
    let said = |facts: &Evidence| super::went_on(facts).unwrap().sentence;
    let two = "2 of its processes went on when the command ended (redis-server, 30.0 MiB): what they did from then on was not measured";
    assert_eq!(said(&went_on), two);
    let one = Evidence { went_on: vec![named("x", 2)], ..Default::default() };
    let alone =
        "a process of it went on when the command ended (x, 2.00 MiB): what it did from then on was not measured";
    assert_eq!(said(&one), alone);
}

#[test]
fn equal_runs_do_equal_work() {
    let of = |number, written: u64, held: u64| {
        let moved = Some(BytesMoved { written: written * MIB, ..Default::default() });
        let lines = [(names::CHARGE, held + 1), (names::HEAP, held)];
        Observation { run: number, ..run(&lines, Evidence { moved, ..Default::default() }) }
    };
    let differs = |runs: &[Observation]| work_differs(&runs.iter().collect::<Vec<_>>()).and_then(|doubt| doubt.bytes);
    assert_eq!(differs(&[of(0, 300, 10), of(1, 290, 10), of(2, 310, 9)]), None);
    assert_eq!(differs(&[of(0, 300, 10), of(1, 310, 10), of(2, 1, 10)]), Some(299 * MIB));
    assert_eq!(differs(&[of(0, 5, 65), of(1, 5, 1)]), Some(64 * MIB));
    // A sample that came too early is no proof against the kernel's peak.
    let peak = |mut run: Observation, mib: u64| {
        run.kept.charge_bytes = Some(mib * MIB);
        run
    };
    assert_eq!(differs(&[peak(of(0, 5, 65), 66), peak(of(1, 5, 1), 66)]), None);
    assert_eq!(differs(&[peak(of(0, 5, 65), 66), peak(of(1, 5, 1), 2)]), Some(64 * MIB));
    // A program that sizes itself by its limit holds less under one.
    let limited = Observation { limit_bytes: Some(MIB), ..of(1, 5, 1) };
    assert_eq!(differs(&[of(0, 5, 65), limited]), None);
    assert_eq!(differs(&[of(0, 300, 10)]), None);
}

mod emulated {
    use model::EmulatedLimit;

    use super::*;

    const LIMIT: u64 = 200 << 20;

    fn run(emulated: EmulatedLimit, storage_read: u64) -> Observation {
        let moved = Some(BytesMoved { storage_read, ..BytesMoved::default() });
        let evidence = Evidence { emulated: Some(emulated), moved, ..Evidence::default() };
        let begun = Observation::begun(1, RunRole::Trial, Target::Command, String::new(), 0);
        Observation { limit_bytes: Some(LIMIT), evidence, ..begun }
    }

    fn why(emulated: EmulatedLimit, storage_read: u64) -> Option<String> {
        limit_not_held(&run(emulated, storage_read), 4096).map(|doubt| doubt.sentence)
    }

    #[test]
    fn a_run_that_was_held_is_not_doubted() {
        let held = EmulatedLimit { above_bytes: 5 << 20, read_again_pages: 25600, ..EmulatedLimit::default() };
        assert_eq!(why(held, 100 << 20), None);
        let unlimited = Observation { limit_bytes: None, ..run(EmulatedLimit { above_bytes: 1 << 30, ..held }, 0) };
        assert_eq!(limit_not_held(&unlimited, 4096), None);
    }

    #[test]
    fn a_run_that_had_more_than_its_limit_is_doubted() {
        let above = EmulatedLimit { above_bytes: 7 << 20, ..EmulatedLimit::default() };
        assert!(why(above, 0).unwrap().contains("limit of 200 MiB had 7.00 MiB more on average"));
        let mapped = EmulatedLimit { mapped_bytes: 21 << 20, ..EmulatedLimit::default() };
        assert!(why(mapped, 0).unwrap().starts_with("21.0 MiB of files that it mapped"));
    }

    #[test]
    fn pages_that_were_dropped_and_did_not_come_back_from_the_storage_are_told() {
        let again = EmulatedLimit { read_again_pages: 25600, ..EmulatedLimit::default() };
        let told = why(again, 80 << 20).unwrap();
        assert!(told.starts_with("100 MiB were dropped and used again"), "{told}");
        assert!(told.ends_with("80.0 MiB came from the storage"), "{told}");
    }
}
