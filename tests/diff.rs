//! `bursar diff` of two or more records.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use support::{Programs, bursar, bursar_as_nobody, can_hide_cgroups, shared_folder, without_cgroups};

fn diff(arguments: &[&str], folder: &Path) -> Output {
    bursar().arg("diff").args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn figures(arguments: &[&str], folder: &Path) -> Value {
    let output = diff(&[&["--json", "-"], arguments].concat(), folder);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn record(name: &str, runs: &str, size: &str, folder: &Path) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut run = bursar();
    run.args(["run", "-q", "-n", runs, "--record"]).arg(&path).arg("--");
    run.args([Programs::build().footprint(), "private", size, "--hold", "200"]);
    assert!(run.stdout(Stdio::null()).status().unwrap().success());
}

fn figure<'a>(json: &'a Value, name: &str) -> &'a Value {
    let figures = json["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}: {json}"))
}

#[test]
fn a_change_beyond_the_spread_is_significant() {
    let folder = tempfile::tempdir().unwrap();
    record("a.bursar", "4", "50M", folder.path());
    record("b.bursar", "4", "60M", folder.path());
    let json = figures(&["a.bursar", "b.bursar"], folder.path());
    let heap = figure(&json, "heap_bytes");
    assert_eq!(heap["significant"], true, "{json}");
    assert!((0.17..0.23).contains(&heap["change"].as_f64().unwrap()), "{heap}");
    let same = figures(&["a.bursar", "a.bursar"], folder.path());
    let same = same["figures"].as_array().unwrap();
    assert!(same.iter().all(|figure| figure["significant"] != true), "{same:?}");
    let text = String::from_utf8(diff(&["a.bursar", "b.bursar"], folder.path()).stdout).unwrap();
    assert!(text.contains("heap") && text.contains("beyond noise"), "{text}");
}

#[test]
fn one_run_each_says_that_the_noise_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    record("a.bursar", "1", "50M", folder.path());
    record("b.bursar", "1", "60M", folder.path());
    let json = figures(&["a.bursar", "b.bursar"], folder.path());
    assert!(figure(&json, "heap_bytes")["significant"].is_null(), "{json}");
    let text = String::from_utf8(diff(&["a.bursar", "b.bursar"], folder.path()).stdout).unwrap();
    assert!(text.contains("one run each") && text.contains("noise is unknown"), "{text}");
}

#[test]
fn folders_and_more_than_two_are_compared_with_the_first() {
    let folder = tempfile::tempdir().unwrap();
    for (name, size) in [("a/1", "20M"), ("a/2", "20M"), ("a/3", "20M"), ("b", "20M"), ("c", "40M")] {
        record(&format!("{name}.bursar"), "1", size, folder.path());
    }
    let json = figures(&["a", "b.bursar", "c.bursar"], folder.path());
    assert_eq!(figure(&json, "heap_bytes")["significant"], false, "{json}");
    let others = json["others"].as_array().unwrap();
    assert_eq!((others.len(), &others[0]["name"]), (1, &"c.bursar".into()), "{json}");
    assert_eq!(figure(&others[0], "heap_bytes")["significant"], true, "{json}");
}

#[test]
fn the_page_draws_the_curves_in_one_chart() {
    let folder = tempfile::tempdir().unwrap();
    record("a.bursar", "1", "20M", folder.path());
    record("b.bursar", "1", "40M", folder.path());
    assert!(diff(&["a.bursar", "b.bursar", "--html", "page.html"], folder.path()).status.success());
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("id=\"plot-charge\"") && page.contains("id=\"figures\""));
    assert!(page.contains("a.bursar") && page.contains("b.bursar"));
}

#[test]
fn components_and_libraries_of_attribute_records_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    for (name, size) in [("a.bursar", "20"), ("b.bursar", "40")] {
        let mut run = bursar();
        run.args(["attribute", "-q", "--record"]).arg(folder.path().join(name)).arg("--");
        let size = format!("import time; data = b'x' * ({size} << 20); time.sleep(0.4)");
        run.args(["python3", "-c", &size]);
        assert!(run.stdout(Stdio::null()).status().unwrap().success());
    }
    let json = figures(&["a.bursar", "b.bursar"], folder.path());
    let application = figure(&json, "component application");
    assert!(application["change"].as_f64().unwrap() > 0.5, "{application}");
    let names = json["figures"].as_array().unwrap().iter().map(|figure| figure["name"].as_str().unwrap());
    assert!(names.clone().any(|name| name.starts_with("library ")), "{:?}", names.collect::<Vec<_>>());
}

#[test]
fn a_note_names_the_record_whose_figures_lack_memory() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let records = shared_folder(folder.path());
    let file = format!("/dev/shm/bursar-diff-{}", std::process::id());
    let fill = format!("dd if=/dev/zero of={file} bs=1M count=20 status=none; sleep .5; rm {file}");
    for (name, script) in [("a.bursar", "sleep .5"), ("b.bursar", &fill)] {
        let mut nobody = bursar_as_nobody(folder.path());
        nobody.args(["run", "-q", "--record"]).arg(records.join(name)).args(["--", "sh", "-c", script]);
        assert!(without_cgroups(&nobody).status().unwrap().success());
    }
    let json = figures(&["a.bursar", "b.bursar"], &records);
    let notes = json["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    let missing: Vec<&str> = notes.filter(|note| note.contains("is missing from")).collect();
    let [note] = missing[..] else { panic!("{json:#}") };
    assert!(note.starts_with("Memory is missing from figures of b.bursar: at least 20.0 MiB in files"), "{note}");
}

#[test]
fn records_without_a_complete_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    record("a.bursar", "1", "20M", folder.path());
    fs::write(folder.path().join("text.bursar"), "text").unwrap();
    let output = diff(&["a.bursar", "text.bursar"], folder.path());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{error}");
    assert!(error.contains("text.bursar") && error.lines().count() == 1, "{error}");
}
