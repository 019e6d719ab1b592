//! `bursar curve trace` on real traces, and on files that are not traces.

mod support;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use support::{bursar, json_of};

/// A trace stored in the curve crate.
fn stored_trace(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../curve/tests/data")).join(name)
}

/// A trace that a test writes.
fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Ten rounds over a hundred keys.
fn rounds() -> String {
    (0..1000).map(|i| format!("{}\n", i % 100)).collect()
}

fn curve(arguments: &[&str]) -> Command {
    let mut command = bursar();
    command.args(["curve", "trace"]).args(arguments);
    command
}

fn fed(input: &[u8], arguments: &[&str]) -> Output {
    let mut child =
        curve(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// The error that a failing command prints.
fn error_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn ratios(json: &Value) -> Vec<(u64, f64)> {
    let point = |point: &Value| (point["size"].as_u64().unwrap(), point["miss_ratio"].as_f64().unwrap());
    json["points"].as_array().unwrap().iter().map(point).collect()
}

#[test]
fn a_loop_misses_all_below_its_length_and_one_round_above_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = file(&folder, "loop.txt", rounds().as_bytes());
    let (status, json) = json_of(curve(&["--json", "-", "--sizes", "1,99,100,5000", "--tolerance", "10%"]).arg(trace));
    assert_eq!(status, 0);
    assert_eq!((&json["references"], &json["distinct"], &json["engine"]), (&json!(1000), &json!(100), &json!("exact")));
    assert_eq!(ratios(&json), [(1, 1.0), (99, 1.0), (100, 0.1), (5000, 0.1)]);
    assert_eq!(json["working_set"], json!({"tolerance": 0.1, "size": 100}));
    assert_eq!((&json["unit"], &json["skipped"], &json["sampled_share"]), (&json!("objects"), &json!(0), &json!(1.0)));
}

#[test]
fn every_engine_finds_the_cliff() {
    for engine in ["exact", "shards-rate", "shards-size", "aet"] {
        let arguments = ["-", "--format", "csv", "--json", "-", "--engine", engine, "--rate", "100%"];
        let output = fed(rounds().as_bytes(), &arguments);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["engine"], json!(engine));
        assert_eq!((ratios(&json).len(), ratios(&json)[18].0, ratios(&json)[19]), (20, 95, (100, 0.1)), "{engine}");
        assert_eq!(json["working_set"]["size"], Value::Null, "the first round is more than 1 %");
    }
}

#[test]
fn a_warm_up_excludes_the_first_round() {
    let (_, json) = json_of_text(&rounds(), &["--warm-up", "100"]);
    assert_eq!((&json["references"], &json["working_set"]["size"]), (&json!(900), &json!(100)));
    assert_eq!(ratios(&json)[19], (100, 0.0));
}

fn json_of_text(text: &str, arguments: &[&str]) -> (i32, Value) {
    let output = fed(text.as_bytes(), &[&["-", "--format", "csv", "--json", "-"][..], arguments].concat());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}")))
}

#[test]
fn a_recorded_program_needs_its_pages() {
    let (_, json) = json_of(curve(&["--json", "-", "--tolerance", "4%"]).arg(stored_trace("six-pages.lackey")));
    assert_eq!((&json["format"], &json["page_bytes"], &json["distinct"]), (&json!("lackey"), &json!(4096), &json!(7)));
    assert_eq!(json["working_set"]["size"], json!(7));
    let output = curve(&["--tolerance", "4%"]).arg(stored_trace("six-pages.lackey")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("needs 7 pages (28.0 KiB) to fetch at most 4 % of its pages again\n"), "{text}");
}

#[test]
fn a_trace_of_the_installed_valgrind_is_read() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: valgrind is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("true.lackey");
    let option = format!("--log-file={}", log.display());
    let status = Command::new("valgrind").args(["--tool=lackey", "--trace-mem=yes", &option, "true"]).status().unwrap();
    assert!(status.success());
    let (_, json) = json_of(curve(&["--json", "-"]).arg(&log));
    assert!(json["references"].as_u64().unwrap() > 10_000 && json["distinct"].as_u64().unwrap() > 10, "{json}");
}

#[test]
fn tenants_windows_and_bytes_are_distinguished() {
    let requests = stored_trace("requests.csv");
    let (_, json) = json_of(curve(&["--json", "-", "--tenants", "--bytes"]).arg(&requests));
    assert_eq!((&json["unit"], &json["references"], &json["distinct"]), (&json!("bytes"), &json!(8), &json!(3)));
    let tenants: Vec<_> =
        json["tenants"].as_array().unwrap().iter().map(|t| (&t["tenant"], &t["references"])).collect();
    assert_eq!(tenants, [(&json!("north"), &json!(4)), (&json!("south"), &json!(4))]);
    // The two objects of `north` are requested again after 11 seconds, one of them grown by 100 bytes.
    assert_eq!(json["tenants"][0]["points"].as_array().unwrap().last().unwrap()["size"], json!(2100));
    let (_, json) = json_of(curve(&["--json", "-", "--window", "10s"]).arg(&requests));
    let windows: Vec<_> =
        json["windows"].as_array().unwrap().iter().map(|w| (&w["start_seconds"], &w["references"])).collect();
    assert_eq!(windows, [(&json!(0.0), &json!(5)), (&json!(10.0), &json!(3))]);
}

#[test]
fn points_are_written_as_csv() {
    let output =
        curve(&["--csv", "-", "--sizes", "3,1", "--tenants"]).arg(stored_trace("requests.csv")).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "tenant,start_seconds,size,miss_ratio\n,,1,1\n,,3,0.375\nnorth,,1,1\nnorth,,3,0.5\nsouth,,1,1\nsouth,,3,0.75\n"
    );
}

#[test]
fn the_page_needs_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let status = curve(&["--html"]).arg(&page).arg(stored_trace("six-pages.lackey")).output().unwrap().status;
    assert!(status.success());
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("plot-curve") && html.contains("default-src 'none'") && html.contains("Plotly"));
}

#[test]
fn a_trace_of_one_page_is_read() {
    let (status, json) = json_of_text("7\n7\n7\n7\n", &["--tolerance", "25%"]);
    assert_eq!((status, &json["distinct"], &json["working_set"]["size"]), (0, &json!(1), &json!(1)));
    assert_eq!(ratios(&json), [(1, 0.25)]);
}

#[test]
fn a_file_that_is_not_a_trace_is_named_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let empty = error_of(curve(&[]).arg(file(&folder, "empty.vscsi", b"")));
    assert!(empty.ends_with("empty.vscsi is empty: it holds no reference\n"), "{empty}");
    let gone = error_of(&mut curve(&["gone.csv"]));
    assert!(gone.contains("gone.csv could not be opened: No such file"), "{gone}");
    let unknown = error_of(curve(&[]).arg(file(&folder, "trace.bin", &[1, 2, 0, 3, 255, 254])));
    assert!(unknown.contains("neither oracle-general nor vscsi; add --format"), "{unknown}");
    let cut = error_of(curve(&[]).arg(file(&folder, "cut.oracleGeneral", &[0; 40])));
    assert!(cut.contains("byte 24: the trace is cut short: 16 bytes of a record of 24"), "{cut}");
    let folder_itself = error_of(curve(&["--format", "csv"]).arg(folder.path()));
    assert!(folder_itself.contains("could not be read: Is a directory"), "{folder_itself}");
    let times = error_of(curve(&["--window", "1s"]).arg(stored_trace("six-pages.lackey")));
    assert!(times.contains("this trace has no times"), "{times}");
    let sizes = error_of(curve(&["--bytes"]).arg(file(&folder, "keys.txt", b"1\n2\n")));
    assert!(sizes.contains("--size-column"), "{sizes}");
    let warm_up = error_of(curve(&["--warm-up", "2"]).arg(file(&folder, "two.txt", b"1\n2\n")));
    assert!(warm_up.contains("--warm-up leaves none"), "{warm_up}");
}

#[test]
fn malformed_records_end_the_command_or_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let trace = file(&folder, "requests.csv", b"id,size\n1,10\n2,ten\n1,10\n");
    let stopped = error_of(curve(&["--bytes"]).arg(&trace));
    assert!(stopped.contains("line 3: 'ten' is not a number of bytes; skip such records with --skip-bad"), "{stopped}");
    let (status, json) = json_of(curve(&["--skip-bad", "--json", "-", "--bytes"]).arg(&trace));
    assert_eq!((status, &json["skipped"], &json["references"]), (0, &json!(1), &json!(2)));
    let nothing = error_of(curve(&["--skip-bad"]).arg(file(&folder, "text.lackey", b"no\ntrace\n")));
    assert!(nothing.contains("2 malformed records; the first, line 1: 'no' is no access"), "{nothing}");
}

#[test]
fn times_need_a_known_or_a_named_unit() {
    let folder = tempfile::tempdir().unwrap();
    let lines =
        |step: u64, from: u64| (0..100u64).map(|i| format!("{},{}\n", from + i * step, i % 9)).collect::<String>();
    let epoch = file(&folder, "epoch.csv", format!("time,key\n{}", lines(100, 1_700_000_000_000)).as_bytes());
    let refused = error_of(curve(&["--window", "60s"]).arg(&epoch));
    assert!(refused.contains("cannot be in seconds") && refused.contains("--time-unit"), "{refused}");
    let relative = file(&folder, "relative.csv", format!("time,key\n{}", lines(100, 0)).as_bytes());
    let refused = error_of(curve(&["--window", "60s"]).arg(&relative));
    assert!(refused.contains("a window holds 1.0 references") && refused.contains("--time-unit"), "{refused}");
    for (trace, unit, window) in [(&epoch, "ms", "5s"), (&relative, "ms", "5s"), (&relative, "100ns", "500us")] {
        let (_, json) = json_of(curve(&["--json", "-", "--window", window, "--time-unit", unit]).arg(trace));
        let windows: Vec<_> = json["windows"].as_array().unwrap().iter().map(|w| w["references"].clone()).collect();
        assert_eq!(windows, [json!(50), json!(50)], "{unit}");
    }
    let (_, json) =
        json_of_text("timestamp,key\n2024-01-01T00:00:00Z,a\n2024-01-01T00:00:02Z,a\n", &["--window", "1s"]);
    let starts: Vec<_> = json["windows"].as_array().unwrap().iter().map(|w| w["start_seconds"].clone()).collect();
    assert_eq!(starts, [json!(1_704_067_200.0), json!(1_704_067_202.0)]);
}

#[test]
fn block_accesses_in_text_are_cut_into_pages() {
    let (_, json) = json_of_text("Offset,Size\n0,65536\n4096,4096\n", &["--page", "4096"]);
    assert_eq!((&json["references"], &json["distinct"], &json["page_bytes"]), (&json!(17), &json!(16), &json!(4096)));
}

#[test]
fn disk_block_accesses_in_any_unit_are_cut_into_pages() {
    for (text, sizes) in [
        ("LBA,Length\n0,65536\n8,4096\n", "bytes in 'length'"),
        ("LBA,Length\n0,128\n8,8\n", "blocks of 512 bytes in 'length'"),
        ("time,sector,sectors\n0,0,1024\n1,896,512\n", "blocks of 512 bytes in 'sectors'"),
    ] {
        let (_, json) = json_of_text(text, &[]);
        let printed = String::from_utf8(fed(text.as_bytes(), &["-"]).stdout).unwrap();
        let pages = if text.contains("sectors") { (192, 176) } else { (17, 16) };
        assert_eq!((&json["references"], &json["distinct"]), (&json!(pages.0), &json!(pages.1)), "{text}: {json}");
        assert_eq!(&json["page_bytes"], &json!(4096), "{text}");
        assert!(printed.contains(sizes), "{printed}");
    }
}

#[test]
fn with_listed_sizes_the_headline_has_the_first_reference_share() {
    let output = fed(rounds().as_bytes(), &["-", "--sizes", "5"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("10 % of the references are to something for the first time"), "{text}");
}

#[test]
fn a_cycle_over_four_mib_needs_its_pages() {
    // Four rounds of 64 accesses to each page; between them are accesses to the stack's page, and an instruction before each.
    let mut log = String::from("==1== Lackey\nhello from the program\n");
    for access in 0..4 * 65_536u64 {
        log += &format!("I  401000,3\n L 1ffeff0000,8\n S {:x},1\n", 0x480_0000 + access % 65_536 * 64);
    }
    let output = fed(log.as_bytes(), &["-"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("needs 1,026 pages (4.01 MiB) to fetch at most 1 % of its pages again"), "{text}");
    assert!(text.contains("line 2: 'hello from the program'"), "{text}");
    let output = fed(log.as_bytes(), &["-", "--json", "-", "--tenants"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let apart: Vec<_> = json["tenants"].as_array().unwrap().iter().map(|t| (&t["tenant"], &t["distinct"])).collect();
    assert_eq!(apart, [(&json!("data"), &json!(1025)), (&json!("instructions"), &json!(1))]);
}
