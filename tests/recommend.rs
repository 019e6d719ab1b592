//! `bursar slurm recommend` on what the accounting of a real Slurm told of jobs of known needs (tests/slurm/record).

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::bursar;

const MIB: u64 = 1 << 20;

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slurm/recorded").join(name)
}

fn recommend(arguments: &[&str], from: &Path) -> Output {
    bursar().args(["slurm", "recommend"]).args(arguments).arg("--from").arg(from).stdin(Stdio::null()).output().unwrap()
}

fn figures(file: &str, gatherer: &str) -> Value {
    let output = recommend(&["--gatherer", gatherer, "--json", "-"], &recorded(file));
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn job<'a>(figures: &'a Value, name: &str) -> &'a Value {
    let jobs = figures["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["name"] == name).unwrap_or_else(|| panic!("{name}: {figures}"))
}

fn mib(job: &Value, name: &str) -> u64 {
    job[name].as_u64().unwrap_or_else(|| panic!("{name}: {job}")) / MIB
}

#[test]
fn jobs_of_known_needs_are_told_by_both_gatherers() {
    for (gatherer, rest) in [("linux", 8..14), ("cgroup", 2..5)] {
        let found = figures(&format!("slurm-22.05-{gatherer}.json"), gatherer);
        let is_near = |held: u64, told: u64| {
            assert!(rest.contains(&told.saturating_sub(held)), "{gatherer}: {held}, {told}: {found}")
        };
        // 80 to 104 MiB and what an interpreter takes; one failed at 84, one was killed at 60.
        let solver = job(&found, "solver");
        assert_eq!(
            (solver["runs"].as_u64(), solver["cut_short"].as_u64(), solver["out_of_memory"].as_u64()),
            (Some(6), Some(2), Some(1))
        );
        is_near(104, mib(solver, "max_bytes"));
        assert_eq!((mib(solver, "min_bytes"), mib(solver, "asked_bytes")), (60, 400));
        assert_eq!(mib(solver, "mem_bytes"), (solver["max_bytes"].as_u64().unwrap() * 11 / 10).div_ceil(MIB));
        assert_eq!((solver["killed"].as_u64(), solver["maybe_killed"].as_u64()), (Some(0), Some(2)));
        is_near(43, mib(job(&found, "array"), "max_bytes"));
        assert_eq!(job(&found, "array")["runs"], 4);
        // 2 CPUs, each with a task of 50 MiB.
        assert_eq!(job(&found, "per-cpu")["per"], "cpu");
        assert_eq!(mib(job(&found, "per-cpu"), "asked_bytes"), 150);
        // 30 and 40 MiB side by side, then 50.
        assert!((74..112).contains(&mib(job(&found, "steps"), "max_bytes")), "{found}");
        assert_eq!(job(&found, "too-long")["is_lower_bound"], true, "a time-out is no end");
    }
}

#[test]
fn page_cache_is_told_apart_where_the_gatherer_tells_it() {
    let by_cgroup = figures("slurm-22.05-cgroup.json", "cgroup");
    let reader = job(&by_cgroup, "reader");
    assert_eq!(
        (mib(reader, "max_bytes"), mib(reader, "cache_bytes")),
        (28, 64),
        "24 MiB of heap, a file of 64: {reader}"
    );
    assert!(mib(reader, "mem_with_cache_bytes") >= 92 && mib(reader, "mem_bytes") < 40, "{reader}");
    let by_linux = figures("slurm-22.05-linux.json", "linux");
    assert_eq!(job(&by_linux, "reader")["cache_bytes"], Value::Null);
}

#[test]
fn text_says_what_json_says_but_for_memory_per_cpu() {
    for gatherer in ["linux", "cgroup"] {
        let [json, text] = ["json", "txt"].map(|end| figures(&format!("slurm-22.05-{gatherer}.{end}"), gatherer));
        for told in json["jobs"].as_array().unwrap().iter().filter(|told| told["per"] == "node") {
            let other = job(&text, told["name"].as_str().unwrap());
            for name in ["runs", "cut_short", "asked_bytes", "killed", "reserved_gib_hours"] {
                assert_eq!(told[name], other[name], "{name}: {told} {other}");
            }
            // Text is rounded to KiB or hundredths of MiB.
            assert!(mib(told, "mem_bytes").abs_diff(mib(other, "mem_bytes")) <= 1, "{told} {other}");
        }
    }
}

#[test]
fn a_table_says_what_it_would_bring_and_the_file_may_come_by_a_pipe() {
    let file = std::fs::File::open(recorded("slurm-22.05-linux.json")).unwrap();
    let output =
        bursar().args(["slurm", "recommend", "--from", "-", "--percentile", "50%"]).stdin(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("17 past jobs: asking for --mem would have saved"), "{text}");
    assert!(
        text.contains("50 % need") && text.contains("solver") && text.contains("--gatherer linux or cgroup"),
        "{text}"
    );
}

#[test]
fn what_is_malformed_is_told_by_its_line_and_what_is_missing_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |told: &str, complaint: &str| {
        let path = folder.path().join("told");
        std::fs::write(&path, told).unwrap();
        let output = recommend(&[], &path);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(125) && said.contains(complaint) && said.lines().count() == 1, "{said}");
    };
    fails("", "it is empty");
    fails("{\"jobs\": [{\"name\": 7}]}", "line 1 column");
    fails("{\"jobs\": []}", "no job that has ended");
    fails("JobID|State\n", "no column JobName");
    fails(
        "JobID|JobName|State|ElapsedRaw|MaxRSS\n1|a|COMPLETED|60|\n1.0|a|COMPLETED|60|lots\n",
        "line 3: MaxRSS is 'lots'",
    );
    let missing = recommend(&[], Path::new("/no/such/file"));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("/no/such/file could not be read"));
}

#[test]
fn sacct_is_asked_for_whose_jobs_and_of_how_many_days() {
    let folder = tempfile::tempdir().unwrap();
    let sacct = folder.path().join("sacct");
    // As an old one: no --json. What it prints was recorded.
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>{}/asked\n[ \"$1\" = --json ] && {{ echo \"sacct: unrecognized option '--json'\" >&2; exit 1; }}\ncat {}\n",
        folder.path().display(),
        recorded("slurm-22.05-linux.txt").display()
    );
    std::fs::write(&sacct, script).unwrap();
    std::fs::set_permissions(&sacct, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let asked = |program: &mut Command| program.env("PATH", &path).env("SLURM_CONF", "/dev/null").output().unwrap();
    let output = asked(bursar().args(["slurm", "recommend", "--user", "nobody", "--days", "7"]));
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("solver"), "{output:?}");
    let asked_for = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    let lines: Vec<&str> = asked_for.lines().collect();
    assert!(lines[0] == "--json --starttime=now-7days --user=nobody", "{asked_for}");
    assert!(
        lines[1].starts_with("--parsable2 --format JobID,JobName,") && lines[1].ends_with("--user=nobody"),
        "{asked_for}"
    );
}
