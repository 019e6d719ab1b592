//! `bursar budget` on a looping reader, whose need we know: its file and next to nothing else. Below, every read waits for
//! storage; the cliff is so high that no noise of a shared machine hides it.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use support::{Programs, bursar, can_limit, json_of};

const MIB: u64 = 1 << 20;
const FILE: u64 = 32 * MIB;

/// A file to read again and again, and the command that does.
struct Reader {
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// Run times are compared: one test measures at a time.
static ALONE: Mutex<()> = Mutex::new(());

impl Reader {
    fn make() -> Reader {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Not in /tmp, which is a tmpfs on many machines.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::write(folder.path().join("input"), vec![7; FILE as usize]).unwrap();
        Reader { folder, _alone: alone }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, passes: u32) -> [String; 3] {
        [Programs::build().revisit().into(), run_at(&self.path("input")), passes.to_string()]
    }

    fn budget(&self) -> Command {
        let mut command = bursar();
        command.arg("budget").arg("--quiet").args(["--slowdown", "50%"]);
        command
    }
}

fn mib(json: &Value) -> u64 {
    json.as_u64().unwrap_or_else(|| panic!("{json} is no number")) / MIB
}

fn run_at(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn a_machine_without_a_folder_for_temporary_files_is_told_what_lacks() {
    if !can_limit() {
        return;
    }
    let output = bursar().args(["budget", "--", "true"]).env("TMPDIR", "/proc").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{told}");
    assert!(told.contains("in /proc; set TMPDIR to a folder that can be written"), "{told}");
}

#[test]
fn the_answer_is_where_the_file_fits_and_every_method_has_its_row() {
    if !can_limit() {
        return;
    }
    let reader = Reader::make();
    let (html, record) = (reader.path("report.html"), reader.path("budget.bursar"));
    let mut command = reader.budget();
    command.args(["--json", "-", "--html", &run_at(&html), "--record", &run_at(&record), "--"]);
    let (status, json) = json_of(command.args(reader.command(200)));
    assert_eq!(status, 0);
    assert!((32..=38).contains(&mib(&json["budget_bytes"])), "{json:#}");
    let names: Vec<_> = json["methods"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["app-maxrss", "app-maxrss-largest", "sys-maxrss", "unlimited", "bursar"]);
    let largest = &json["methods"][1];
    assert!(mib(&largest["memory_bytes"]) < 20, "it holds next to nothing: {largest}");
    assert!(largest["outcome"] != "ok" || largest["runtime_ratio"].as_f64().unwrap() > 1.5, "{largest}");
    let searched = json["trials"].as_array().unwrap().iter().filter(|trial| trial["method"].is_null()).count();
    assert!(searched <= 8, "{json:#}");
    assert!(json["run_times_used"].as_f64().is_some());
    assert_eq!(json["slowdown_target"], 0.5);
    for name in ["confident", "reason", "reference_seconds", "compare_run_times", "trials"] {
        assert!(!json[name].is_null(), "{name} is missing");
    }

    // The report and every export are made from the record alone.
    assert!(std::fs::read_to_string(&html).unwrap().contains("<html"));
    let again = bursar().arg("report").arg(&record).output().unwrap();
    let text = String::from_utf8_lossy(&again.stdout);
    for line in ["#SBATCH --mem=", "MemoryMax=", "MemorySwapMax=0", "docker run --memory", "memory: "] {
        assert!(text.contains(line), "{line} is missing from\n{text}");
    }
    for format in ["json", "csv", "parquet", "perfetto", "vpa"] {
        let out = reader.path(format);
        let status = bursar().arg("export").arg(&record).args(["--format", format, "-o"]).arg(&out).status().unwrap();
        assert!(status.success() && std::fs::metadata(&out).unwrap().len() > 100, "{format}");
    }
}

#[test]
fn a_command_that_fails_without_a_limit_stops_everything_with_its_own_status_and_words() {
    if !can_limit() {
        return;
    }
    let output = bursar().args(["budget", "--", "sh", "-c", "echo no such input >&2; exit 3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such input"));
}

#[test]
fn a_command_that_does_not_exist_gives_127() {
    let output = bursar().args(["budget", "--", "no-such-command-anywhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
}

#[test]
fn preparing_is_done_before_each_run_and_its_failure_is_told() {
    if !can_limit() {
        return;
    }
    let output = bursar().args(["budget", "--prepare", "exit 9", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("exit 9"));
}

#[test]
fn an_interrupted_budget_keeps_its_trials_and_goes_on_from_its_record() {
    if !can_limit() {
        return;
    }
    let reader = Reader::make();
    let record = reader.path("budget.bursar");
    let mut command = reader.budget();
    command.args(["--record", &run_at(&record), "--no-compare", "--json"]).arg(reader.path("json")).arg("--");
    let mut running = command.args(reader.command(500)).stderr(Stdio::null()).spawn().unwrap();
    // Some way into the runs; wherever it hits, what is finished must be kept.
    std::thread::sleep(std::time::Duration::from_secs(4));
    if running.try_wait().unwrap().is_none() {
        let pid = rustix::process::Pid::from_child(&running);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
    running.wait().unwrap();
    let kept: Value = serde_json::from_slice(&std::fs::read(reader.path("json")).unwrap()).unwrap();
    let finished = kept["trials"].as_array().unwrap().len();

    let (status, json) = json_of(bursar().args(["budget", "--quiet", "--json", "-", "--resume", &run_at(&record)]));
    assert_eq!(status, 0);
    assert!(json["trials"].as_array().unwrap().len() >= finished);
    assert!((32..=38).contains(&mib(&json["budget_bytes"])), "{json:#}");
}
