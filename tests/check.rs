//! `bursar check` of programs whose heap size is known.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{Programs, bursar, bursar_as_nobody, can_hide_cgroups, json_of, shared_folder, without_cgroups};

/// A program that holds the given MiB of heap; its runs differ by about 1 %: `grow.py MIB`.
const PROGRAM: &str = "import os, sys, time
size = int(float(sys.argv[1]) * (1 << 20))
spread = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
u = [b / 255 - 0.5 for b in os.urandom(12)]
data = bytearray(int(size * (1 + spread * sum(u))))
data[::4096] = b'x' * len(data[::4096])
time.sleep(0.4)
";

fn program(folder: &Path) {
    fs::write(folder.join("grow.py"), PROGRAM).unwrap();
}

fn check(arguments: &[&str], folder: &Path) -> Output {
    bursar().arg("check").args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The status and the JSON.
fn figures(arguments: &[&str], folder: &Path) -> (i32, Value) {
    let output = check(&[&["--json", "-"], arguments].concat(), folder);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap(), json)
}

fn refused(arguments: &[&str], folder: &Path) -> String {
    let output = check(arguments, folder);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let error = text(&output.stderr);
    assert!(error.starts_with("bursar: ") && error.lines().count() == 1, "{error}");
    error
}

/// Records runs of a program that holds the given MiB.
fn record(name: &str, runs: &str, command: &[&str], folder: &Path) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut run = bursar();
    run.args(["run", "-q", "-n", runs, "--record"]).arg(&path).arg("--").args(command).current_dir(folder);
    assert!(run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok());
    path
}

#[test]
fn equal_runs_pass_and_ten_percent_more_heap_fails() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    record("base.bursar", "5", &["python3", "grow.py", "100"], folder.path());
    let baseline = ["--baseline", "base.bursar", "--", "python3", "grow.py"];
    let (status, json) = figures(&[&baseline[..], &["100"]].concat(), folder.path());
    assert_eq!((status, &json["passed"], &json["decided"]), (0, &true.into(), &true.into()), "{json}");
    assert!(json["runs"].as_u64().unwrap() < 20 && json["baseline_runs"] == 5, "{json}");
    let (status, json) = figures(&[&baseline[..], &["110"]].concat(), folder.path());
    assert_eq!((status, &json["passed"], &json["decided"]), (1, &false.into(), &true.into()), "{json}");
    let heap = json["checks"].as_array().unwrap().iter().find(|check| check["figure"] == "heap_bytes").unwrap();
    assert_eq!(heap["passed"], false, "{json}");
    let of = |name: &str| heap[name].as_f64().unwrap();
    assert!((1.08..1.11).contains(&(of("value") / of("baseline"))), "{json}");
    assert!(of("value") > of("bound") + of("noise") && of("bound") == of("baseline"), "{json}");
    assert!(json["others"].as_array().unwrap().iter().any(|other| other["figure"] == "wall_seconds"), "{json}");
}

#[test]
fn growth_within_the_tolerance_passes() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    record("base.bursar", "4", &["python3", "grow.py", "100"], folder.path());
    let check = |mib: &str| {
        let tolerance = ["--baseline", "base.bursar", "--tolerance", "5%"];
        check(&[&tolerance[..], &["--", "python3", "grow.py", mib]].concat(), folder.path())
    };
    let (within, beyond) = (check("103"), check("108"));
    assert_eq!((within.status.code(), beyond.status.code()), (Some(0), Some(1)), "{within:?} {beyond:?}");
    let line = text(&beyond.stdout);
    assert!(line.starts_with("failed: ") && line.contains("5.0 % allowed"), "{line}");
}

#[test]
fn a_maximum_applies_to_every_run() {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let run = ["--", programs.footprint(), "private", "100M", "--hold", "200"];
    for (max, status, word) in [("50M", 1, "failed: "), ("200M", 0, "passed: "), ("103M", 0, "passed: ")] {
        let output = check(&[&["--max", max][..], &run[..]].concat(), folder.path());
        assert_eq!(output.status.code(), Some(status), "{max}: {output:?}");
        let line = text(&output.stdout);
        assert!(line.starts_with(word) && line.lines().count() == 1, "{line}");
    }
    let (status, json) = figures(&[&["--max", "200M"][..], &run[..]].concat(), folder.path());
    assert_eq!((status, &json["runs"], &json["checks"][0]["figure"]), (0, &1.into(), &"floor_bytes".into()), "{json}");
}

#[test]
fn each_run_is_prepared_given_its_input_and_redacted() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    fs::write(folder.path().join("input.txt"), "hello").unwrap();
    let script = "rm ready && grep -q hello && python3 grow.py 20 0 secret";
    let run = ["--", "sh", "-c", script];
    let given = ["--max", "1G", "--input", "input.txt", "--redact", "secret", "--record", "new.bursar"];
    let (status, json) = figures(&[&given[..], &["--prepare", "touch ready"], &run].concat(), folder.path());
    assert_eq!((status, &json["passed"]), (0, &true.into()), "{json}");
    assert!(!json.to_string().contains("secret"), "{json}");
    let kept = fs::read(folder.path().join("new.bursar")).unwrap();
    assert!(!kept.windows(6).any(|bytes| bytes == b"secret"));
    let unprepared = check(&[&["--max", "1G", "--input", "input.txt"][..], &run].concat(), folder.path());
    assert!(text(&unprepared.stderr).contains("failed with status 1"), "{unprepared:?}");
    let failed = refused(&[&["--max", "1G", "--prepare", "exit 3"][..], &["--", "true"]].concat(), folder.path());
    assert!(failed.contains("--prepare 'exit 3' failed"), "{failed}");
}

#[test]
fn a_record_is_checked_without_a_run() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    for (name, mib) in [("base.bursar", "100"), ("same.bursar", "100"), ("more.bursar", "110")] {
        record(name, "4", &["python3", "grow.py", mib], folder.path());
    }
    let status = |from: &str, bound: [&str; 2]| {
        let output = check(&[&["--from", from][..], &bound[..]].concat(), folder.path());
        output.status.code().unwrap()
    };
    let baseline = ["--baseline", "base.bursar"];
    assert_eq!((status("same.bursar", baseline), status("more.bursar", baseline)), (0, 1));
    assert_eq!((status("more.bursar", ["--max", "90M"]), status("more.bursar", ["--max", "1G"])), (1, 0));
}

#[test]
fn one_run_against_one_cannot_be_decided() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    for name in ["base.bursar", "new.bursar"] {
        record(name, "1", &["python3", "grow.py", "100"], folder.path());
    }
    let (status, json) = figures(&["--from", "new.bursar", "--baseline", "base.bursar"], folder.path());
    assert_eq!((status, &json["passed"], &json["decided"]), (2, &false.into(), &false.into()), "{json}");
    assert!(json["checks"].as_array().unwrap().iter().all(|check| check["passed"].is_null()), "{json}");
    let output = check(&["--from", "new.bursar", "--baseline", "base.bursar"], folder.path());
    assert!(text(&output.stdout).starts_with("cannot be decided: "), "{output:?}");
}

#[test]
fn a_folder_baseline_skips_unusable_records() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    for number in 1..=4 {
        record(&format!("base/{number}.bursar"), "1", &["python3", "grow.py", "60"], folder.path());
    }
    record("base/other.bursar", "1", &["true"], folder.path());
    let (status, json) = figures(&["--baseline", "base", "--", "python3", "grow.py", "70"], folder.path());
    assert_eq!((status, &json["baseline_runs"]), (1, &4.into()), "{json}");
    assert!(json["notes"].to_string().contains("other.bursar: it is of another program"), "{json}");
}

#[test]
fn runs_and_records_that_cannot_be_compared_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    let grow = ["python3", "grow.py", "20"];
    let base = record("base.bursar", "2", &grow, folder.path());
    record("failed.bursar", "1", &["sh", "-c", "exit 3"], folder.path());
    record("killed.bursar", "1", &["sh", "-c", "kill -9 $$"], folder.path());
    fs::create_dir(folder.path().join("empty")).unwrap();
    let bytes = fs::read(&base).unwrap();
    fs::write(folder.path().join("damaged.bursar"), &bytes[..bytes.len() / 2]).unwrap();
    fs::copy(&base, folder.path().join("elsewhere.bursar")).unwrap();
    let database = rusqlite::Connection::open(folder.path().join("elsewhere.bursar")).unwrap();
    assert!(database.execute("UPDATE header SET host = 'elsewhere'", []).unwrap() > 0);
    drop(database);
    let own = ["--", "python3", "grow.py", "20"];
    for (arguments, part) in [
        (["--baseline", "failed.bursar"], "failed with status 3: its figures are lower bounds"),
        (["--baseline", "killed.bursar"], "was ended by signal 9"),
        (["--baseline", "empty"], "holds no record"),
        (["--baseline", "missing.bursar"], "cannot read missing.bursar"),
        (["--baseline", "damaged.bursar"], "damaged.bursar"),
        (["--baseline", "elsewhere.bursar"], "it is of another machine ('elsewhere'"),
    ] {
        let error = refused(&[&arguments[..], &own[..]].concat(), folder.path());
        assert!(error.contains(part), "{error}");
    }
    let other = refused(&["--baseline", "base.bursar", "--", "true"], folder.path());
    assert!(other.contains("it is of another program ('python3 grow.py', not 'true')"), "{other}");
    let taken = ["--baseline", "elsewhere.bursar", "--other-machine"];
    let output = check(&[&taken[..], &own[..]].concat(), folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn an_unfinished_run_is_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let of = |command: &[&str]| check(&[&["--max", "1G"][..], command].concat(), folder.path());
    let failed = of(&["--", "sh", "-c", "echo no such mode >&2; exit 3"]);
    let error = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(125), "{failed:?}");
    assert!(error.contains("run 0 failed with status 3") && error.contains("no such mode"), "{error}");
    assert_eq!(of(&["--", "sh", "-c", "kill -9 $$"]).status.code(), Some(125));
    assert_eq!(of(&["--timeout", "100ms", "--", "sleep", "60"]).status.code(), Some(124));
    assert_eq!(of(&["--", "/no/such/program"]).status.code(), Some(127));
}

#[test]
fn results_are_written_as_markdown_junit_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let output = check(&["--max", "1K", "--junit", "junit.xml", "--markdown", "-", "--", "true"], folder.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.contains("| figure | value |") && table.contains("**failed**"), "{table}");
    assert!(text(&output.stderr).starts_with("failed: "), "{output:?}");
    let parse = "import sys, xml.etree.ElementTree as tree
suites = tree.parse(sys.argv[1]).getroot()
suite = suites.find('testsuite')
assert (suite.get('tests'), suite.get('failures'), suite.get('errors')) == ('1', '1', '0'), suite.attrib
assert suite.find('testcase').find('failure').get('message')";
    let parsed = Command::new("python3").args(["-c", parse, "junit.xml"]).current_dir(folder.path()).status();
    assert!(parsed.unwrap().success(), "{:?}", fs::read_to_string(folder.path().join("junit.xml")));
}

#[test]
fn heap_shared_by_forks_counts_once() {
    let script = "import os, time\nheap = bytearray(60 << 20)\nfor _ in range(4):\n if not os.fork():\n  time.sleep(.5)\n  \
                  os._exit(0)\nfor _ in range(4): os.wait()";
    let output = bursar().args(["check", "--max", "140M", "--", "python3", "-c", script]).output().unwrap();
    let line = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && line.starts_with("passed: floor "), "{line}");
}

/// When memory is short, the kernel splits huge pages of which a part was freed, and frees that part.
#[test]
fn freed_parts_of_huge_pages_are_not_in_the_floor() {
    if !support::is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = r"
        #include <stdint.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main(void) {
            const uintptr_t huge = 2 << 20, count = 128;
            char *all = mmap(0, (count + 1) * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            all = (char *)(((uintptr_t)all + huge - 1) / huge * huge);
            madvise(all, count * huge, MADV_HUGEPAGE);
            for (char *at = all; at < all + count * huge; at += huge) {
                memset(at, 1, huge);
                madvise(at + 4096, huge - 4096, MADV_DONTNEED);
            }
            sleep(1);
        }";
    fs::write(folder.path().join("parts.c"), source).unwrap();
    let built = Command::new("cc").current_dir(folder.path()).args(["-o", "parts", "parts.c"]).status();
    assert!(built.unwrap().success());
    let kept = folder.path().join("parts.bursar").display().to_string();
    let (status, json) = figures(&["--max", "100M", "--record", &kept, "--", "./parts"], folder.path());
    let peak = json_of(bursar().args(["report", &kept, "--json", "-"])).1;
    if peak["peak_detail"]["given_back"].is_null() {
        // Huge pages may be unavailable or of another size.
        assert!(!json.to_string().contains("floor exceeds"), "{json}");
        return;
    }
    assert_eq!(status, 0, "{json}");
    let vpa = bursar().args(["report", &kept, "--format", "vpa"]).output().unwrap();
    let vpa: Value = serde_json::from_slice(&vpa.stdout).unwrap();
    let target = &vpa["status"]["recommendation"]["containerRecommendations"][0]["target"]["memory"];
    let mib: u64 = target.as_str().unwrap().trim_end_matches("Mi").parse().unwrap();
    assert!(mib > 200, "what it takes to free the parts in time is not known: {vpa}");
}

#[test]
fn the_sum_over_processes_decides_and_is_named() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let script = "import os, time\nheap = bytearray(60 << 20)\nfor _ in range(3):\n if not os.fork():\n  heap[:10 << 20] = b'x' * \
                  (10 << 20)\n  time.sleep(.5)\n  os._exit(0)\nfor _ in range(3): os.wait()";
    let mut nobody = bursar_as_nobody(folder.path());
    nobody.args(["check", "--max", "300M", "--", "python3", "-c", script]);
    let output = without_cgroups(&nobody).output().unwrap();
    let line = text(&output.stdout);
    assert!(output.status.success() && !line.starts_with("passed: App-MaxRSS"), "{line}");
    assert!(line.starts_with("passed: its processes held at most ") || line.starts_with("passed: floor "), "{line}");
}

#[test]
fn memory_that_no_cgroup_counts_decides_as_far_as_it_is_known() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let record = shared_folder(folder.path()).join("base.bursar").display().to_string();
    let file = format!("/dev/shm/bursar-check-{}", std::process::id());
    let script = format!("dd if=/dev/zero of={file} bs=1M count=100 status=none; sleep .5; rm {file}");
    let check = |arguments: &[&str], runs: bool| {
        let mut nobody = bursar_as_nobody(folder.path());
        nobody.args(["check", "--json", "-"]).args(arguments);
        nobody.args(["--", "sh", "-c", &script].iter().filter(|_| runs));
        json_of(&mut without_cgroups(&nobody))
    };
    for (arguments, runs) in
        [(vec!["--max", "50M", "--record", &record], true), (vec!["--max", "50M", "--from", &record], false)]
    {
        let (status, json) = check(&arguments, runs);
        assert_eq!((status, &json["decided"]), (1, &true.into()), "there were 100 MiB at once: {json:#}");
    }
    let (status, json) = check(&["--baseline", &record], true);
    assert_eq!((status, &json["decided"]), (2, &false.into()), "{json:#}");
    let reason = json["reason"].as_str().unwrap();
    assert!(reason.contains("at least 100 MiB in files in memory") && reason.contains(&file), "{reason}");
    let (status, json) = check(&["--max", "200M", "--from", &record], false);
    assert_eq!((status, &json["passed"]), (0, &true.into()), "both together are below the maximum: {json:#}");
    let (status, json) = check(&["--max", "1M", "--from", &record], false);
    assert_eq!((status, &json["decided"]), (1, &true.into()), "what is known is above it: {json:#}");
}

#[test]
fn wrong_arguments_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (vec!["--", "true"], "--max"),
        (vec!["--max", "1G", "--json", "-", "--markdown", "-", "--", "true"], "cannot both be standard output"),
        (vec!["--max", "1G", "--figures", "run-time", "--", "true"], "run time is none"),
        (vec!["--max", "1G", "--junit", "none/x.xml", "--", "true"], "cannot write the JUnit XML"),
    ] {
        let output = check(&arguments, folder.path());
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(text(&output.stderr).contains(part), "{output:?}");
    }
}

#[test]
fn five_percent_more_heap_is_found_despite_one_percent_spread() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path());
    // The sum of twelve uniform values has a standard deviation of 1.
    record("base.bursar", "10", &["python3", "grow.py", "60", "0.01"], folder.path());
    let check = |mib: &str| {
        let command = ["--baseline", "base.bursar", "--", "python3", "grow.py", mib, "0.01"];
        check(&command, folder.path()).status.code()
    };
    assert_eq!((check("63"), check("60")), (Some(1), Some(0)));
}
