//! `bursar advise`: profiles, costs and recorded decisions, each command in a fresh process.

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::bursar;

/// What a command printed, and its exit status.
struct Printed {
    status: i32,
    out: String,
    err: String,
}

fn run(command: &mut Command) -> Printed {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Printed { status: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}

fn advise(arguments: &[&str]) -> Printed {
    run(bursar().arg("advise").args(arguments))
}

fn report(path: &str) -> Printed {
    run(bursar().args(["report", path]))
}

/// Writes a file with this content in the test's folder.
fn file(folder: &tempfile::TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const PROFILE: &str = "\
bursar profile 1
# by hand
program xz 5f3e0c77
command xz -9 -k linux.tar
mmap 27 0 0..192M huge=2100000 touched=100% sure=90% eager=40000
heap - - 0..64M touched=12%
bss libfoo.so:77ab - 16M..24M huge=90000
";

#[test]
fn check_accepts_a_valid_profile() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "xz.profile", PROFILE);
    let Printed { status, out, err } = advise(&["check", text(&path)]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert_eq!(out, format!("{}: valid; 3 ranges of 1 program\n", path.display()));
}

#[test]
fn check_reads_a_profile_from_standard_input() {
    let mut check = bursar();
    check.args(["advise", "check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = check.spawn().unwrap();
    child.stdin.take().unwrap().write_all(PROFILE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "standard input: valid; 3 ranges of 1 program\n");
}

#[test]
fn check_reports_each_wrong_line_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let content = PROFILE.replace("192M", "lots").replace("touched=12%", "touched=12") + "heaap - - 0..1 huge=1\n";
    let path = file(&folder, "xz.profile", &content);
    let Printed { status, out, err } = advise(&["check", text(&path)]);
    assert_eq!((status, out.as_str()), (125, ""));
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), 3, "{err}");
    let begins = |line: &str, place: &str| line.starts_with(&format!("bursar: {}: {place}: ", path.display()));
    assert!(begins(lines[0], "line 5, column 14") && lines[0].contains("'lots' is not a size"), "{err}");
    assert!(begins(lines[1], "line 6, column 25") && lines[1].contains("write 0% to 100%"), "{err}");
    assert!(begins(lines[2], "line 8, column 1") && lines[2].contains("'heaap' begins no line"), "{err}");
}

#[test]
fn check_refuses_other_files_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let empty = file(&folder, "empty", "");
    let binary = folder.path().join("binary");
    std::fs::write(&binary, [0xff, 0xfe, 0, 1]).unwrap();
    let missing = folder.path().join("missing");
    for (path, what) in [
        (&empty, "line 1, column 1: this is no profile"),
        (&binary, "is no text file: it holds bytes that are no UTF-8. A profile is what"),
        (&missing, "could not be read: No such file or directory"),
    ] {
        let Printed { status, err, .. } = advise(&["check", text(path)]);
        assert_eq!((status, err.lines().count()), (125, 1), "{err}");
        assert!(err.contains(what), "{err}");
    }
}

#[test]
fn wrong_arguments_end_with_125_and_name_the_right_ones() {
    for (arguments, what) in [
        (&["check"][..], "PROFILE"),
        (&["chekc", "x"], "check"),
        (&["costs", "--agian"], "--again"),
        (&["convert", "x.csv", "--program", "/bin/sh", "--ghz", "2200"], "write 2.2"),
    ] {
        let Printed { status, err, .. } = advise(arguments);
        assert_eq!(status, 125, "{err}");
        assert!(err.contains(what), "{err}");
    }
}

#[test]
fn costs_are_cached_until_a_new_measurement_is_requested() {
    let cache = tempfile::tempdir().unwrap();
    let costs = |arguments: &[&str]| {
        let mut command = bursar();
        command.env("XDG_CACHE_HOME", cache.path()).args(["advise", "costs"]).args(arguments);
        run(&mut command)
    };
    let path = cache.path().join("bursar/costs.json");
    let mut first = costs(&["--json", "-"]);
    assert_eq!((first.status, first.err.as_str()), (0, ""));
    let mut json: Value = serde_json::from_str(&first.out).unwrap();
    // Other tests run at the same time.
    if json["beside_others"] == true {
        json["beside_others"] = false.into();
        std::fs::write(&path, json.to_string()).unwrap();
        first = costs(&["--json", "-"]);
    }
    let measured = json["costs"].as_object().unwrap();
    assert_eq!(measured.len(), 21);
    assert!(measured.values().all(|ns| ns.as_f64().is_some_and(|ns| ns >= 0.0)), "{json}");
    assert!(measured["base_fault_ns"].as_f64().unwrap() > 0.0);
    for assumed in json["assumed"].as_array().unwrap() {
        assert!(measured.contains_key(assumed[0].as_str().unwrap()) && assumed[1].as_str().is_some(), "{assumed}");
    }
    assert_eq!(costs(&["--json", "-"]).out, first.out, "remembered");
    let table = costs(&[]);
    assert_eq!(table.out.lines().count(), 21, "{}", table.out);
    assert!(table.out.contains(" ns  a fault that gives 4 KiB"), "{}", table.out);
    assert!(table.out.contains("B     that the last cache keeps"), "{}", table.out);
    std::fs::write(&path, first.out.replace(json["boot_id"].as_str().unwrap(), "another")).unwrap();
    assert_eq!(costs(&["--json", "-"]).status, 0);
    let again: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(again["boot_id"], json["boot_id"], "those of another start of the machine are measured anew");
    std::fs::write(&path, "{").unwrap();
    assert_eq!(costs(&["--again"]).status, 0);
    serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap();
}

#[test]
fn decisions_are_listed_with_their_figures() {
    let folder = tempfile::tempdir().unwrap();
    let decision = json!({
        "pid": 4711, "seconds": 0.25, "kind": "mmap", "which": "27", "ordinal": 0, "from": 0, "bytes": 201326592,
        "action": "huge", "why": "profile", "cost_ns": 89000.0, "benefit_ns": 2786080.0,
    });
    let stats = json!({ "huge_share": 0.5, "decisions": 1, "explained": [decision] });
    let path = file(&folder, "stats.json", &stats.to_string());
    let Printed { status, out, err } = report(text(&path));
    assert_eq!((status, err.as_str()), (0, ""));
    let line = out.lines().nth(1).unwrap();
    for word in ["0.250000", "4711", "mmap 27 0 0 B+", "192 MiB", "huge", "89.0 µs", "2.8 ms", "profile"] {
        assert!(line.contains(word), "{word}: {out}");
    }
    let none = file(&folder, "none.json", r#"{ "explained": [] }"#);
    assert_eq!(report(text(&none)).out, "nothing was decided\n");
    let profile = file(&folder, "profile", PROFILE);
    let Printed { status, err, .. } = report(text(&profile));
    assert_eq!((status, err.lines().count()), (125, 1));
    assert!(err.contains("is not a bursar record"), "{err}");
}

#[test]
fn a_cbmm_profile_is_converted_and_other_lines_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let csv = "huge,heap,2200000\n\
        huge,mmap,22000000,addr,>,0x7fcc00000000,addr,<,0x7fcc04000000\n\
        huge,mmap,22,addr,>,0x1000,addr,<,0x2000\n\
        huge,mmap,many\n";
    let csv = file(&folder, "sh.csv", csv);
    let maps = file(&folder, "sh.maps", "7fcc00000000-7fcc08000000 rw-p 00000000 00:00 0 \n");
    let program = ["--program", "/bin/sh", "--ghz", "2.2", "--maps", text(&maps)];
    let Printed { status, out, err } = advise(&[&["convert", text(&csv)], &program[..]].concat());
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("bursar profile 1\nprogram sh "), "{out}");
    assert!(
        out.ends_with("\nmmap 27 0 0..64M huge=10000000 sure=50%\nheap - - 0..end huge=1000000 sure=50%\n"),
        "{out}"
    );
    assert!(err.contains("line 4, column 11: 'many' is no number"), "{err}");
    assert!(err.contains("line 3, column 1: nothing of the kind was mapped between 0x1000 and 0x2000"), "{err}");
    let profile = file(&folder, "sh.profile", &out);
    assert_eq!(advise(&["check", text(&profile)]).status, 0);
}
