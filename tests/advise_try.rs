//! `bursar advise try`: which ways are run with which settings, and that changed settings are restored. No test asserts times.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{bursar, copy_program, json_of, need};

const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SIZED: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
const NOBODY: u32 = 65534;

/// Held by the one test that may change the machine's setting.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn compared(options: &[&str], command: &[&str]) -> Command {
    let mut all = bursar();
    all.args(["advise", "try", "-q"]).args(options).arg("--").args(command).stdin(Stdio::null());
    all
}

fn setting(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

fn names(array: &Value) -> Vec<&str> {
    array.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

fn why<'a>(json: &'a Value, name: &str) -> &'a str {
    let left_out = json["left_out"].as_array().unwrap();
    left_out.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} was not left out: {json:#}"))["why"]
        .as_str()
        .unwrap()
}

/// Whether the machine's setting is `madvise` and can be changed.
fn may_set() -> bool {
    let may = rustix::fs::access(SETTING, rustix::fs::Access::WRITE_OK).is_ok();
    need("to set huge pages, at madvise", may && setting(SETTING).contains("[madvise]"))
}

/// A program that reads random addresses of memory from malloc.
fn gains(folder: &Path) -> String {
    let (source, program) = (folder.join("gains.c"), folder.join("gains"));
    let text = "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) {\n size_t n = 96 << 20;\n \
                unsigned char *at = malloc(n);\n memset(at, 1, n);\n uint64_t x = 88172645463325252, sum = 0;\n \
                for (int i = 0; i < 3000000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; sum += at[(x + sum) % n]; }\n \
                return sum == 0; }\n";
    fs::write(&source, text).unwrap();
    assert!(Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(&source).status().unwrap().success());
    program.display().to_string()
}

#[test]
fn every_way_is_run_or_left_out_with_a_reason() {
    let _alone = alone();
    let before = (setting(SETTING), setting(SIZED));
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let options = ["--rounds", "2", "--json", "-", "--html", page.to_str().unwrap()];
    let (status, json) = json_of(&mut compared(&options, &[&gains(folder.path())]));
    assert_eq!(status, 0, "{json:#}");
    assert_eq!(names(&json["arms"])[0], "plain");
    let mut all = [names(&json["arms"]), names(&json["left_out"])].concat();
    all.sort_unstable();
    let ways = [
        "advise",
        "advise-profile",
        "always",
        "glibc-hugetlb",
        "mthp-1m",
        "mthp-64k",
        "plain",
        "provision",
        "provision-pool",
    ];
    all.retain(|name| *name != "never");
    assert_eq!(all, ways, "{json:#}");
    for arm in json["arms"].as_array().unwrap() {
        assert_eq!(arm["rounds"].as_u64(), Some(2), "{arm:#}");
        for name in ["wall_seconds", "cpu_seconds"] {
            assert!(arm[name].as_f64().unwrap() > 0.0, "{name}: {arm:#}");
        }
        assert!(arm["peak_bytes"].as_u64().unwrap() > 90 << 20, "{arm:#}");
        assert!(arm["faults"]["minor"].is_u64() && arm["faults"]["major"].is_u64(), "{arm:#}");
        assert_eq!(arm["gain"].is_null(), arm["name"] == "plain", "{arm:#}");
        assert!(arm["interval"].as_array().is_none_or(|ends| ends.len() == 2), "{arm:#}");
    }
    assert!(json["best"].is_null() == json["settings"].as_array().unwrap().is_empty(), "{json:#}");
    assert_eq!((json["ended"].as_str(), json["rounds"].as_u64()), (Some("rounds"), Some(2)));
    assert!(fs::read_to_string(page).unwrap().contains("glibc-hugetlb"));
    assert_eq!((setting(SETTING), setting(SIZED)), before);
}

#[test]
fn machine_settings_apply_only_to_their_own_runs() {
    let _alone = alone();
    if !may_set() {
        return;
    }
    let before = (setting(SETTING), setting(SIZED));
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = format!("cat {SETTING} {SIZED} | tr '\\n' ';' >> {0}; echo >> {0}", log.display());
    let options = ["--arms", "always,mthp-64k", "--rounds", "2", "--json", "-"];
    let (status, json) = json_of(&mut compared(&options, &["sh", "-c", &script]));
    assert_eq!(status, 0, "{json:#}");
    let log = fs::read_to_string(log).unwrap();
    let count = |is: fn(&str) -> bool| log.lines().filter(|line| is(line)).count();
    assert_eq!(log.lines().count(), 1 + 3 * 2, "a warm-up, and two rounds of three: {log}");
    assert_eq!(count(|line| line.starts_with("[always] madvise never;always ")), 2, "{log}");
    assert_eq!(count(|line| line.starts_with("always [madvise] never;[always] ")), 2, "{log}");
    assert_eq!(count(|line| line == format!("{};{};", setting(SETTING).trim(), setting(SIZED).trim())), 3, "{log}");
    assert_eq!((setting(SETTING), setting(SIZED)), before);
}

#[test]
fn the_users_glibc_tunables_are_kept() {
    if !need("huge pages at madvise", setting(SETTING).contains("[madvise]")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = format!("echo \"$GLIBC_TUNABLES\" >> {}", log.display());
    let mut command = compared(&["--arms", "glibc-hugetlb", "--rounds", "1"], &["sh", "-c", &script]);
    assert!(command.env("GLIBC_TUNABLES", "glibc.malloc.check=0").status().unwrap().success());
    let mut log: Vec<String> = fs::read_to_string(log).unwrap().lines().map(String::from).collect();
    log.sort();
    let own = "glibc.malloc.check=0";
    assert_eq!(log, [own.to_string(), own.into(), format!("{own}:glibc.malloc.hugetlb=1")]);
}

#[test]
fn each_run_reads_the_same_input() {
    let folder = tempfile::tempdir().unwrap();
    let (input, log) = (folder.path().join("input"), folder.path().join("log"));
    fs::write(&input, "a line\n").unwrap();
    let script = format!("cat >> {}", log.display());
    let options = ["--arms", "never", "--rounds", "2", "--input", input.to_str().unwrap()];
    assert!(compared(&options, &["sh", "-c", &script]).status().unwrap().success());
    assert_eq!(fs::read_to_string(log).unwrap(), "a line\n".repeat(5));
}

#[test]
fn a_command_that_fails_is_not_compared() {
    let output = compared(&["--arms", "never"], &["sh", "-c", "echo wrong >&2; exit 3"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr.contains("wrong\n") && stderr.contains("the command fails (status 3)"), "{stderr}");
    let none = compared(&["--arms", "never"], &["/nowhere/nothing"]).output().unwrap();
    assert_eq!(none.status.code(), Some(127));
}

#[test]
fn a_way_in_which_the_command_fails_is_left_out() {
    if !need("huge pages at madvise", setting(SETTING).contains("[madvise]")) {
        return;
    }
    let script = "[ -z \"$GLIBC_TUNABLES\" ] || { echo no tunables >&2; exit 4; }";
    let options = ["--arms", "glibc-hugetlb,never", "--rounds", "2", "--json", "-"];
    let (status, json) = json_of(compared(&options, &["sh", "-c", script]).env_remove("GLIBC_TUNABLES"));
    assert_eq!(status, 0);
    assert_eq!(names(&json["arms"]), ["plain", "never"], "{json:#}");
    assert_eq!(why(&json, "glibc-hugetlb"), "the command ended with status 4 (no tunables)");
}

#[test]
fn ways_that_need_the_library_are_left_out_for_static_programs() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("static.c"), folder.path().join("static"));
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    assert!(Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source).status().unwrap().success());
    let arms = ["--arms", "advise,provision,glibc-hugetlb,never", "--rounds", "1", "--json", "-"];
    let (status, json) = json_of(&mut compared(&arms, &[program.to_str().unwrap()]));
    assert_eq!((status, names(&json["arms"])), (0, vec!["plain", "never"]), "{json:#}");
    assert!(why(&json, "advise").contains("statically linked"));
    assert!(why(&json, "glibc-hugetlb").contains("glibc"));
    let nothing = compared(&["--arms", "advise"], &[program.to_str().unwrap()]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("there is nothing to compare"));
}

#[test]
fn an_unknown_way_is_refused_with_the_list_of_ways() {
    let output = compared(&["--arms", "hugest"], &["true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("glibc-hugetlb, advise, provision"));
}

/// Waits until the file's content meets the condition.
fn wait_for(file: &Path, is: impl Fn(&str) -> bool) -> String {
    for _ in 0..6000 {
        let stderr = fs::read_to_string(file).unwrap_or_default();
        if is(&stderr) {
            return stderr;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} never came to it", file.display());
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn an_interrupt_prints_the_results_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let (log, json) = (folder.path().join("log"), folder.path().join("json"));
    let script = format!("echo >> {}", log.display());
    let options = ["--arms", "never", "--rounds", "1000", "--json", json.to_str().unwrap()];
    let mut child = compared(&options, &["sh", "-c", &script]).spawn().unwrap();
    // A warm-up and at least two rounds of three; arms as alike as these are not decided before four rounds.
    wait_for(&log, |stderr| stderr.lines().count() >= 6);
    send(&child, Signal::INT);
    let status = child.wait().unwrap();
    let json: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert!(names(&json["arms"]).contains(&"plain"), "{json:#}");
    // On a quiet machine it may have finished before the interrupt.
    let is_decided = json["ended"] == "decided";
    assert!(is_decided || json["ended"] == "interrupted", "{json:#}");
    assert!(is_decided || status.signal() == Some(2), "{status}");
}

#[test]
fn the_next_bursar_restores_the_setting_of_a_killed_one() {
    let _alone = alone();
    if !may_set() {
        return;
    }
    let before = setting(SETTING);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = format!("if grep -qF '[always]' {SETTING}; then echo $$ > {}; exec sleep 60; fi", log.display());
    let mut child = compared(&["--arms", "always", "--rounds", "1"], &["sh", "-c", &script]).spawn().unwrap();
    let pid: i32 = wait_for(&log, |stderr| stderr.ends_with('\n')).trim().parse().unwrap();
    send(&child, Signal::KILL);
    child.wait().unwrap();
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    let left = setting(SETTING);
    let output = bursar().args(["run", "-q", "--", "true"]).output().unwrap();
    assert_eq!(setting(SETTING), before, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(left.contains("[always]"), "{left}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains(&format!("{SETTING} was put back to madvise")), "{stderr}");
}

#[test]
fn an_ordinary_user_compares_the_ways_that_need_no_rights() {
    if !need("root, to become another user", rustix::process::geteuid().is_root()) {
        return;
    }
    let folder = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let copy = folder.path().join("bursar");
    copy_program(&assert_cmd::cargo::cargo_bin("bursar"), &copy);
    let mut command = Command::new(&copy);
    command.uid(NOBODY).gid(NOBODY).env("HOME", folder.path()).current_dir(folder.path()).stdin(Stdio::null());
    for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR"] {
        command.env_remove(name);
    }
    command.args([
        "advise",
        "try",
        "-q",
        "--rounds",
        "2",
        "--json",
        "-",
        "--arms",
        "always,mthp-64k,never",
        "--",
        "true",
    ]);
    let (status, json) = json_of(&mut command);
    assert_eq!((status, names(&json["arms"])), (0, vec!["plain", "never"]), "{json:#}");
    assert!(why(&json, "always").contains("it needs root"), "{json:#}");
}
