//! `bursar advise run`: the launcher, with statistics that processes report and with programs that end badly.

mod support;

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::pool::Pool;
use support::{bursar, json_after};

fn advised(options: &[&str], command: &[&str]) -> Command {
    let mut all = bursar();
    all.args(["advise", "run"]).args(options).arg("--").args(command);
    all
}

fn run(options: &[&str], command: &[&str]) -> Output {
    advised(options, command).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A program without a build-id that maps 64 MiB and writes to every page.
fn fills(folder: &Path, options: &[&str]) -> String {
    let (source, program) = (folder.join("fills.c"), folder.join("fills"));
    let text = "#include <string.h>\n#include <sys/mman.h>\nint main(void) { char *at = mmap(0, 64 << 20, 3, MAP_PRIVATE | \
                MAP_ANONYMOUS, -1, 0); memset(at, 1, 64 << 20); return at[5] - 1; }\n";
    std::fs::write(&source, text).unwrap();
    let always = ["-O1", "-D_GNU_SOURCE", "-Wl,--build-id=none"];
    let built = Command::new("cc").args(always).args(options).arg("-o").arg(&program).arg(&source).status();
    assert!(built.unwrap().success());
    program.display().to_string()
}

fn profile(folder: &Path, lines: &str) -> String {
    let path: PathBuf = folder.join("profile");
    std::fs::write(&path, format!("bursar profile 1\n{lines}")).unwrap();
    path.display().to_string()
}

#[test]
fn output_and_exit_status_are_the_commands() {
    let output = run(&[], &["sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"out\n");
    assert!(stderr(&output).contains("nothing was advised"), "{}", stderr(&output));
    let quiet = run(&["-q"], &["sh", "-c", "echo err >&2"]);
    assert_eq!(stderr(&quiet), "err\n");
}

#[test]
fn a_signal_that_ends_the_command_ends_bursar() {
    let output = run(&["-q"], &["sh", "-c", "kill -TERM $$"]);
    assert_eq!(output.status.signal(), Some(15));
}

#[test]
fn a_missing_command_ends_with_127() {
    let output = run(&["-q"], &["/nowhere/nothing"]);
    assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
}

#[test]
fn memory_that_is_freed_before_the_end_is_in_the_peak() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("frees.c"), folder.path().join("frees"));
    // What the program holds in huge pages when all is filled, by the kernel's count.
    let text = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(int n, char **words) { \
                size_t bytes = 256 << 20; char *at = malloc(bytes), line[128]; for (size_t i = 0; i < bytes; i += 4096) { at[i] = \
                1; if (i % (1 << 20) == 0) usleep(500); } if (n > 1) sleep(1); FILE *now = fopen(\"/proc/self/smaps_rollup\", \
                \"r\"); while (fgets(line, sizeof line, now)) if (!strncmp(line, \"AnonHuge\", 8)) fputs(line, stdout); free(at); \
                usleep(300000); return 0; }\n";
    std::fs::write(&source, text).unwrap();
    assert!(Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(&source).status().unwrap().success());
    let program = program.display().to_string();
    for words in [vec![program.as_str()], vec![program.as_str(), "waits"]] {
        let (_, stats, printed) = json_after(&mut advised(&["-q", "--stats", "-"], &words));
        let kib: u64 = printed.split_whitespace().nth(1).unwrap().parse().unwrap();
        let process = &stats["processes"][0];
        let peak = |name: &str| process[name].as_u64().unwrap() as f64 / 1024.0;
        assert!(peak("huge_bytes_peak") >= 0.9 * kib as f64, "{kib} KiB huge: {stats:#}");
        assert!(peak("anonymous_bytes_peak") >= 0.9 * 262144.0, "{stats:#}");
    }
}

#[test]
fn statistics_have_the_documented_fields() {
    let folder = tempfile::tempdir().unwrap();
    let (status, stats, _) = json_after(&mut advised(&["-q", "--stats", "-"], &[&fills(folder.path(), &[])]));
    assert_eq!(status, 0);
    for name in ["promoted", "demoted", "populated_bytes", "decisions", "page_faults"] {
        assert!(stats[name].is_u64(), "{name}: {stats:#}");
    }
    for name in ["cpu_seconds", "wall_seconds", "before_exec_seconds"] {
        assert!(stats[name].as_f64().unwrap() >= 0.0, "{name}");
    }
    assert!(stats["explained"].is_array());
    // Of a filled mapping, some memory is anonymous; how much of it is huge depends on the machine.
    let share = stats["huge_share"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&share), "{share}");
    let process = &stats["processes"][0];
    assert!(process["executable"].as_str().unwrap().ends_with("/fills"));
    assert!(process["ranges"].as_u64() >= Some(1));
}

#[test]
fn a_range_of_the_profile_is_advised_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path(), &[]);
    let profile =
        profile(folder.path(), "program fills -\nmmap 26 0 0..end huge=0 touched=2%\nheap - - 1G..2G huge=1000\n");
    let mut command = advised(&["-q", "--stats", "-", "--profile", &profile], &[&program]);
    let (status, stats, _) = json_after(&mut command);
    assert_eq!(status, 0);
    let process = &stats["processes"][0];
    assert_eq!((process["rules_matched"].as_u64(), process["rules_unmatched"].as_u64()), (Some(1), Some(1)));
    let decision: &Value = &stats["explained"][0];
    assert_eq!((decision["kind"].as_str(), decision["which"].as_str()), (Some("mmap"), Some("26")));
    assert_eq!((decision["action"].as_str(), decision["why"].as_str()), (Some("base"), Some("by the profile")));
    assert_eq!((decision["from"].as_u64(), decision["bytes"].as_u64()), (Some(0), Some(64 << 20)));
    assert!(decision["cost_ns"].as_f64() > decision["benefit_ns"].as_f64());
}

/// The memory that `fills` fills comes from the pool or from the kernel, as its profile says.
#[test]
fn memory_comes_from_the_pool_except_where_not_worth_it() {
    let Some(pool) = Pool::create() else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path(), &[]);
    // MiB from the pool and from the kernel, the decisions with their MiB, and the share of huge pages.
    let given = |lines: &str| {
        let path = profile(folder.path(), &format!("program fills -\n{lines}"));
        let options = ["-q", "--stats", "-", "--pool", "default", "--profile", &path];
        let (status, stats, _) = json_after(pool.with(&mut advised(&options, &[&program])));
        let mib = |figure: &Value| figure.as_u64().unwrap() as f64 / f64::from(1 << 20);
        let decided = stats["explained"].as_array().unwrap().iter();
        let decided: Vec<String> =
            decided.map(|one| format!("{} {}", one["action"].as_str().unwrap(), mib(&one["bytes"]))).collect();
        assert_eq!((status, &stats["pool"]["name"]), (0, &Value::from("default")));
        let huge = (stats["huge_share"].as_f64().unwrap() * 10.0).round();
        let pooled = &stats["pool"];
        (mib(&pooled["served_bytes"]), mib(&pooled["passed_to_linux"]["advised"]["bytes"]), decided, huge)
    };
    assert_eq!(given(""), (64.0, 0.0, vec![], 10.0));
    assert_eq!(given("mmap 26 0 0..end touched=2%\n"), (0.0, 64.0, vec!["base 64".into()], 0.0));
    let (of_pool, of_kernel, decided, _) = given("mmap 26 0 0..end touched=100%\n");
    assert_eq!(decided, ["pool 64"]);
    // The ends of the mapping may be smaller than a huge page.
    assert!(of_pool >= 62.0 && of_pool + of_kernel == 64.0, "{of_pool} and {of_kernel} MiB");
    let (of_pool, of_kernel, decided, huge) = given("mmap 26 0 0..32M touched=100%\nmmap 26 0 32M..end touched=2%\n");
    assert_eq!((decided.len(), huge), (2, 5.0), "{decided:?}");
    assert!((30.0..=32.0).contains(&of_pool) && of_pool + of_kernel == 64.0, "{of_pool} and {of_kernel} MiB");
}

#[test]
fn the_rest_of_a_pool_that_is_too_small_is_advised() {
    let Some(pool) = Pool::create() else { return };
    let held = "import mmap, subprocess, sys; memory = mmap.mmap(-1, 100 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); \
                sys.exit(subprocess.run(sys.argv[1:]).returncode)";
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path(), &[]);
    let options = ["-q", "--stats", "-", "--pool", "default"];
    let (status, stats, _) = json_after(pool.with(&mut advised(&options, &["python3", "-c", held, &program])));
    assert_eq!(status, 0, "{stats:#}");
    let pooled = &stats["pool"];
    assert!(pooled["passed_to_linux"]["exhausted"]["bytes"].as_u64() >= Some(64 << 20), "{pooled:#}");
    let fills = stats["processes"].as_array().unwrap().iter().find(|process| process["executable"] == program.as_str());
    assert!(fills.is_some_and(|process| process["ranges"].as_u64() >= Some(1)), "its memory is advised: {stats:#}");
}

#[test]
fn a_missing_pool_is_reported_and_nothing_runs() {
    let pools = tempfile::tempdir().unwrap();
    let output = advised(&["--pool", "hpc"], &["echo", "ran"]).env("BURSAR_POOLS", pools.path()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), b"".as_slice()));
    assert!(stderr(&output).contains("there is no pool 'hpc'"), "{}", stderr(&output));
}

#[test]
fn huge_pages_are_limited_to_the_ranges_that_gain_most() {
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path(), &[]);
    let path =
        profile(folder.path(), "program fills -\nmmap 26 0 0..32M huge=100000000\nmmap 26 0 32M..end huge=900000000\n");
    // Which halves of its memory are huge: the first, the second, or both.
    let halves = |options: &[&str]| {
        let always = ["-q", "--stats", "-", "--profile", &path];
        let (status, stats, _) = json_after(&mut advised(&[&always, options].concat(), &[&program]));
        assert_eq!(status, 0);
        let decided = stats["explained"].as_array().unwrap().iter();
        let is_huge = |one: &&Value| ["huge", "eager"].contains(&one["action"].as_str().unwrap());
        decided.filter(is_huge).map(|one| one["from"].as_u64() > Some(16 << 20)).collect::<BTreeSet<bool>>()
    };
    assert_eq!(halves(&[]), BTreeSet::from([false, true]));
    assert_eq!(halves(&["--huge-pages", "32M"]), BTreeSet::from([true]));
    assert_eq!(halves(&["--huge-pages", "1M"]), BTreeSet::new());
    for (wrong, why) in
        [(vec!["--huge-pages", "32M"], "--profile"), (vec!["--huge-pages", "many", "--profile", &path], "not a size")]
    {
        let output = run(&wrong, &[&program]);
        assert_eq!(output.status.code(), Some(125));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn decisions_are_kept_in_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path(), &[]);
    let profile = profile(folder.path(), "program fills -\nmmap 26 0 0..end huge=0 touched=2%\n");
    let record = folder.path().join("kept.bursar");
    let record = record.to_str().unwrap();
    let output = run(&["-q", "--record", record, "--profile", &profile], &[&program]);
    assert!(output.status.success(), "{}", stderr(&output));
    let say = |words: &[&str]| {
        let output = bursar().args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let explained = say(&["report", record]);
    let line = explained.lines().nth(1).unwrap();
    assert!(line.contains("mmap 26 0 0 B+") && line.ends_with("by the profile"), "{explained}");
    let figures: Value = serde_json::from_str(&say(&["report", "--json", "-", record])).unwrap();
    assert_eq!(figures["explained"][0]["action"], "base");
    let exported: Value = serde_json::from_str(&say(&["report", "--format", "json", record])).unwrap();
    assert_eq!(exported["advice"][0]["explained"][0]["action"], "base");
    assert_eq!((&exported["runs"][0]["exit"]["status"], &exported["complete"]), (&0.into(), &true.into()));
}

#[test]
fn missing_decisions_and_an_unwritable_record_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (record, page) = (folder.path().join("run.bursar"), folder.path().join("page.html"));
    let (record, page) = (record.to_str().unwrap(), page.to_str().unwrap());
    let status_and_stderr = |words: &[&str]| {
        let output = bursar().args(words).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    assert_eq!(status_and_stderr(&["run", "-q", "--record", record, "--", "true"]).0, Some(0));
    let (status, stderr) = status_and_stderr(&["advise", "run", "--record", "/nowhere/a.bursar", "--", "touch", page]);
    assert!(status == Some(125) && stderr.contains("/nowhere/a.bursar"), "{stderr}");
    assert!(!std::path::Path::new(page).exists(), "the command ran");
    std::fs::remove_file(record).unwrap();
    assert_eq!(status_and_stderr(&["advise", "run", "-q", "--record", record, "--", "true"]).0, Some(0));
    let (status, stderr) = status_and_stderr(&["report", record, "--html", page]);
    assert!(status == Some(125) && stderr.contains("there is no page"), "{stderr}");
}

#[test]
fn a_profile_of_another_build_is_ignored_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path(), &[]);
    let output =
        run(&["--profile", &profile(folder.path(), "program fills 00ff\nmmap 26 0 0..end huge=1\n")], &[&program]);
    assert!(output.status.success());
    assert!(stderr(&output).contains("of another build: its 1 ranges were ignored"), "{}", stderr(&output));
}

#[test]
fn ranges_that_match_no_memory_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path(), &[]);
    let output =
        run(&["--profile", &profile(folder.path(), "program fills -\nmmap 40 0 0..end huge=1\n")], &[&program]);
    assert!(output.status.success());
    assert!(stderr(&output).contains("no range of the profile was met"), "{}", stderr(&output));
}

#[test]
fn a_malformed_profile_is_reported_by_line_and_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["--profile", &profile(folder.path(), "nonsense\n")], &["echo", "ran"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), b"".as_slice()));
    assert!(stderr(&output).contains("line 2"), "{}", stderr(&output));
}

#[test]
fn a_static_program_runs_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path(), &["-static"]);
    let output = run(&[], &[&program]);
    assert!(output.status.success());
    assert!(stderr(&output).contains("statically linked"), "{}", stderr(&output));
    let quiet = stderr(&run(&["--quiet"], &[&program]));
    assert!(quiet.lines().count() == 1 && quiet.contains("statically linked"), "{quiet}");
}

#[test]
fn a_program_with_a_sanitizer_runs_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&[], &[&fills(folder.path(), &["-fsanitize=address"])]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("sanitizer"), "{}", stderr(&output));
}

#[test]
fn a_run_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = advised(&["-q"], &[&fills(folder.path(), &[])]).env("TMPDIR", &temporary).output().unwrap();
    assert!(output.status.success());
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}
