//! `bursar report` of folders of records, one for each task of a workflow.

mod support;

use std::fs;
use std::path::Path;

use support::{bursar, json_after};

/// Records a shell command in a folder, which is created if missing.
fn task(folder: &Path, name: &str, script: &str) {
    fs::create_dir_all(folder).unwrap();
    let record = folder.join(format!("{name}.bursar"));
    bursar().args(["run", "-q", "--record"]).arg(record).args(["--", "sh", "-c", script]).output().unwrap();
}

#[test]
fn tasks_are_summed_by_rule() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("memory");
    let holding = |mib: u32| format!("head -c {} /dev/zero | tail >/dev/null", mib << 20);
    task(&folder.join("align"), "1", &holding(16));
    task(&folder.join("align"), "2", &holding(64));
    task(&folder.join("call"), "3", "exit 3");
    task(&folder.join("group/deep"), "4", "true");
    fs::write(folder.join("align/cut.bursar"), "no record").unwrap();
    fs::write(folder.join("align/notes.txt"), "no record at all").unwrap();

    let (status, json, _) = json_after(bursar().arg("report").arg(&folder).args(["--json", "-"]));
    assert_eq!(status, 0, "{json:#}");
    let rules = json["rules"].as_array().unwrap();
    let names: Vec<_> = rules.iter().map(|rule| rule["rule"].as_str().unwrap()).collect();
    assert_eq!(names, ["align", "call", "group/deep"]);
    let numbers: Vec<_> = rules.iter().map(|rule| (rule["tasks"].as_u64(), rule["failed"].as_u64())).collect();
    assert_eq!(numbers, [(Some(2), Some(0)), (Some(1), Some(1)), (Some(1), Some(0))]);
    let peak = &rules[0]["peak_bytes"];
    assert!(peak["max"].as_u64().unwrap() > 64 << 20, "{json:#}");
    assert!((16 << 20..64 << 20).contains(&peak["median"].as_u64().unwrap()), "{json:#}");
    assert!(rules[1]["peak_bytes"].is_null(), "a failed task's peak is a lower bound: {json:#}");
    let total = &json["total"];
    assert_eq!((total["tasks"].as_u64(), total["failed"].as_u64()), (Some(4), Some(1)));
    assert_eq!(total["peak_bytes"]["max"], peak["max"]);
    let sum: f64 = rules.iter().map(|rule| rule["total_seconds"].as_f64().unwrap()).sum();
    assert!((sum - total["total_seconds"].as_f64().unwrap()).abs() < 1e-6, "{json:#}");
    let left_out = json["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0]["path"].as_str().unwrap().ends_with("align/cut.bursar"), "{json:#}");

    let output = bursar().arg("report").arg(&folder).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = printed.lines().next().unwrap_or_default();
    assert!(first.starts_with("4 tasks of 3 rules, 1 failed; the largest peak is "), "{printed}");
    assert!(first.ends_with(", of align"), "{printed}");
    let note: String = printed.lines().skip_while(|line| !line.starts_with("note: ")).collect();
    assert!(note.ends_with("align/cut.bursar is left out: it is not a bursar record"), "{printed}");
}

#[test]
fn records_without_a_subfolder_are_grouped_by_program() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..2 {
        let record = place.path().join(format!("{number}.bursar"));
        bursar().args(["run", "-q", "--record"]).arg(record).args(["--", "sleep", "0"]).output().unwrap();
    }
    let (_, json, _) = json_after(bursar().arg("report").arg(place.path()).args(["--json", "-"]));
    let rules: Vec<_> = json["rules"].as_array().unwrap().iter().map(|rule| (&rule["rule"], &rule["tasks"])).collect();
    assert_eq!(rules, [(&"sleep".into(), &2.into())]);
}

#[test]
fn a_page_of_a_folder_is_refused() {
    let place = tempfile::tempdir().unwrap();
    task(place.path(), "1", "true");
    let output = bursar().arg("report").arg(place.path()).args(["--html", "page.html"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(125) && printed.contains("--json") && printed.lines().count() == 1,
        "{output:?}"
    );
}
