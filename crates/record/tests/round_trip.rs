//! What was written is what is read.

mod common;

use common::{header, observation, others, trial, write};
use model::*;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use record::{Entry, Error, Record, Writer};
use tempfile::tempdir;

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>().prop_filter("a figure", |v| v.is_finite()), (0..1u64 << 53).prop_map(|v| v as f64)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_]{0,12}", any::<String>()]
}

fn key() -> impl Strategy<Value = ProcessKey> {
    (any::<i32>(), any::<u64>()).prop_map(|(pid, start_ticks)| ProcessKey { pid, start_ticks })
}

prop_compose! {
    fn series()(
        name in text(), process in option::of(key()), rung in text(),
        unit in prop_oneof![Just(Unit::Bytes), Just(Unit::Seconds), Just(Unit::Events), Just(Unit::Count)],
        points in btree_map(0..u64::MAX / 2, finite(), 0..20),
    ) -> Series {
        Series { name, process, unit, rung, points: points.into_iter().collect() }
    }
}

prop_compose! {
    fn resident()(bytes in vec(any::<u64>(), 5), may_share in any::<bool>()) -> Resident {
        Resident {
            heap_bytes: bytes[0], all_bytes: bytes[1], most_heap_bytes: bytes[2], inherited_bytes: bytes[3], uncopied_bytes: bytes[4],
            may_share,
        }
    }
}

prop_compose! {
    fn process()(
        key in key(), parent in option::of(any::<i32>()), command in text(), times in vec(option::of(finite()), 6),
        counts in vec(option::of(any::<u64>()), 3), ends in vec(option::of(any::<i32>()), 2), source in text(),
        largest_seen in option::of(resident()),
    ) -> ProcessRecord {
        ProcessRecord {
            key, parent, command, exit_status: ends[0], signal: ends[1], source, own: None,
            started_seconds: times[0], lifetime_seconds: times[1], user_seconds: times[2], system_seconds: times[3],
            io_delay_seconds: times[4], thread_seconds: times[5],
            max_rss_bytes: counts[0], minor_faults: counts[1], major_faults: counts[2], largest_seen,
        }
    }
}

prop_compose! {
    fn demand()(
        referenced_bytes in any::<u64>(), sampled_share in finite(), rung in text(),
        points in vec(any::<(u64, u64)>(), 0..5), files in vec((option::of(text()), any::<(u64, u64, u64)>()), 0..4),
        not_visible in vec((text(), option::of(any::<u64>())), 0..3),
    ) -> FileDemand {
        FileDemand {
            referenced_bytes, distinct_bytes: 1, written_only_bytes: 2, sampled_share, not_visible, mapped_scanned_bytes: 4, known_from_bytes: 0,
            lost_events: 3,
            rung,
            points: points.into_iter()
                .map(|(limit_bytes, refault_bytes)| DemandPoint { limit_bytes, refault_bytes }).collect(),
            foreign: files.into_iter().map(|(path, (device, inode, cached_bytes))| {
                ForeignFile { path, device, inode, cached_bytes }
            }).collect(),
        }
    }
}

prop_compose! {
    fn run()(
        target in prop_oneof![
            Just(Target::Command), any::<i32>().prop_map(Target::Process), any::<i32>().prop_map(Target::Tree),
            text().prop_map(Target::Cgroup)],
        exit in prop_oneof![
            any::<i32>().prop_map(Exit::Status), any::<i32>().prop_map(Exit::Signal), Just(Exit::TimedOut),
            Just(Exit::StoppedEarly), Just(Exit::StillRunning)],
        limit_bytes in option::of(any::<u64>()), cache_state in text(), started_unix_ns in any::<u64>(),
        wall_seconds in finite(), rusage in option::of((any::<u64>(), finite())), kept in option::of(any::<u64>()),
        series in vec(series(), 0..5), processes in vec(process(), 0..5), file_demand in option::of(demand()),
        sources in btree_map(text(), text(), 0..4), notes in vec(text(), 0..3),
    ) -> Observation {
        let rusage = rusage.map(|(max_rss_bytes, user_seconds)| Rusage { max_rss_bytes, user_seconds, ..Default::default() });
        let origin = (started_unix_ns % 2 == 0).then(|| Origin { host: cache_state.clone(), boot_id: "b".into(), rank: Some(7) });
        Observation {
            run: 0, role: RunRole::Method, target, limit_bytes, cache_state, started_unix_ns, exit, wall_seconds, rusage,
            kept: KeptPeaks { oom_kills: kept, ..Default::default() }, series, processes, file_demand, sources, notes,
            evidence: Default::default(), origin,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_observations_are_read_back_framed_sealed_and_resumed(mut runs in vec(run(), 1..3)) {
        let folder = tempdir().unwrap();
        let path = folder.path().join("any.bursar");
        (0u32..).zip(&mut runs).for_each(|(number, run)| run.run = number);
        let writer = write(&path, &runs.iter().flat_map(Entry::of_run).collect::<Vec<_>>());
        prop_assert_eq!(&Record::open(&path).unwrap().runs, &runs);
        writer.seal().unwrap();
        let sealed = Record::open(&path).unwrap();
        prop_assert_eq!(&sealed.runs, &runs);
        prop_assert!(sealed.complete);
        let resumed = Writer::resume(&path).unwrap();
        prop_assert_eq!(&Record::open(&path).unwrap().runs, &runs);
        resumed.seal().unwrap();
        prop_assert_eq!(Record::open(&path).unwrap(), sealed);
    }
}

#[test]
fn every_kind_of_entry_is_read_back_in_either_form() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("all.bursar");
    let entries = [Entry::of_run(&observation(0)), Entry::of_run(&observation(1)), others()].concat();
    let writer = write(&path, &entries);
    let framed = Record::open(&path).unwrap();
    assert_eq!(framed.header, header());
    assert_eq!(framed.runs, [observation(0), observation(1)]);
    assert_eq!(framed.trials, [trial(1)]);
    assert_eq!(framed.budget, Some(common::budget()));
    assert_eq!(framed.accounts[&0].peak_charge_bytes, Some(1 << 20));
    assert_eq!(framed.notes, ["a sentence"]);
    assert_eq!(framed.pages, common::pages());
    assert_eq!(framed.attributions, [common::attribution()]);
    assert_eq!(framed.faults, [common::faults()]);
    assert_eq!(framed.advice, [common::advice()]);
    assert!(!framed.complete, "it is still being written");
    assert_eq!(writer.seal().unwrap(), path);
    assert_eq!(Record::open(&path).unwrap(), Record { complete: true, ..framed });
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left beside the record");
}

#[test]
fn a_resumed_budget_goes_on_where_it_ended() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("budget.bursar");
    write(&path, &[Entry::of_run(&observation(0)), others()].concat()).seal().unwrap();
    let mut writer = Writer::resume(&path).unwrap();
    // ids of series begin anew with every run
    Entry::of_run(&observation(2)).iter().for_each(|entry| writer.append(entry).unwrap());
    writer.append(&Entry::Trial(Box::new(trial(2)))).unwrap();
    let better = BudgetReport { notes: vec!["resumed".into()], ..common::budget() };
    writer.append(&Entry::Budget(Box::new(better.clone()))).unwrap();
    writer.seal().unwrap();
    let record = Record::open(&path).unwrap();
    assert_eq!(record.runs, [observation(0), observation(2)]);
    assert_eq!(record.trials, [trial(1), trial(2)]);
    assert_eq!(record.budget, Some(better));
    assert_eq!(record.pages, common::pages());
    assert_eq!(record.attributions, [common::attribution()]);
    assert_eq!(record.faults, [common::faults()]);
    assert_eq!(record.advice, [common::advice()]);
    assert!(record.complete);
}

/// Makes a record of version 8 one of version 7, which has every table, and host and boot of each series and process.
const VERSION_7: &str = "
    DROP VIEW timeline; ALTER TABLE run DROP COLUMN host; ALTER TABLE run DROP COLUMN boot_id;
    ALTER TABLE series ADD COLUMN host TEXT; ALTER TABLE series ADD COLUMN boot_id TEXT;
    ALTER TABLE process ADD COLUMN boot_id TEXT; UPDATE series SET host = 'node1', boot_id = 'b';
    CREATE VIEW timeline AS SELECT series.name, series.host FROM sample JOIN series ON series.id = sample.series;
    CREATE TABLE trial (run INTEGER, outcome TEXT, more JSON);
    CREATE TABLE budget (budget_bytes UNSIGNED INTEGER, doubts JSON, more JSON);
    CREATE TABLE pages (t_ns UNSIGNED INTEGER, more JSON);
    CREATE TABLE attribution (run INTEGER PRIMARY KEY, more JSON);
    CREATE VIEW component AS SELECT run FROM attribution; CREATE VIEW function AS SELECT run FROM attribution;
    CREATE TABLE faults (run INTEGER PRIMARY KEY, more JSON); CREATE VIEW fault_kind AS SELECT run FROM faults;
    CREATE TABLE advice (run INTEGER PRIMARY KEY, more JSON); CREATE VIEW decision AS SELECT run FROM advice;
    PRAGMA user_version = 7";

#[test]
fn records_of_older_versions_are_read_without_what_they_do_not_have() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("first.bursar");
    write(&path, &Entry::of_run(&observation(0))).seal().unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch(VERSION_7).unwrap();
    assert_eq!(Record::open(&path).unwrap().runs, [observation(0)]);
    let older = [
        "ALTER TABLE run DROP COLUMN evidence; ALTER TABLE budget DROP COLUMN doubts; PRAGMA user_version = 6",
        "DROP VIEW function; CREATE VIEW function AS SELECT run FROM attribution; PRAGMA user_version = 5",
        "DROP VIEW decision; DROP TABLE advice; PRAGMA user_version = 4",
        "DROP VIEW fault_kind; DROP TABLE faults; PRAGMA user_version = 3",
        "DROP VIEW component; DROP VIEW function; DROP TABLE attribution; PRAGMA user_version = 2",
        "DROP TABLE pages; PRAGMA user_version = 1",
    ];
    for version in older {
        database.execute_batch(version).unwrap();
        let record = Record::open(&path).unwrap();
        assert_eq!((record.runs, record.pages, record.attributions), (vec![observation(0)], vec![], vec![]));
        assert_eq!((record.faults, record.advice), (vec![], vec![]));
    }
}

#[test]
fn each_run_has_its_own_attribution_and_the_later_of_two_counts() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("scaling.bursar");
    let of = |run, ranks| Attribution { run, ranks, ..common::attribution() };
    let mut writer = write(&path, &[]);
    for attribution in [of(1, 4), of(0, 1), of(1, 2)] {
        writer.append(&Entry::Attribution(Box::new(attribution))).unwrap();
    }
    assert_eq!(Record::open(&path).unwrap().attributions, [of(0, 1), of(1, 2)]);
}

#[test]
fn a_run_that_begins_again_replaces_the_one_that_was_cut_off() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("again.bursar");
    let mut cut = Entry::of_run(&observation(0));
    cut.pop();
    write(&path, &[cut, Entry::of_run(&observation(0))].concat());
    assert_eq!(Record::open(&path).unwrap().runs, [observation(0)]);
}

#[test]
fn a_run_without_an_end_is_made_of_its_samples() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("cut.bursar");
    let mut entries = Entry::of_run(&observation(0));
    entries.pop();
    write(&path, &entries);
    let seen = Record::open(&path).unwrap();
    let (run, whole) = (&seen.runs[0], observation(0));
    assert_eq!((run.exit, run.wall_seconds), (Exit::StillRunning, 0.4));
    assert_eq!((&run.series, run.limit_bytes, &run.target), (&whole.series, whole.limit_bytes, &whole.target));
    assert!(run.notes[0].contains("cut off"), "{:?}", run.notes);
    // and stays one through sealing and resuming
    Writer::resume(&path).unwrap().seal().unwrap();
    assert_eq!(Record::open(&path).unwrap().runs, seen.runs);
    Writer::resume(&path).unwrap().seal().unwrap();
    assert_eq!(Record::open(&path).unwrap().runs, seen.runs);
}

#[test]
fn values_that_are_no_numbers_are_left_out_of_samples_and_refused_elsewhere() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("nan.bursar");
    let mut entries = Entry::of_run(&observation(0));
    entries.insert(2, Entry::Sample { t_ns: 1, values: vec![(0, f64::NAN), (0, 17.0)] });
    let mut writer = write(&path, &entries);
    let trial = Trial { wall_seconds: f64::INFINITY, ..trial(1) };
    assert!(matches!(writer.append(&Entry::Trial(Box::new(trial))), Err(Error::NotFinite("a trial"))));
    writer.seal().unwrap();
    let record = Record::open(&path).unwrap();
    assert_eq!(record.runs[0].series[0].points[1], (1, 17.0));
    assert_eq!(record.trials, []);
}

#[test]
fn samples_out_of_order_are_put_in_order_and_the_later_of_two_at_one_moment_counts() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("order.bursar");
    let begin = Entry::of_run(&observation(0)).into_iter().take(2);
    let sample = |t_ns, value| Entry::Sample { t_ns, values: vec![(0, value)] };
    let entries: Vec<_> = begin.chain([sample(9, 1.0), sample(5, 2.0), sample(9, 3.0)]).collect();
    write(&path, &entries);
    assert_eq!(Record::open(&path).unwrap().runs[0].series[0].points, [(5, 2.0), (9, 3.0)]);
}
