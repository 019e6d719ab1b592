//! `bursar budget` on a reader that reads one file in a loop: it needs its file and almost no other memory. With less memory, each read
//! waits for storage, which costs more than any noise of a shared machine.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use support::{Programs, bursar, can_limit, json_of};

const MIB: u64 = 1 << 20;
const FILE: u64 = 32 * MIB;

/// A file, and the command that reads it repeatedly.
struct Reader {
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// Tests that compare run times hold this lock, so that only one measures at a time.
static ALONE: Mutex<()> = Mutex::new(());

impl Reader {
    fn make() -> Reader {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Not in /tmp: it is a tmpfs on many machines.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::write(folder.path().join("input"), vec![7; FILE as usize]).unwrap();
        Reader { folder, _alone: alone }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, passes: u32) -> [String; 3] {
        [Programs::build().revisit().into(), text_of(&self.path("input")), passes.to_string()]
    }

    fn budget(&self) -> Command {
        let mut command = bursar();
        command.arg("budget").arg("--quiet").args(["--slowdown", "50%"]);
        command
    }
}

fn mib(json: &Value) -> u64 {
    json.as_u64().unwrap_or_else(|| panic!("{json} is not a number")) / MIB
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn keeps_output_elsewhere_if_tmpdir_is_not_writable() {
    if !can_limit() {
        return;
    }
    let output = bursar().args(["budget", "--", "true"]).env("TMPDIR", "/proc").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_answer_fits_the_file_and_each_method_has_a_row() {
    if !can_limit() {
        return;
    }
    let reader = Reader::make();
    let (html, record) = (reader.path("report.html"), reader.path("budget.bursar"));
    let mut command = reader.budget();
    command.args(["--json", "-", "--html", &text_of(&html), "--record", &text_of(&record), "--"]);
    let (status, json) = json_of(command.args(reader.command(200)));
    assert_eq!(status, 0);
    assert!((32..=38).contains(&mib(&json["budget_bytes"])), "{json:#}");
    let names: Vec<_> = json["methods"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["app-maxrss", "app-maxrss-largest", "sys-maxrss", "unlimited", "bursar"]);
    let largest = &json["methods"][1];
    assert!(mib(&largest["memory_bytes"]) < 20, "almost no memory is in use: {largest}");
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
        let status = bursar().arg("report").arg(&record).args(["--format", format, "-o"]).arg(&out).status().unwrap();
        assert!(status.success() && std::fs::metadata(&out).unwrap().len() > 100, "{format}");
    }
}

#[test]
fn a_failure_without_a_limit_ends_budget_with_its_status_and_error() {
    if !can_limit() {
        return;
    }
    let output = bursar().args(["budget", "--", "sh", "-c", "echo no such input >&2; exit 3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such input"));
}

/// A job that holds a lock while it runs, removes it at its end and on SIGTERM, and fails where it finds one.
const HOLDS_A_LOCK: &str = r#"
mkdir "$1/lock" 2>/dev/null || { echo "locked: an earlier run did not clean up" >&2; exit 3; }
trap 'rmdir "$1/lock"' EXIT
trap 'exit 143' TERM
"$2" "$3" "$4" & wait $!"#;

#[test]
fn a_job_that_is_stopped_early_can_clean_up() {
    if !can_limit() {
        return;
    }
    let reader = Reader::make();
    let mut command = reader.budget();
    command.args(["--no-compare", "--json", "-", "--", "sh", "-c", HOLDS_A_LOCK, "sh"]);
    let (status, json) = json_of(command.arg(reader.folder.path()).args(reader.command(200)));
    assert_eq!(status, 0);
    let trials = json["trials"].as_array().unwrap();
    assert!(trials.iter().any(|trial| trial["lower_bound"] == true), "nothing was stopped: {json:#}");
    assert!(trials.iter().all(|trial| trial["outcome"] != "failed"), "one found the lock of another: {json:#}");
    // bursar lifts the limit before it stops the run; the peak without a limit is not reported as a peak within it.
    let is_within = |trial: &Value| {
        let (peak, limit) = (trial["peak_charge_bytes"].as_u64(), trial["limit_bytes"].as_u64());
        limit.is_none_or(|limit| peak <= Some(limit))
    };
    assert!(trials.iter().all(is_within), "{json:#}");
    assert!(!reader.path("lock").exists());
}

#[test]
fn the_default_answer_of_a_budget_is_short_and_verbose_prints_all() {
    if !can_limit() {
        return;
    }
    let printed = |options: &[&str]| {
        let mut command = bursar();
        command.args(["budget", "--slowdown", "1000%", "--max-trials", "3"]).args(options).args(["--", "true"]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let short = printed(&[]);
    assert!(short.lines().count() <= 25 && short.contains(" MiB keeps it within 1000 % of its unlimited "), "{short}");
    assert!(short.contains("#SBATCH --mem=") && short.lines().last().unwrap().contains("bursar report "), "{short}");
    let full = printed(&["-v"]);
    assert!(full.contains("what to think of each") && full.contains("trials, in their order"), "{full}");
}

/// Creates a folder, as a build or a database import does, and fails if it exists already.
const ONLY_ONCE: &str = r#"mkdir "$1/out""#;

#[test]
fn a_command_that_cannot_run_twice_names_prepare() {
    if !can_limit() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let command = ["--runs", "2", "--", "sh", "-c", ONLY_ONCE, "sh", &text_of(folder.path())];
    let output = bursar().args(["budget", "--quiet"]).args(command).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("File exists"), "its own error is shown: {errors}");
    assert!(errors.contains("run 1 succeeded and run 2 failed (status 1)"), "{errors}");
    assert!(errors.contains("--prepare"), "{errors}");

    let prepare = format!("rm -rf '{}/out'", folder.path().display());
    let output = bursar().args(["budget", "--quiet", "--prepare", &prepare]).args(command).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Succeeds twice, then fails under any limit.
const TWICE: &str = r#"echo >>"$1/runs"; "$2" "$3" "$4"; test "$(wc -l <"$1/runs")" -le 2 || { echo "no room for run 3" >&2; exit 4; }"#;

#[test]
fn a_failure_that_memory_did_not_cause_ends_the_search() {
    if !can_limit() {
        return;
    }
    let reader = Reader::make();
    let mut command = reader.budget();
    // The case as it was found: the two reference runs are the first ones.
    command.args(["--as-found", "--runs", "2", "--no-compare", "--", "sh", "-c", TWICE, "sh"]);
    command.arg(reader.folder.path());
    let output = command.args(reader.command(20)).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(errors.contains("no room for run 3"), "{errors}");
    assert!(errors.contains("its limit was not the reason"), "{errors}");
}

#[test]
fn a_command_that_does_not_exist_gives_127() {
    let output = bursar().args(["budget", "--", "no-such-command-anywhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
}

#[test]
fn prepare_runs_before_each_run_and_its_failure_is_reported() {
    if !can_limit() {
        return;
    }
    let output = bursar().args(["budget", "--prepare", "exit 9", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("exit 9"));
}

#[test]
fn an_interrupted_budget_resumes_from_its_record() {
    if !can_limit() {
        return;
    }
    let reader = Reader::make();
    let record = reader.path("budget.bursar");
    let mut command = reader.budget();
    command.args(["--record", &text_of(&record), "--no-compare", "--json"]).arg(reader.path("json")).arg("--");
    let mut running = command.args(reader.command(500)).stderr(Stdio::null()).spawn().unwrap();
    // The interrupt hits at an arbitrary run; the finished runs must be kept.
    std::thread::sleep(std::time::Duration::from_secs(4));
    if running.try_wait().unwrap().is_none() {
        let pid = rustix::process::Pid::from_child(&running);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
    running.wait().unwrap();
    let kept: Value = serde_json::from_slice(&std::fs::read(reader.path("json")).unwrap()).unwrap();
    let finished = kept["trials"].as_array().unwrap().len();

    let (status, json) = json_of(bursar().args(["budget", "--quiet", "--json", "-", "--resume", &text_of(&record)]));
    assert_eq!(status, 0);
    assert!(json["trials"].as_array().unwrap().len() >= finished);
    assert!((32..=38).contains(&mib(&json["budget_bytes"])), "{json:#}");
}

fn doubts(json: &Value) -> Vec<&str> {
    json["doubts"].as_array().unwrap().iter().map(|doubt| doubt["kind"].as_str().unwrap()).collect()
}

/// A command that appends the number of bytes it read to a file, once per run.
struct Counts {
    folder: tempfile::TempDir,
}

impl Counts {
    fn make() -> Counts {
        Counts { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    fn path(&self, name: &str) -> String {
        text_of(&self.folder.path().join(name))
    }

    fn command(&self) -> [String; 3] {
        ["sh".into(), "-c".into(), format!("wc -c >>{}", self.path("counts"))]
    }

    fn budget(&self) -> Command {
        let mut command = bursar();
        command.args(["budget", "--quiet", "--no-compare", "--max-trials", "2"]);
        command
    }

    fn all_are(&self, bytes: usize) {
        let text = std::fs::read_to_string(self.path("counts")).unwrap();
        let counts: Vec<usize> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
        assert!(counts.len() > 1 && counts.iter().all(|count| *count == bytes), "{bytes}: {counts:?}");
        std::fs::remove_file(self.path("counts")).unwrap();
    }
}

#[test]
fn each_run_reads_the_same_standard_input() {
    if !can_limit() {
        return;
    }
    let counts = Counts::make();
    let text = "a line of text\n".repeat(200_000);
    std::fs::write(counts.path("input"), &text).unwrap();
    let open = || std::fs::File::open(counts.path("input")).unwrap();

    let status = counts.budget().arg("--").args(counts.command()).stdin(open()).status().unwrap();
    assert!(status.success());
    counts.all_are(text.len());

    let mut named = counts.budget();
    named.args(["--input", &counts.path("input"), "--"]).args(counts.command());
    assert!(named.stdin(Stdio::null()).status().unwrap().success());
    counts.all_are(text.len());

    // A shell has read a part of the input before: that part is not read again.
    let mut offset = open();
    std::io::Seek::seek(&mut offset, std::io::SeekFrom::Start(1000)).unwrap();
    assert!(counts.budget().arg("--").args(counts.command()).stdin(offset).status().unwrap().success());
    counts.all_are(text.len() - 1000);

    let mut piped = counts.budget().arg("--").args(counts.command()).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut piped.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert!(piped.wait().unwrap().success());
    counts.all_are(text.len());

    assert!(counts.budget().arg("--").args(counts.command()).stdin(Stdio::null()).status().unwrap().success());
    counts.all_are(0);
}

#[test]
fn a_terminal_is_not_used_as_input_and_that_is_reported() {
    let has_script = Command::new("script").arg("--version").output().is_ok();
    if !can_limit() || !support::need("script, which opens a terminal", has_script) {
        return;
    }
    let program = bursar();
    let budget = |options: &str| {
        let command = format!("{} budget {options} -- sh -c 'cat; exit 3'", program.get_program().display());
        let mut terminal = Command::new("script");
        terminal.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = terminal.args(["-qec", &command, "/dev/null"]).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let notice = "standard input is a terminal, so the runs get no input";
    assert!(budget("").contains(notice), "{}", budget(""));
    assert!(!budget("--quiet").contains(notice));
    assert!(!budget("--input /etc/passwd").contains(notice));
}

#[test]
fn an_input_without_an_end_is_refused() {
    if !can_limit() {
        return;
    }
    let endless = std::fs::File::open("/dev/zero").unwrap();
    let output = bursar().args(["budget", "--", "true"]).stdin(endless).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("--input FILE"), "{stderr}");
}

#[test]
fn a_search_resumes_only_with_the_same_input() {
    if !can_limit() {
        return;
    }
    let counts = Counts::make();
    std::fs::write(counts.path("input"), "one\n").unwrap();
    let record = counts.path("budget.bursar");
    let mut command = counts.budget();
    command.args(["--record", &record, "--input", &counts.path("input"), "--"]).args(counts.command());
    assert!(command.status().unwrap().success());
    let resume = || {
        // With a state folder of its own, so that bursar does not report repairs after other tests.
        let mut command = bursar();
        command.args(["budget", "-q", "--resume", &record]).env("XDG_STATE_HOME", counts.path("state"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(resume(), (Some(0), String::new()));
    std::fs::write(counts.path("input"), "another\n").unwrap();
    let (status, stderr) = resume();
    assert_eq!(status, Some(125));
    assert!(stderr.contains("is not the one that this budget was begun with"), "{stderr}");
}

#[test]
fn a_command_that_leaves_its_cgroup_gets_no_limit() {
    if !can_limit() || !support::is_root() {
        return;
    }
    let programs = Programs::build();
    let elsewhere = support::OtherCgroup::make();
    let script = format!("{}; exec {} private 64M --hold 300", elsewhere.enter(), programs.footprint());
    let mut command = bursar();
    let (status, json) = json_of(command.args(["budget", "-q", "--json", "-", "--", "sh", "-c", &script]));
    assert_eq!(status, 0);
    assert!(json["budget_bytes"].is_null() && json["confident"] == false, "{json:#}");
    assert_eq!(doubts(&json), ["left-cgroup"]);
}

#[test]
fn shared_memory_of_an_earlier_run_makes_the_answer_unsure() {
    if !can_limit() {
        return;
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = text_of(&folder.path().join("file"));
    let script = format!("test -f {file} || head -c 32M /dev/zero >{file}; cat {file} | wc -c; sleep 0.2");
    let mut command = bursar();
    command.args(["budget", "-q", "--no-compare", "--json", "-", "--", "sh", "-c", &script]);
    let (status, json) = json_of(&mut command);
    assert_eq!(status, 0);
    assert_eq!(json["confident"], false, "{json:#}");
    assert!(doubts(&json).contains(&"shared-before"), "{json:#}");
    let is_enough = json["budget_bytes"].as_u64().is_some_and(|bytes| bytes >= 32 * MIB);
    assert!(is_enough || doubts(&json).contains(&"work-differs"), "{json:#}");
}

#[test]
fn a_run_that_finds_its_output_is_reported_as_different_work() {
    if !can_limit() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = text_of(&folder.path().join("output"));
    let script = format!("test -f {file} || head -c 32M /dev/zero >{file}; sleep 0.3");
    let mut command = bursar();
    command.args(["budget", "-q", "--no-compare", "--json", "-", "--", "sh", "-c", &script]);
    let (_, json) = json_of(&mut command);
    assert_eq!(json["confident"], false, "{json:#}");
    assert!(doubts(&json).contains(&"work-differs"), "{json:#}");
}

/// Capabilities as in a user namespace or in a systemd user scope: limits can be set, and no BPF program loads.
const WITHOUT_BPF: [&str; 4] = ["--bounding-set", "-sys_admin,-bpf,-perfmon", "--inh-caps", "-all"];

#[test]
fn cached_mapped_files_are_evicted_where_no_reference_is_seen() {
    if !can_limit() || !support::is_root() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = text_of(&folder.path().join("file"));
    std::fs::write(&file, vec![7; 64 << 20]).unwrap();
    let programs = Programs::build();
    // A page takes a microsecond. `sh -c` hides the file from bursar: no word of the command is its name alone.
    let script = format!("exec {} {file} 60", programs.mapped());
    let mut command = Command::new("setpriv");
    command.args(WITHOUT_BPF).arg(env!("CARGO_BIN_EXE_bursar"));
    command.args(["budget", "-q", "--no-compare", "--json", "-", "--", "sh", "-c", &script]);
    let (status, json) = json_of(&mut command);
    assert_eq!(status, 0, "{json:#}");
    let limit = json["budget_bytes"].as_u64().unwrap();
    assert!((60 * MIB..90 * MIB).contains(&limit) || json["confident"] == false, "{json:#}");
    assert!(limit > 60 * MIB, "{json:#}");
}

#[test]
fn memory_in_small_files_of_other_processes_makes_the_answer_unsure() {
    if !can_limit() || !support::is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    for number in 0..64 {
        std::fs::write(folder.path().join(number.to_string()), vec![1; 512 << 10]).unwrap();
    }
    let script = format!("cat {}/* | wc -c; sleep 0.2", folder.path().display());
    let results = tempfile::tempdir().unwrap();
    let record = results.path().join("r.bursar").display().to_string();
    let mut command = bursar();
    command.args(["budget", "-q", "--no-compare", "--json", "-", "--record", &record, "--", "sh", "-c", &script]);
    let (status, json) = json_of(&mut command);
    assert_eq!((status, &json["confident"]), (0, &Value::Bool(false)), "{json:#}");
    assert!(doubts(&json).contains(&"shared-before"), "{json:#}");
    let stderr = String::from_utf8(bursar().args(["report", &record]).output().unwrap().stdout).unwrap();
    assert!(stderr.contains("no lines to paste") && !stderr.contains("--mem="), "{stderr}");
}

/// Allocates half of its cgroup's limit, 256 MiB at most.
const HALF_OF_ITS_LIMIT: &str = r#"
    group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
    if [ "$group" ]; then
        limit=$(cat "/sys/fs/cgroup/memory$group/memory.limit_in_bytes")
    else
        limit=$(cat "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.max")
    fi
    case $limit in max | ?????????*) [ "$limit" -le 268435456 ] 2>/dev/null || limit=268435456 ;; esac
    exec "$0" private $((limit / 2)) --hold 300
"#;

#[test]
fn a_program_that_sizes_itself_by_its_limit_gets_no_sure_answer() {
    if !can_limit() {
        return;
    }
    let programs = Programs::build();
    let mut command = bursar();
    command.args(["budget", "-q", "--no-compare", "--json", "-", "--", "sh", "-c", HALF_OF_ITS_LIMIT]);
    let (status, json) = json_of(command.arg(programs.footprint()));
    assert_eq!((status, &json["confident"]), (0, &Value::Bool(false)), "{json:#}");
    assert!(json["reason"].as_str().unwrap().contains("sizes itself by its limit"), "{json:#}");
}

#[test]
fn a_time_out_without_a_limit_is_not_reported_as_a_failure() {
    if !can_limit() {
        return;
    }
    let output = bursar().args(["budget", "--timeout", "300ms", "--", "sleep", "10"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{errors}");
    assert!(errors.contains("was ended after 300 ms, as --timeout says") && !errors.contains("fail"), "{errors}");
}

#[test]
fn an_interrupt_before_the_first_limit_is_reported_once() {
    if !can_limit() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let script = format!("echo > {}; exec sleep 60", text_of(&begun));
    let mut command = bursar();
    command.args(["budget", "--", "sh", "-c", &script]).stdin(Stdio::null()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    while !begun.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let errors = String::from_utf8(running.wait_with_output().unwrap().stderr).unwrap();
    assert!(errors.starts_with("interrupted before any limit was tried"), "{errors}");
    assert_eq!(errors.matches("nterrupted").count(), 1, "{errors}");
    assert!(errors.contains("go on with: bursar budget --resume"), "{errors}");
}
