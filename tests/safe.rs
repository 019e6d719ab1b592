//! Hostile and long use: records made by others, names with terminal escapes, killed runs, many records.

mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;
use support::bursar;

/// Sets the terminal's title, clears the screen by a C1 code, and reverses the direction of writing.
const ESCAPES: &str = "x\u{1b}]0;title\u{7}\u{9b}2J\u{202e}y";

fn is_clean(output: &Output) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let steers = |c: char| c != '\n' && c != '\t' && (c.is_control() || c == '\u{202e}' || c == '\u{2028}');
        assert!(!text.contains(steers), "{text:?}");
    }
}

fn recorded(folder: &Path, command: &[&OsStr]) -> PathBuf {
    let path = folder.join("made.bursar");
    let made = bursar().args(["run", "-q", "--record"]).arg(&path).arg("--").args(command).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    path
}

#[test]
fn names_are_printed_without_terminal_escapes() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(ESCAPES);
    fs::write(&program, "#!/bin/sh\ncat \"$0\" >/dev/null\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let json = folder.path().join("json");
    for output in [
        bursar().args(["run", "--json"]).arg(&json).arg("--").arg(&program).arg(ESCAPES).output(),
        bursar().args(["run", "--json", "-", "--"]).arg(&program).arg(ESCAPES).output(),
        bursar().args(["run", "-v", "--"]).arg(&program).arg(ESCAPES).output(),
        bursar().args(["attribute", "--"]).arg(&program).output(),
        bursar().arg("run").arg("--").arg(folder.path().join(format!("{ESCAPES}none"))).output(),
        bursar().arg("report").arg(folder.path().join(format!("{ESCAPES}none"))).output(),
        bursar().args(["run", "--cgroup", &format!("/{ESCAPES}")]).output(),
        bursar().args(["watch", "--cgroup", &format!("/sys/fs/cgroup/{ESCAPES}")]).output(),
        bursar().arg("recommend").arg(&program).output(),
        bursar().args(["curve", "trace"]).arg(&program).output(),
        bursar().args(["report", "-"]).stdin(fs::File::open(&program).unwrap()).output(),
        bursar().arg(ESCAPES).output(),
        bursar().args(["run", &format!("--{ESCAPES}")]).output(),
    ] {
        is_clean(&output.unwrap());
    }
    let parsed: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert!(parsed.to_string().contains("title"), "JSON keeps the original text: {parsed}");
}

#[test]
fn records_of_others_are_printed_without_terminal_escapes() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(folder.path(), &[OsStr::new("true")]);
    let column = format!("ALTER TABLE run ADD COLUMN \"{ESCAPES}\"");
    let kind = format!("UPDATE header SET kind = '{ESCAPES}'");
    let note = format!("INSERT INTO note VALUES ('{ESCAPES}')");
    let json = format!("UPDATE run SET exit = '{ESCAPES}'");
    for (sql, is_read) in [(column, false), (kind, false), (note, true), (json, false)] {
        let changed = folder.path().join("changed.bursar");
        fs::copy(&path, &changed).unwrap();
        Connection::open(&changed).unwrap().execute_batch(&sql).unwrap();
        let report = bursar().arg("report").arg(&changed).output().unwrap();
        assert_eq!(report.status.success(), is_read, "{sql:?} {report:?}");
        is_clean(&report);
        is_clean(&bursar().args(["report", "--format", "json"]).arg(folder.path().join("none")).output().unwrap());
    }
}

#[test]
fn records_that_would_use_all_memory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(folder.path(), &[OsStr::new("true")]);
    let sql = "DROP TABLE sample; CREATE VIEW sample AS
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 1 AS series, i AS t_ns, 1.0 AS value FROM n";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let report = bursar().arg("report").arg(&path).output().unwrap();
    assert_eq!(report.status.code(), Some(125));
    let stderr = String::from_utf8(report.stderr).unwrap();
    assert!(stderr.contains("is damaged: its 'sample' is no table as bursar makes it"), "{stderr}");
}

#[test]
fn report_seals_the_record_of_a_killed_bursar() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.bursar");
    let mut run = bursar();
    let run = run.args(["run", "-q", "--record"]).arg(&path).args(["--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(run.stdout.as_mut().unwrap()).read_line(&mut pid).unwrap();
    // The writer appends each entry at once: the first is in the file when the command runs.
    while !fs::read(&path).is_ok_and(|bytes| bytes.windows(9).any(|window| window == b"run_begin")) {
        assert!(run.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let _ = Command::new("kill").args(["-9", pid.trim()]).stderr(Stdio::null()).status();
    let report = bursar().arg("report").arg(&path).output().unwrap();
    assert!(report.status.success(), "{report:?}");
    let stderr = String::from_utf8(report.stderr).unwrap();
    assert!(stderr.contains("was cut off: the bursar that wrote it was killed"), "{stderr}");
    assert!(fs::read(&path).unwrap().starts_with(b"SQLite format 3\0"));
    let again = bursar().arg("report").arg(&path).output().unwrap();
    assert_eq!((&again.stdout, again.stderr.is_empty()), (&report.stdout, true));
    assert!(String::from_utf8(again.stdout).unwrap().contains("the record was cut short"));
    assert!(bursar().args(["doctor", "--repair"]).output().unwrap().status.success());
}

fn default_records(state: &Path) -> usize {
    let names = state.join("bursar").read_dir().unwrap();
    names.filter(|entry| entry.as_ref().unwrap().path().extension() == Some(OsStr::new("bursar"))).count()
}

#[test]
fn the_state_folder_keeps_only_the_newest_records() {
    let state = tempfile::tempdir().unwrap();
    let named = state.path().join("bursar/mine.bursar");
    fs::create_dir(state.path().join("bursar")).unwrap();
    let run = |keep: &str, more: &[&OsStr]| {
        let mut run = bursar();
        run.env("XDG_STATE_HOME", state.path()).env("BURSAR_KEEP_RECORDS", keep).arg("run").args(more);
        run.args(["--", "true"]).output().unwrap()
    };
    assert!(run("3", &[OsStr::new("--record"), named.as_os_str()]).status.success());
    for _ in 0..4 {
        assert!(run("3", &[]).status.success());
    }
    assert_eq!(default_records(state.path()), 4, "three default records, and the named one");
    assert!(named.exists());
    let mut doctor = bursar();
    let doctor = doctor.args(["doctor", "--prune", "--json", "-"]).env("XDG_STATE_HOME", state.path());
    let pruned = doctor.env("BURSAR_KEEP_MIB", "0").output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&pruned.stdout).unwrap();
    assert_eq!(json["pruned"]["records"], 3);
    assert_eq!(default_records(state.path()), 1);
    assert!(named.exists());
    let wrong = run("many", &[]);
    assert!(wrong.status.success());
    let stderr = String::from_utf8(wrong.stderr).unwrap();
    assert!(stderr.contains("BURSAR_KEEP_RECORDS is 'many', which is not a whole number"), "{stderr}");
}

#[test]
fn the_record_of_a_trivial_run_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(folder.path(), &[OsStr::new("true")]);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < 16 << 10, "{bytes} bytes");
}
