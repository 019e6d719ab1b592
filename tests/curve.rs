//! `bursar curve trace` on real traces, and on what is none.

mod support;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use support::{bursar, json_of};

/// A trace that comes with the curve crate.
fn kept(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../curve/tests/data")).join(name)
}

/// A trace of a test's own.
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

/// What it says on failing.
fn complaint(command: &mut Command) -> String {
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
fn a_loop_misses_all_below_its_length_and_the_first_round_above() {
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
fn a_warm_up_takes_the_first_round_out() {
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
    let (_, json) = json_of(curve(&["--json", "-", "--tolerance", "4%"]).arg(kept("six-pages.lackey")));
    assert_eq!((&json["format"], &json["page_bytes"], &json["distinct"]), (&json!("lackey"), &json!(4096), &json!(7)));
    assert_eq!(json["working_set"]["size"], json!(7));
    let output = curve(&["--tolerance", "4%"]).arg(kept("six-pages.lackey")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("needs 7 pages (28.0 KiB) for at most 4 % misses\n"), "{text}");
}

#[test]
fn what_valgrind_traces_here_is_read() {
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
fn tenants_windows_and_bytes_are_told_apart() {
    let requests = kept("requests.csv");
    let (_, json) = json_of(curve(&["--json", "-", "--tenants", "--bytes"]).arg(&requests));
    assert_eq!((&json["unit"], &json["references"], &json["distinct"]), (&json!("bytes"), &json!(8), &json!(3)));
    let tenants: Vec<_> =
        json["tenants"].as_array().unwrap().iter().map(|t| (&t["tenant"], &t["references"])).collect();
    assert_eq!(tenants, [(&json!("north"), &json!(4)), (&json!("south"), &json!(4))]);
    // The north's two objects are asked for again after 11 seconds, one of them grown by 100 bytes.
    assert_eq!(json["tenants"][0]["points"].as_array().unwrap().last().unwrap()["size"], json!(2100));
    let (_, json) = json_of(curve(&["--json", "-", "--window", "10s"]).arg(&requests));
    let windows: Vec<_> =
        json["windows"].as_array().unwrap().iter().map(|w| (&w["start_seconds"], &w["references"])).collect();
    assert_eq!(windows, [(&json!(0.0), &json!(5)), (&json!(10.0), &json!(3))]);
}

#[test]
fn points_are_written_as_csv() {
    let output = curve(&["--csv", "-", "--sizes", "3,1", "--tenants"]).arg(kept("requests.csv")).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "tenant,start_seconds,size,miss_ratio\n,,1,1\n,,3,0.375\nnorth,,1,1\nnorth,,3,0.5\nsouth,,1,1\nsouth,,3,0.75\n"
    );
}

#[test]
fn the_page_stands_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let status = curve(&["--html"]).arg(&page).arg(kept("six-pages.lackey")).output().unwrap().status;
    assert!(status.success());
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("plot-curve") && html.contains("default-src 'none'") && html.contains("Plotly"));
}

#[test]
fn one_page_is_a_trace() {
    let (status, json) = json_of_text("7\n7\n7\n7\n", &["--tolerance", "25%"]);
    assert_eq!((status, &json["distinct"], &json["working_set"]["size"]), (0, &json!(1), &json!(1)));
    assert_eq!(ratios(&json), [(1, 0.25)]);
}

#[test]
fn what_is_no_trace_gets_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let empty = complaint(curve(&[]).arg(file(&folder, "empty.vscsi", b"")));
    assert!(empty.ends_with("empty.vscsi is empty: it holds no reference\n"), "{empty}");
    let gone = complaint(&mut curve(&["gone.csv"]));
    assert!(gone.contains("gone.csv could not be opened: No such file"), "{gone}");
    let unknown = complaint(&mut curve(&["trace.bin"]));
    assert!(unknown.contains("add --format csv, oracle-general, vscsi or lackey"), "{unknown}");
    let cut = complaint(curve(&[]).arg(file(&folder, "cut.oracleGeneral", &[0; 40])));
    assert!(cut.contains("byte 24: the trace is cut short: 16 bytes of a record of 24"), "{cut}");
    let folder_itself = complaint(curve(&["--format", "csv"]).arg(folder.path()));
    assert!(folder_itself.contains("could not be read: Is a directory"), "{folder_itself}");
    let times = complaint(curve(&["--window", "1s"]).arg(kept("six-pages.lackey")));
    assert!(times.contains("this trace has no times"), "{times}");
    let sizes = complaint(curve(&["--bytes"]).arg(file(&folder, "keys.txt", b"1\n2\n")));
    assert!(sizes.contains("--size-column"), "{sizes}");
    let warm_up = complaint(curve(&["--warm-up", "2"]).arg(file(&folder, "two.txt", b"1\n2\n")));
    assert!(warm_up.contains("--warm-up leaves none"), "{warm_up}");
}

#[test]
fn malformed_records_stop_it_or_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let trace = file(&folder, "requests.csv", b"id,size\n1,10\n2,ten\n1,10\n");
    let stopped = complaint(curve(&[]).arg(&trace));
    assert!(stopped.contains("line 3: 'ten' is not a number of bytes; skip such records with --skip-bad"), "{stopped}");
    let (status, json) = json_of(curve(&["--skip-bad", "--json", "-"]).arg(&trace));
    assert_eq!((status, &json["skipped"], &json["references"]), (0, &json!(1), &json!(2)));
    let nothing = complaint(curve(&["--skip-bad"]).arg(file(&folder, "text.lackey", b"no\ntrace\n")));
    assert!(nothing.contains("2 malformed records; the first, line 1: 'no' is no access"), "{nothing}");
}
