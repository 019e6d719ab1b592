//! The CI jobs in `packaging/ci`: each is valid YAML, and each bursar command in it is valid.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{bursar, need};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/ci")
}

fn files() -> [PathBuf; 3] {
    ["github/action.yml", "github/memory.yml", "gitlab/memory.yml"].map(|name| folder().join(name))
}

/// Prints all strings of a YAML file, which are one script each, with a NUL byte after each.
const STRINGS: &str = "import sys, yaml
def strings(value):
    if isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value
print('\\0'.join(strings(yaml.safe_load(open(sys.argv[1])))))";

fn strings(file: &Path) -> Option<Vec<String>> {
    let has_parser = Command::new("python3").args(["-c", "import yaml"]).output();
    if !need("PyYAML", has_parser.is_ok_and(|output| output.status.success())) {
        return None;
    }
    let output = Command::new("python3").args(["-c", STRINGS]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", file.display());
    Some(String::from_utf8(output.stdout).unwrap().split('\0').map(str::to_string).collect())
}

/// Lines of scripts that call bursar.
fn calls(file: &Path) -> Option<Vec<String>> {
    let strings = strings(file)?;
    let lines = strings.iter().flat_map(|text| text.lines()).map(str::trim);
    Some(lines.filter(|line| line.starts_with("bursar ")).map(str::to_string).collect())
}

#[test]
fn every_script_is_valid_for_its_shell() {
    for file in files() {
        let Some(strings) = strings(&file) else { return };
        for script in strings.iter().filter(|text| text.contains("bursar ") && !text.starts_with("Fails")) {
            let checked = Command::new("bash").args(["-n", "-c", script]).output().unwrap();
            assert!(checked.status.success(), "{}: {checked:?}", file.display());
        }
    }
}

#[test]
fn every_option_of_a_call_exists() {
    for file in files() {
        let Some(calls) = calls(&file) else { return };
        assert!(!calls.is_empty() || file.ends_with("github/action.yml"), "{}", file.display());
        for call in calls {
            let own = call.split(" -- ").next().unwrap();
            let command = own.split(' ').nth(1).unwrap();
            let help = bursar().args([command, "--help"]).output().unwrap();
            assert!(help.status.success(), "{call}");
            let help = String::from_utf8(help.stdout).unwrap();
            let known: BTreeSet<&str> = help
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .filter(|word| word.starts_with("--"))
                .collect();
            for option in own.split(' ').filter(|word| word.starts_with("--")) {
                assert!(known.contains(option), "bursar {command} has no {option}: {call}");
            }
        }
    }
}

#[test]
fn the_action_script_fails_if_memory_grew() {
    let folder = tempfile::tempdir().unwrap();
    let Some(strings) = strings(&files()[0]) else { return };
    let script = strings.iter().find(|text| text.contains("bursar check")).unwrap();
    let program = assert_cmd::cargo::cargo_bin("bursar");
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let run = |command: &str, max: &str, baseline: &str| {
        Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", script])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("XDG_STATE_HOME", folder.path())
            .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"))
            .envs([("COMMAND", command), ("MAX", max), ("BASELINE", baseline), ("TOLERANCE", "5%"), ("RUNS", "5")])
            .output()
            .unwrap()
    };
    let passed = run("exec sleep 0.2", "1G", "");
    assert_eq!(passed.status.code(), Some(0), "{passed:?}");
    let failed = run("exec sleep 0.2", "4K", "");
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let refused = run("exec sleep 0.2", "", "missing.bursar");
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
    let summary = std::fs::read_to_string(folder.path().join("summary.md")).unwrap();
    assert!(summary.contains("**failed**"), "{summary}");
}
