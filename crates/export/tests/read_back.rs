//! Every format is read back by somebody else's reader, and holds what the record holds.

use std::collections::BTreeMap;
use std::fs::File;

use export::{Error, Format, export};
use model::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use record::Record;
use serde_json::Value;

const MIB: f64 = (1 << 20) as f64;
const RUNG: &str = "cgroup v1 \"memory.stat\", total_*";
const KEY: ProcessKey = ProcessKey { pid: 42, start_ticks: u64::MAX };

fn observation(run: u32) -> Observation {
    let series = |name: &str, process, unit, points: Vec<(u64, f64)>| Series {
        name: name.into(),
        process,
        unit,
        rung: RUNG.into(),
        points,
    };
    let process = ProcessRecord {
        key: KEY,
        parent: Some(1),
        command: "sort, \"big\"".into(),
        started_seconds: Some(-1.0),
        lifetime_seconds: Some(1.25),
        max_rss_bytes: Some(4096),
        user_seconds: None,
        system_seconds: None,
        minor_faults: None,
        major_faults: None,
        io_delay_seconds: None,
        thread_seconds: None,
        exit_status: None,
        signal: None,
        largest_seen: None,
        own: None,
        source: "sampled".into(),
    };
    Observation {
        run,
        role: if run == 0 { RunRole::Reference } else { RunRole::Trial },
        target: Target::Command,
        limit_bytes: (run > 0).then_some(512 << 20),
        cache_state: "evicted".into(),
        started_unix_ns: 1_700_000_000_000_000_000 + u64::from(run) * 2_000_000_000,
        exit: Exit::Status(0),
        wall_seconds: 0.5,
        rusage: None,
        kept: KeptPeaks::default(),
        series: vec![
            series(names::CHARGE, None, Unit::Bytes, (0..10).map(|i| (i * 50_000_001, (i * 4096) as f64)).collect()),
            series(names::RSS, Some(KEY), Unit::Bytes, vec![(1, 0.5), (2, 1e300)]),
            series(names::MAJOR_FAULTS, None, Unit::Events, vec![]),
            series("attribute.mpi_pss_bytes", Some(KEY), Unit::Bytes, vec![(0, MIB), (300_000_000, 3.0 * MIB)]),
            series("attribute.total_pss_bytes", Some(KEY), Unit::Bytes, vec![(200_000_000, 5.0 * MIB)]),
        ],
        processes: vec![process],
        file_demand: None,
        sources: BTreeMap::new(),
        notes: vec![],
        evidence: Default::default(),
        origin: None,
    }
}

/// Of the second run: a rank that came through `MPI_Init` after a tenth of a second.
fn attribution() -> Attribution {
    let rank = RankUse {
        rank: Some(0),
        pid: KEY.pid,
        start_ticks: KEY.start_ticks,
        host: "node1".into(),
        command: "/usr/bin/a:out".into(),
        init: Some(RankInit { begin_seconds: 0.1, end_seconds: 0.2, grew_bytes: 0 }),
        ..RankUse::default()
    };
    Attribution { run: 1, ranks: 1, total_peak_bytes: 7, per_rank: vec![rank], ..Attribution::default() }
}

fn record() -> Record {
    let trial = Trial {
        run: 1,
        method: None,
        limit_bytes: Some(512 << 20),
        outcome: Outcome::TooSlow,
        lower_bound: true,
        wall_seconds: 0.5,
        cpu_seconds: None,
        system_seconds: None,
        stall_seconds: None,
        runtime_ratio: Some(1.5),
        predicted_ratio: None,
        io_wait_share: None,
        refaults: None,
        peak_charge_bytes: None,
        breakdown: Breakdown::default(),
        exit_status: None,
        why: "halfway".into(),
        nodes: Vec::new(),
    };
    let header = Header {
        kind: RecordKind::Budget,
        bursar_version: "0.1.0".into(),
        host: "node1".into(),
        boot_id: "boot".into(),
        kernel: "6.1".into(),
        cpus: 2,
        memory_bytes: 1 << 34,
        page_bytes: 4096,
        command: vec!["sort".into()],
        directory: "/".into(),
        started_unix_ns: 1_700_000_000_000_000_000,
        placement: "cgroup v1".into(),
        swap: "no swap".into(),
        options: BTreeMap::new(),
    };
    Record {
        header,
        runs: vec![observation(0), observation(1)],
        trials: vec![trial],
        budget: None,
        pages: vec![PagesRound { t_ns: 7, ..PagesRound::default() }],
        attributions: vec![attribution()],
        faults: vec![],
        advice: vec![],
        accounts: BTreeMap::from([(0, RunAccount { peak_charge_bytes: Some(7), ..Default::default() })]),
        notes: vec!["a note".into()],
        complete: true,
    }
}

fn exported(record: &Record, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    export(std::slice::from_ref(record), format, &mut out).unwrap();
    out
}

/// Run, series, unit, process, seconds, value, rung.
type Line = (u32, String, String, Option<(i32, u64)>, f64, f64, String);

fn expected(record: &Record) -> Vec<Line> {
    let mut lines = Vec::new();
    for run in &record.runs {
        for series in &run.series {
            let unit = serde_json::to_value(series.unit).unwrap().as_str().unwrap().to_string();
            let process = series.process.map(|key| (key.pid, key.start_ticks));
            for (t_ns, value) in &series.points {
                let (name, rung) = (series.name.clone(), series.rung.clone());
                lines.push((run.run, name, unit.clone(), process, *t_ns as f64 / 1e9, *value, rung));
            }
        }
    }
    lines
}

#[test]
fn json_holds_the_whole_record_under_its_documented_names() {
    let record = record();
    let json: Value = serde_json::from_slice(&exported(&record, Format::Json)).unwrap();
    assert_eq!(json["record_version"], record::VERSION);
    assert_eq!(json["pages"][0]["t_ns"], 7);
    assert_eq!(json["complete"], true);
    assert_eq!(serde_json::from_value::<Header>(json["header"].clone()).unwrap(), record.header);
    assert_eq!(json["notes"][0], "a note");
    for (run, observation) in json["runs"].as_array().unwrap().iter().zip(&record.runs) {
        assert_eq!(serde_json::from_value::<Observation>(run.clone()).unwrap(), *observation);
    }
    assert_eq!(json["runs"][0]["account"]["peak_charge_bytes"], 7);
    assert_eq!(json["runs"][1]["account"], Value::Null);
    assert_eq!(json["trials"][0]["outcome"], "too-slow");
    assert_eq!(json["budget"], Value::Null);
    assert_eq!(json["attributions"][0]["total_peak_bytes"], 7);
}

#[test]
fn csv_holds_every_value_with_its_rung() {
    let record = record();
    let bytes = exported(&record, Format::Csv);
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    let columns = ["run", "series", "unit", "pid", "start_ticks", "t_seconds", "value", "rung"];
    assert_eq!(reader.headers().unwrap(), &columns[..]);
    let lines: Vec<Line> = reader
        .records()
        .map(|line| {
            let line = line.unwrap();
            let process = line[3].parse().ok().zip(line[4].parse().ok());
            let (t, value) = (line[5].parse().unwrap(), line[6].parse().unwrap());
            (line[0].parse().unwrap(), line[1].into(), line[2].into(), process, t, value, line[7].into())
        })
        .collect();
    assert_eq!(lines, expected(&record));
}

fn parquet_lines(bytes: &[u8]) -> (Vec<Line>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    std::fs::write(&path, bytes).unwrap();
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let lines = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let process = row.get_int(3).ok().zip(row.get_ulong(4).ok());
        let text = |i| row.get_string(i).unwrap().clone();
        let (t, value) = (row.get_double(5).unwrap(), row.get_double(6).unwrap());
        (row.get_uint(0).unwrap(), text(1), text(2), process, t, value, text(7))
    });
    (lines.collect(), reader.metadata().num_row_groups())
}

#[test]
fn parquet_holds_the_same_as_csv() {
    let record = record();
    let (lines, groups) = parquet_lines(&exported(&record, Format::Parquet));
    assert_eq!(lines, expected(&record));
    assert_eq!(groups, 1);
}

#[test]
fn a_long_parquet_file_has_several_row_groups() {
    let mut record = record();
    record.runs[1].series[0].points = (0..150_000).map(|i| (i, i as f64)).collect();
    let (lines, groups) = parquet_lines(&exported(&record, Format::Parquet));
    assert_eq!(lines, expected(&record));
    assert_eq!(groups, 3);
}

#[test]
fn perfetto_has_a_process_per_run_and_a_rising_counter_per_series() {
    let record = record();
    let json: Value = serde_json::from_slice(&exported(&record, Format::Perfetto)).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of_phase = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();

    let names: Vec<&str> = of_phase("M")
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["0 reference", "1 trial at 512 MiB: too-slow"]);

    let mut tracks: BTreeMap<(u64, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for event in of_phase("C") {
        let track = (event["pid"].as_u64().unwrap(), event["name"].as_str().unwrap());
        let value = event["args"]["bytes"].as_f64().unwrap();
        tracks.entry(track).or_default().push((event["ts"].as_f64().unwrap(), value));
    }
    assert_eq!(tracks.len(), 8);
    assert!(tracks.values().all(|track| track.is_sorted_by(|a, b| a.0 < b.0)));
    let second_run = &tracks[&(2, names::CHARGE)];
    assert_eq!((second_run[0].0, second_run[1]), (2e6, (2e6 + 50_000.001, 4096.0)));

    let slices = of_phase("X");
    let trial = slices.iter().find(|slice| slice["args"]["why"] == "halfway").unwrap();
    assert_eq!((trial["ts"].as_f64(), trial["dur"].as_f64()), (Some(2e6), Some(5e5)));
    let process = slices.iter().find(|slice| slice["cat"] == "process").unwrap();
    // it is older than the run: only its part within is shown
    assert_eq!((process["ts"].as_f64(), process["dur"].as_f64()), (Some(0.0), Some(250_000.0)));
}

#[test]
fn memnesias_text_has_a_head_and_both_lines_since_init() {
    let text = String::from_utf8(exported(&record(), Format::Memnesia)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[10]), ("# [Run Info Begin]", "# [Run Info End]"));
    assert_eq!(lines[1], "# Report Date Time: 20231114-221322");
    assert_eq!(lines[2], "# Application Name: a_out", "its scripts split at colons");
    assert!(lines.contains(&"# MPI_COMM_WORLD Size: 1") && lines.contains(&"# MPI Init Time (s): 0.1"));
    assert!(lines.contains(&"# High Memory Usage Watermark (MPI) (MB): 3.000000"), "{text}");
    let of = |what: &str| lines.iter().filter(|line| line.starts_with(what)).copied().collect::<Vec<_>>();
    let mpi = ["0.000000 1.000000", "0.200000 1.000000", "0.200000 3.000000"];
    assert_eq!(of("MPI_MEM_USAGE"), mpi.map(|values| format!("MPI_MEM_USAGE bursar {values}")));
    let all = ["0.000000 0.000000", "0.100000 0.000000", "0.100000 5.000000"];
    assert_eq!(of("ALL_MEM_USAGE"), all.map(|values| format!("ALL_MEM_USAGE bursar {values}")));
}

#[test]
fn memnesias_text_needs_an_attribution() {
    let record = Record { attributions: vec![], ..record() };
    let error = export(&[record], Format::Memnesia, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("bursar attribute"), "{error}");
}

#[test]
fn exports_the_rounds_of_a_watch_as_time_lines() {
    let seen = PagesRound {
        tracking: true,
        tracked_bytes: 90,
        touched_bytes: 70,
        wss_bytes: Some(60),
        ..PagesRound::default()
    };
    let off = PagesRound { t_ns: 2_000_000_000, wss_bytes: Some(50), ..PagesRound::default() };
    let pages = vec![PagesRound { t_ns: 1_000_000_000, ..seen }, off];
    let record = Record { runs: vec![], trials: vec![], pages, ..record() };
    let values: Vec<(String, f64, f64)> = parquet_lines(&exported(&record, Format::Parquet))
        .0
        .into_iter()
        .map(|(_, series, _, _, t_seconds, value, _)| (series, t_seconds, value))
        .collect();
    let expected = [
        ("working_set_bytes", 1.0, 60.0),
        ("working_set_bytes", 2.0, 50.0),
        ("tracked_bytes", 1.0, 90.0),
        ("touched_bytes", 1.0, 70.0),
    ];
    assert_eq!(values, expected.map(|(series, t_seconds, value)| (series.to_string(), t_seconds, value)));
}

#[test]
fn refuses_to_export_nothing() {
    let record = Record { runs: vec![], trials: vec![], pages: vec![], ..record() };
    for format in [Format::Csv, Format::Parquet, Format::Perfetto] {
        let mut out = Vec::new();
        let error = export(std::slice::from_ref(&record), format, &mut out).unwrap_err();
        assert!(matches!(error, Error::NoTimeLines(_)) && out.is_empty(), "{format}: {error}");
    }
    assert!(!exported(&record, Format::Json).is_empty());
    let error = export(&[record], Format::Vpa, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("`bursar budget`"), "{error}");
}

/// A budget's answer, around which the references took `peak` bytes.
fn with_budget(budget: Option<u64>, passed: Option<u64>, peak: u64) -> Record {
    let mut record = record();
    record.runs[0].kept.charge_bytes = Some(peak);
    record.budget = Some(BudgetReport {
        answer: Answer { budget_bytes: budget, smallest_passing_bytes: passed, confident: true, ..Answer::default() },
        slowdown_target: 0.05,
        ..BudgetReport::default()
    });
    record
}

fn recommended(records: &[Record]) -> Value {
    let mut out = Vec::new();
    export(records, Format::Vpa, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn a_recommendation_is_a_budgets_answer() {
    let object = recommended(&[with_budget(Some(289 << 20), Some(286 << 20), 700 << 20)]);
    assert_eq!(
        (&object["apiVersion"], &object["kind"]),
        (&"autoscaling.k8s.io/v1".into(), &"VerticalPodAutoscaler".into())
    );
    assert_eq!(object["spec"]["updatePolicy"]["updateMode"], "Off");
    let containers = object["status"]["recommendation"]["containerRecommendations"].as_array().unwrap();
    assert_eq!((containers.len(), &containers[0]["containerName"]), (1, &"sort".into()));
    for (field, memory) in
        [("target", "289Mi"), ("uncappedTarget", "289Mi"), ("lowerBound", "286Mi"), ("upperBound", "700Mi")]
    {
        assert_eq!(containers[0][field]["memory"], memory, "{field}");
    }
}

#[test]
fn without_an_answer_a_recommendation_is_what_a_run_took_up_to_where_nothing_is_read_again() {
    let mut record = with_budget(None, None, 700 << 20);
    record.header.command = vec!["/opt/My Tool_2".into()];
    let only = |record: &Record| {
        recommended(std::slice::from_ref(record))["status"]["recommendation"]["containerRecommendations"][0].clone()
    };
    let all = only(&record);
    assert_eq!((&all["containerName"], &all["target"]["memory"]), (&"my-tool-2".into(), &"700Mi".into()));
    assert!(all.get("lowerBound").is_none(), "its floor is not known");
    let points = vec![
        DemandPoint { limit_bytes: 9 << 20, refault_bytes: 7 },
        DemandPoint { limit_bytes: (40 << 20) + 1, refault_bytes: 0 },
    ];
    record.runs[0].file_demand = Some(FileDemand { points, ..FileDemand::default() });
    assert_eq!(
        (&only(&record)["target"]["memory"], &only(&record)["upperBound"]["memory"]),
        (&"41Mi".into(), &"700Mi".into())
    );
    // References that were lost could be any.
    record.runs[0].file_demand.as_mut().unwrap().lost_events = 1;
    assert_eq!(only(&record)["target"]["memory"], "700Mi");
}

#[test]
fn programs_of_one_interpreter_are_containers_of_their_own() {
    let of = |command: &[&str], mib: u64| {
        let mut record = with_budget(None, None, mib << 20);
        record.header.command = command.iter().map(|word| word.to_string()).collect();
        record
    };
    let records = [
        of(&["/usr/bin/python3", "web.py"], 10),
        of(&["/usr/bin/python3", "worker.py"], 150),
        of(&["env", "A=1", "/usr/bin/python3", "worker.py", "--fast"], 160),
        of(&["python3", "other/worker.py"], 20),
        of(&["sh", "-c", "exec ./serve"], 5),
    ];
    let object = recommended(&records);
    let containers = object["status"]["recommendation"]["containerRecommendations"].as_array().unwrap();
    let named = |container: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_string();
        (text(&container["containerName"]), text(&container["target"]["memory"]))
    };
    let named: Vec<_> = containers.iter().map(named).collect();
    let expected = [("serve", "5Mi"), ("web", "10Mi"), ("worker", "160Mi"), ("worker-2", "20Mi")];
    assert_eq!(named, expected.map(|(name, memory)| (name.to_string(), memory.to_string())));
}

#[test]
fn several_records_of_a_command_are_one_container_with_the_most_of_each() {
    let mut other = with_budget(Some(9 << 20), Some(8 << 20), 9 << 20);
    other.header.command = vec!["proxy".into()];
    let records = [
        with_budget(Some(100 << 20), Some(90 << 20), 300 << 20),
        other,
        with_budget(Some(120 << 20), Some(80 << 20), 200 << 20),
    ];
    let object = recommended(&records);
    let containers = object["status"]["recommendation"]["containerRecommendations"].as_array().unwrap();
    let memory = |number: usize, field: &str| containers[number][field]["memory"].as_str().unwrap().to_string();
    assert_eq!((&containers[0]["containerName"], memory(0, "target")), (&"proxy".into(), "9Mi".into()));
    assert_eq!([memory(1, "target"), memory(1, "lowerBound"), memory(1, "upperBound")], ["120Mi", "90Mi", "300Mi"]);
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Vpa) {
        assert!(matches!(export(&records, format, &mut Vec::new()), Err(Error::Several(_))), "{format}");
    }
}

fn refused(records: &[Record]) -> String {
    let error = export(records, Format::Vpa, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::NoWholeRun(_)), "{error}");
    error.to_string()
}

#[test]
fn runs_that_are_lower_bounds_give_no_recommendation() {
    let ended = |change: &dyn Fn(&mut Observation)| {
        let mut record = with_budget(None, None, 100 << 20);
        record.runs.truncate(1);
        change(&mut record.runs[0]);
        record
    };
    let killed = ended(&|run| (run.limit_bytes, run.kept.oom_kills) = (Some(100 << 20), Some(1)));
    assert!(refused(std::slice::from_ref(&killed)).contains("for lack of memory, and its figures are lower bounds"));
    let timed_out = ended(&|run| run.exit = Exit::TimedOut);
    assert!(refused(std::slice::from_ref(&timed_out)).contains("the time-out ended it"));
    let interrupted = ended(&|run| (run.exit, run.evidence.interrupted) = (Exit::Status(130), true));
    assert!(refused(&[interrupted, timed_out.clone()]).contains("a signal that was sent to bursar ended it"));
    // Beside a whole run they are left out, and the annotation says so.
    let object = recommended(&[killed, with_budget(None, None, 70 << 20), timed_out]);
    let container = &object["status"]["recommendation"]["containerRecommendations"][0];
    assert_eq!((&container["target"]["memory"], &container["upperBound"]["memory"]), (&"70Mi".into(), &"70Mi".into()));
    let why = object["metadata"]["annotations"]["bursar/from"].as_str().unwrap();
    assert!(why.contains("without run 0: the kernel killed") && why.contains("without run 0: the time-out"), "{why}");
}

#[test]
fn memory_that_is_missing_gives_no_recommendation() {
    let mut record = with_budget(None, None, 0);
    record.runs.truncate(1);
    let run = &mut record.runs[0];
    (run.kept.charge_bytes, run.series) = (None, Vec::new());
    run.evidence.files_in_memory = Some(Named { name: "/dev/shm/x".into(), bytes: Some(200 << 20) });
    assert!(refused(&[record]).contains("at least 200 MiB in files in memory (largest: /dev/shm/x) are missing"));
    let mut budget = with_budget(Some(100 << 20), None, 100 << 20);
    let sentence = "it uses 64.0 MiB of shared memory".to_string();
    let doubt = Doubt {
        kind: DoubtKind::SharedBefore,
        bytes: Some(64 << 20),
        voids: false,
        missing_from_peak: false,
        sentence,
    };
    budget.budget.as_mut().unwrap().doubts = vec![doubt];
    assert!(refused(&[budget]).contains("64.0 MiB of shared memory"));
}

#[test]
fn a_recommendation_takes_the_upper_bound_of_what_processes_held() {
    let of = |name: &str, mib: u64| Series {
        name: name.into(),
        process: None,
        unit: Unit::Bytes,
        rung: "/proc".into(),
        points: vec![(0, (mib << 20) as f64), (400_000_000, (mib << 20) as f64)],
    };
    let mut record = with_budget(None, None, 0);
    record.runs.truncate(1);
    let run = &mut record.runs[0];
    run.kept.charge_bytes = None;
    run.series = vec![
        of(names::TREE_RSS, 100),
        of(names::TREE_RSS_ANON, 100),
        of(names::TREE_HELD_LEAST, 60),
        of(names::TREE_HEAP_LEAST, 60),
    ];
    let object = recommended(&[record]);
    let container = &object["status"]["recommendation"]["containerRecommendations"][0];
    assert_eq!(
        (&container["target"]["memory"], &container["upperBound"]["memory"]),
        (&"100Mi".into(), &"100Mi".into())
    );
    let why = object["metadata"]["annotations"]["bursar/from"].as_str().unwrap();
    assert!(why.contains("by the upper bounds"), "{why}");
}

#[test]
fn a_full_disk_is_told_in_a_sentence() {
    for format in Format::ALL {
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        let error = export(&[record()], format, &mut full).unwrap_err();
        assert!(matches!(error, Error::Write(_) | Error::Parquet(_)));
        assert!(error.to_string().contains("could not be written: "), "{error}");
        assert!(error.to_string().contains("No space left"), "{error}");
    }
}
