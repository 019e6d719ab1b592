//! `bursar predict` from bursar's records and from files of other tools.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{bursar, bursar_as_nobody, can_hide_cgroups, without_cgroups};

const MIB: u64 = 1 << 20;

fn predict(arguments: &[&str], folder: &Path) -> Output {
    bursar().arg("predict").args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn figures(arguments: &[&str], folder: &Path) -> Value {
    let output = predict(&[&["--json", "-"], arguments].concat(), folder);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(arguments: &[&str], folder: &Path) -> String {
    let output = predict(arguments, folder);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A history in which each task needs three times its input and 100 MiB.
fn history(folder: &Path) {
    let rows = (1..=20).map(|size| format!("align,{},{},60\n", size * 100 * MIB, (size * 300 + 100) * MIB));
    fs::write(
        folder.join("history.csv"),
        "task,input_bytes,peak_bytes,seconds\n".to_string() + &rows.collect::<String>(),
    )
    .unwrap();
}

#[test]
fn size_is_refused_where_no_past_run_has_an_input_size() {
    let folder = tempfile::tempdir().unwrap();
    let rows = (1..=20).map(|run| format!("align,{},60\n", (500 + run) * MIB));
    let table = "task,peak_bytes,seconds\n".to_string() + &rows.collect::<String>();
    fs::write(folder.path().join("history.csv"), table).unwrap();
    let asked = ["--from", "history.csv", "--kind", "align"];
    let stderr = refused(&[&asked[..], &["--size", "500M"]].concat(), folder.path());
    assert!(stderr.contains("has the size of its input on record, so --size has no effect"), "{stderr}");
    let ask = figures(&asked, folder.path())["ask_bytes"].as_u64().unwrap() / MIB;
    assert!((500..700).contains(&ask), "{ask}");
}

#[test]
fn predicts_a_larger_input_from_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = |size: u64| folder.path().join(format!("{size}.bin"));
    for size in [8, 16, 32, 64, 200] {
        fs::write(path(size), vec![b'x'; (size * MIB) as usize]).unwrap();
    }
    let script = "import sys, time; text = open(sys.argv[1], 'rb').read(); data = bytearray(text); time.sleep(0.5)";
    fs::write(folder.path().join("load.py"), script).unwrap();
    for size in [8, 16, 32, 64] {
        let mut run = bursar();
        run.args(["run", "-q", "--record"]).arg(folder.path().join(format!("records/{size}.bursar")));
        fs::create_dir_all(folder.path().join("records")).unwrap();
        let ended =
            run.args(["--", "nice", "python3", "load.py"]).arg(path(size)).current_dir(folder.path()).status().unwrap();
        assert!(ended.success());
    }
    let found = figures(&["--from", "records", "--", "python3", "load.py", "200.bin"], folder.path());
    assert_eq!(found["runs_used"].as_array().unwrap().len(), 4);
    assert_eq!(found["features"]["input_bytes"].as_f64(), Some((200 * MIB) as f64));
    assert_eq!(found["extrapolation"], 200.0 / 64.0);
    // The program holds each byte of its input twice until it ends.
    let floor = found["predicted_bytes"]["floor"].as_u64().unwrap() / MIB;
    assert!((390..470).contains(&floor), "{found}");
    assert!(found["ask_bytes"].as_u64().unwrap() >= floor * MIB, "{found}");
}

#[test]
fn predicts_from_csv_and_counts_skipped_rows() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    let found = figures(&["--from", "history.csv", "--kind", "align", "--size", "1050M"], folder.path());
    let need = (1050 * 3 + 100) * MIB;
    let ask = found["ask_bytes"].as_u64().unwrap();
    assert!(ask >= need && ask < need * 11 / 10, "{found}");
    assert_eq!(found["confidence"], 0.95);
    let retries = found["retry_bytes"].as_array().unwrap();
    assert!(retries[0].as_u64().unwrap() > ask && retries[1].as_u64() > retries[0].as_u64(), "{found}");
}

#[test]
fn named_standard_input_counts_as_one_file() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    let path = folder.path().join("input.bin");
    fs::write(&path, vec![0; (20 * MIB) as usize]).unwrap();
    for name in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "input.bin"] {
        let mut asked = bursar();
        asked.args(["predict", "--json", "-", "--from", "history.csv", "--kind", "align", "--", "align", name]);
        asked.current_dir(folder.path()).stdin(fs::File::open(&path).unwrap());
        let found = json(asked);
        assert_eq!(found["features"]["input_bytes"], (20 * MIB) as f64, "{name}: {found}");
    }
}

#[test]
fn the_snakemake_line_depends_on_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    let output = predict(&["--from", "history.csv", "--kind", "align", "--size", "1050M"], folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Snakemake")).unwrap_or_else(|| panic!("{text}"));
    let lambda = line.trim().strip_prefix("resources: mem_mb=").unwrap();
    let code = format!(
        "f = {lambda}\nsteps = [f(None, None, attempt) for attempt in (1, 2, 3, 4)]\nassert steps[0] < steps[1] < steps[2] == steps[3], steps"
    );
    assert!(Command::new("python3").args(["-c", &code]).status().unwrap().success(), "{line}");
}

/// A folder with a program that holds its input, and its records; returns a function that makes a command there.
fn holder(folder: &Path) -> impl Fn(&[&str]) -> Command + use<> {
    // Three times the input, held for long enough to be sampled.
    let script = "import sys, time; data = open(sys.argv[1], 'rb').read(); held = data * 2; time.sleep(0.3)";
    fs::write(folder.join("hold.py"), script).unwrap();
    fs::write(folder.join("input.bin"), vec![b'x'; (64 * MIB) as usize]).unwrap();
    let folder = folder.to_path_buf();
    move |arguments| {
        let mut command = bursar();
        command.env("XDG_STATE_HOME", folder.join("state")).args(arguments).current_dir(&folder).stdin(Stdio::null());
        command
    }
}

fn json(mut command: Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn plans_the_cheapest_runs_and_executes_them() {
    let folder = tempfile::tempdir().unwrap();
    let command = holder(folder.path());
    let hold = ["--", "python3", "hold.py", "input.bin"];
    let planned = json(command(&[&["predict", "--plan", "--json", "-"], &hold[..]].concat()));
    assert_eq!(planned["planned_bytes"], serde_json::json!([4 * MIB, 8 * MIB, 16 * MIB]), "{planned}");
    let learnt = ["predict", "--learn", "--scale-with", "head -c {} input.bin", "--json", "-"];
    let found = json(command(&[&learnt, &hold[..]].concat()));
    let sizes: Vec<u64> = found["runs_used"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            run["features"]["input_bytes"]
                .as_u64()
                .unwrap_or_else(|| run["features"]["input_bytes"].as_f64().unwrap() as u64)
        })
        .collect();
    assert_eq!(sizes, [4 * MIB, 8 * MIB, 16 * MIB], "{found}");
    let ask = found["ask_bytes"].as_u64().unwrap() / MIB;
    assert!((192..390).contains(&ask) && found["beyond"]["ratio"] == 4.0, "{found}");
    let planned = json(command(&[&["predict", "--plan", "--json", "-"], &hold[..]].concat()));
    assert_eq!((&planned["runs"], &planned["planned_bytes"]), (&3.into(), &serde_json::json!([])), "{planned}");
}

#[test]
fn learns_from_the_named_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let command = holder(folder.path());
    for size in [2, 4, 9] {
        fs::write(folder.path().join(format!("{size}.bin")), vec![b'x'; (size * MIB) as usize]).unwrap();
    }
    let found = json(command(&[
        "predict",
        "--json",
        "-",
        "--learn",
        "2.bin",
        "4.bin",
        "9.bin",
        "--",
        "python3",
        "hold.py",
        "input.bin",
    ]));
    assert_eq!(found["runs_used"].as_array().unwrap().len(), 3, "{found}");
    for (arguments, part) in [
        (&["--learn", "--", "python3", "hold.py", "input.bin"][..], "--learn takes inputs, or --scale-with"),
        (&["--learn", "2.bin", "--", "python3", "hold.py", "none.bin"], "names no file that is here"),
        (&["--learn", "none.bin", "--", "python3", "hold.py", "input.bin"], "cannot read none.bin"),
        (&["--learn", "2.bin", "--", "false", "input.bin"], "the command failed with 2.bin"),
        (&["--learn", "--scale-with", "false {}", "--", "false", "input.bin"], "--scale-with 'false 1000' failed"),
    ] {
        let output = command(&[&["predict"], arguments].concat()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(125) && error.contains(part), "{error}");
    }
}

#[test]
fn a_number_in_the_environment_is_a_feature() {
    let folder = tempfile::tempdir().unwrap();
    let command = holder(folder.path());
    let script =
        "import os; data = b'x' * (int(os.environ['OMP_NUM_THREADS']) * 20 << 20); import time; time.sleep(0.3)";
    fs::write(folder.path().join("threads.py"), script).unwrap();
    for threads in ["1", "2", "3", "4"] {
        let mut run = command(&["run", "-q", "--feature", "LEVEL", "--", "python3", "threads.py"]);
        assert!(run.env("OMP_NUM_THREADS", threads).env("LEVEL", "7").status().unwrap().success());
    }
    let mut asked = command(&["predict", "--json", "-", "--feature", "LEVEL=7", "--", "python3", "threads.py"]);
    asked.env("OMP_NUM_THREADS", "8");
    let found = json(asked);
    assert_eq!(found["features"], serde_json::json!({ "OMP_NUM_THREADS": 8.0 }), "{found}");
    assert_eq!(found["beyond"], serde_json::json!({ "feature": "OMP_NUM_THREADS", "ratio": 2.0 }), "{found}");
    assert!(found["ask_bytes"].as_u64().unwrap() > 160 * MIB, "{found}");
    assert_eq!(found["runs_used"][0]["features"]["LEVEL"], 7.0, "{found}");
    let output =
        command(&["predict", "--feature", "LEVEL", "--", "python3", "threads.py"]).env_remove("LEVEL").output();
    assert!(String::from_utf8_lossy(&output.unwrap().stderr).contains("'LEVEL' is no feature"));
}

#[test]
fn a_budget_keeps_a_feature_for_predictions() {
    let folder = tempfile::tempdir().unwrap();
    let command = holder(folder.path());
    let budget = ["budget", "-q", "--no-compare", "--runs", "1", "--max-trials", "1", "--record", "held.bursar"];
    let program = ["--feature", "LEVEL=7", "--", "python3", "-c", "data = b'x' * (30 << 20)"];
    assert!(command(&[&budget[..], &program].concat()).status().unwrap().success());
    let record = record::Record::open(&folder.path().join("held.bursar")).unwrap();
    assert_eq!(record.header.options.get("feature:LEVEL").map(String::as_str), Some("7"));
}

#[test]
fn runs_under_other_conditions_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let command = holder(folder.path());
    // It runs for long enough to be sampled.
    fs::copy("/bin/gzip", folder.path().join("tool")).unwrap();
    fs::write(folder.path().join("input.bin"), vec![0; 64 << 20]).unwrap();
    fs::create_dir(folder.path().join("records")).unwrap();
    let record = |name: &str, more: &[&str]| {
        let path = format!("records/{name}.bursar");
        let arguments = [&["run", "-q", "--record", &path], more, &["--", "./tool", "-c", "input.bin"]].concat();
        assert!(command(&arguments).stdout(Stdio::null()).status().unwrap().success());
        folder.path().join(path)
    };
    for name in ["a", "b", "c"] {
        record(name, &[]);
    }
    let change = |path: &Path, set: &str| {
        let database = rusqlite::Connection::open(path).unwrap();
        assert_eq!(database.execute(&format!("UPDATE header SET {set}"), []).unwrap(), 1);
    };
    change(&record("machine", &[]), "cpus = 1000");
    change(&record("build", &[]), "options = json_set(options, '$.build_id', 'older')");
    record("limit", &["--limit", "1G"]);
    let asked = ["predict", "--from", "records", "--json", "-"];
    let tool = ["--", "./tool", "-c", "input.bin"];
    let found = json(command(&[&asked[..], &tool].concat()));
    assert_eq!(found["runs_used"].as_array().unwrap().len(), 3, "{found}");
    for (record, part) in [
        ("build", "another build of the program"),
        ("limit", "it ran under a limit of 1.00 GiB"),
        ("machine", "a machine with 1000 processors"),
    ] {
        let left_out = found["runs_left_out"].as_array().unwrap();
        let is_so = |run: &&Value| {
            run["record"].as_str().unwrap().contains(record) && run["reason"].as_str().unwrap().contains(part)
        };
        assert!(left_out.iter().any(|run| is_so(&run)), "{found}");
    }
    let found = json(command(&[&asked[..], &["--other-machine"], &tool].concat()));
    assert_eq!(found["runs_used"].as_array().unwrap().len(), 4, "{found}");
}

#[test]
fn runs_that_may_lack_memory_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let command = holder(folder.path());
    // If the file exists, the script leaves a process that outlives the measurement.
    let script = "python3 hold.py input.bin; if test -e leave; then sleep 5 >/dev/null 2>&1 & fi";
    fs::write(folder.path().join("job.sh"), script).unwrap();
    fs::create_dir(folder.path().join("records")).unwrap();
    for name in ["a", "b", "c", "leaves"] {
        if name == "leaves" {
            fs::write(folder.path().join("leave"), "").unwrap();
        }
        let path = format!("records/{name}.bursar");
        assert!(command(&["run", "-q", "--record", &path, "--", "sh", "job.sh"]).status().unwrap().success());
    }
    let found = json(command(&["predict", "--from", "records", "--json", "-", "--", "sh", "job.sh"]));
    assert_eq!(found["runs_used"].as_array().unwrap().len(), 3, "{found}");
    let left_out = &found["runs_left_out"][0];
    assert!(left_out["record"].as_str().unwrap().ends_with("leaves.bursar"), "{found}");
    assert!(left_out["reason"].as_str().unwrap().contains("memory of the job may be missing"), "{found}");
}

#[test]
fn runs_known_by_bounds_count_by_the_upper_bound() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    // Four processes hold four times the input each, and share the memory they were forked with.
    let script = "import sys, time, multiprocessing\ndata = open(sys.argv[1], 'rb').read()\n\
                  def work(_):\n    held = bytearray(b'y') * (4 * len(data))\n    time.sleep(0.3)\n    return len(held)\n\
                  with multiprocessing.Pool(4) as pool:\n    pool.map(work, range(4), chunksize=1)\n";
    fs::write(folder.path().join("pool.py"), script).unwrap();
    for size in [2, 4, 6, 8, 10] {
        fs::write(folder.path().join(format!("{size}.bin")), vec![b'x'; (size * MIB) as usize]).unwrap();
    }
    let records = folder.path().join("records");
    fs::create_dir(&records).unwrap();
    std::os::unix::fs::chown(&records, Some(65534), Some(65534)).unwrap();
    let mut most = 0;
    for size in ["2", "4", "6", "8"] {
        let mut run = bursar_as_nobody(folder.path());
        run.args(["run", "-q", "--json", "-", "--record"]).arg(records.join(format!("{size}.bursar")));
        run.args(["--", "python3", "pool.py", &format!("{size}.bin")]);
        let mut run = without_cgroups(&run);
        run.current_dir(folder.path());
        let account = json(run);
        most = account["floor_at_most_bytes"].as_u64().unwrap_or_else(|| panic!("{account}"));
    }
    let asked = ["--from", "records", "--", "python3", "pool.py", "10.bin"];
    let found = figures(&asked, folder.path());
    assert!(found["ask_bytes"].as_u64().unwrap() > most, "{most}: {found}");
    let bounded = found["runs_used"].as_array().unwrap().iter().filter(|run| run["has_only_bounds"] == true).count();
    let text = String::from_utf8(predict(&asked, folder.path()).stdout).unwrap();
    let line = format!(
        "  bounds       {bounded} of 4 runs knew only bounds of what must fit; the request is from the upper ones\n"
    );
    assert!(bounded > 0 && text.contains(&line), "{text}");
}

#[test]
fn the_nextflow_closure_asks_for_the_next_step_each_attempt() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    let arguments = ["--from", "history.csv", "--kind", "align", "--size", "1050M"];
    let found = figures(&arguments, folder.path());
    let text = String::from_utf8(predict(&arguments, folder.path()).stdout).unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Nextflow")).unwrap_or_else(|| panic!("{text}"));
    // The same arithmetic in Groovy; `MB` is 2^20 bytes in Nextflow.
    let (closure, rest) = line.trim().strip_prefix("memory {").unwrap().split_once('}').unwrap();
    let expression = closure.replace(".MB", "").replace("Math.min(task.attempt", "min(attempt");
    let code = format!("print([{expression} for attempt in (1, 2, 3, 4)])");
    let output = Command::new("python3").args(["-c", &code]).output().unwrap();
    let steps: Vec<u64> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?} {line}"));
    let mib = |bytes: &Value| bytes.as_u64().unwrap().div_ceil(MIB);
    let expected = [mib(&found["ask_bytes"]), mib(&found["retry_bytes"][0]), mib(&found["retry_bytes"][1])];
    assert_eq!((&steps[..3], steps[3]), (&expected[..], expected[2]), "{line}");
    assert_eq!(rest, "; errorStrategy 'retry'; maxRetries 2", "{line}");
}

#[test]
fn few_exact_runs_do_not_reach_the_confidence() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |runs: u64| (1..=runs).map(|run| format!("a,{},{}\n", run * MIB, 3 * run * MIB)).collect::<String>();
    for (runs, few) in [(3, true), (40, false)] {
        fs::write(folder.path().join("few.csv"), format!("task,input_bytes,peak_bytes\n{}", rows(runs))).unwrap();
        let output = predict(&["--from", "few.csv", "--kind", "a", "--size", "2M"], folder.path());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.contains("with 75 % confidence, the most that 3 runs allow"), few, "{text}");
        assert_eq!(text.contains("with 95 % confidence"), !few, "{text}");
    }
}

#[test]
fn an_option_outside_past_runs_removes_the_confidence() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |size: fn(u64) -> u64| {
        let row = |run: u64| format!("sort,{},{},{}\n", run * MIB, 200 * MIB + run * 1024, size(run) * MIB);
        "task,input_bytes,peak_bytes,-S\n".to_string() + &(30..36).map(row).collect::<String>()
    };
    fs::write(folder.path().join("one.csv"), rows(|_| 20)).unwrap();
    fs::write(folder.path().join("two.csv"), rows(|run| if run % 2 == 0 { 10 } else { 20 })).unwrap();
    let asked = |from: &str, buffer: u64| {
        let buffer = format!("-S={}", buffer * MIB);
        let arguments = ["--from", from, "--kind", "sort", "--size", "32M", "--feature", &buffer];
        (String::from_utf8(predict(&arguments, folder.path()).stdout).unwrap(), figures(&arguments, folder.path()))
    };
    let (text, found) = asked("one.csv", 40);
    assert!(text.contains("-S 40.0 MiB: past runs had 20.0 MiB only, its effect is not known"), "{text}");
    assert!(text.contains("its confidence is not known") && !text.contains("% confidence"), "{text}");
    assert!(text.starts_with("sort: not known for -S 40.0 MiB; as past runs had it, ask for "), "{text}");
    assert!(text.contains("No lines to paste") && !text.contains("--mem="), "{text}");
    assert_eq!(found["unknown"][0]["feature"], "-S", "{found}");
    let (text, _) = asked("two.csv", 40);
    assert!(text.contains("past runs had 10.0 MiB to 20.0 MiB, its effect is not known"), "{text}");
    let (text, found) = asked("one.csv", 20);
    assert!(!text.contains("unknown") && text.contains("% confidence") && text.contains("--mem="), "{text}");
    assert_eq!(found["unknown"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_missing_number_of_past_runs_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let job = |number: u64| {
        let times = format!("100|2026-11-28T13:0{number}:00|2026-11-28T13:0{number}:30");
        format!(
            "{number}|grow_{number}|a|COMPLETED|{times}|1|1||4G|mem=4G|||\n\
             {number}.batch|batch||COMPLETED|{times}|1|1|1||mem=4G|{}M|mem={}M|\n",
            number * 100,
            number * 100
        )
    };
    let head = "JobID|JobName|User|State|ElapsedRaw|Start|End|NNodes|AllocCPUS|NTasks|ReqMem|AllocTRES|MaxRSS|TRESUsageInTot|TRESUsageOutTot\n";
    fs::write(folder.path().join("jobs.txt"), head.to_string() + &[1, 2, 4, 8].map(job).concat()).unwrap();
    let predicted = |more: &[&str]| {
        let arguments = [&["--from", "jobs.txt", "--kind", "grow"], more, &["--", "grow_6"]].concat();
        let found = figures(&arguments, folder.path());
        (String::from_utf8(predict(&arguments, folder.path()).stdout).unwrap(), found["not_given"].clone())
    };
    let (text, not_given) = predicted(&[]);
    assert!(text.contains("  unknown      #1: past runs had 1 to 8; give it: --feature '#1=…'\n"), "{text}");
    assert_eq!(not_given, serde_json::json!([{ "feature": "#1", "seen": [1.0, 8.0] }]));
    let (text, not_given) = predicted(&["--feature", "#1=6"]);
    assert!(!text.contains("give it") && not_given == serde_json::json!([]), "{text}");
}

#[test]
fn a_slightly_larger_input_does_not_widen_the_interval() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    let predicted = |size: &str| {
        let arguments = ["--from", "history.csv", "--kind", "align", "--size", size];
        String::from_utf8(predict(&arguments, folder.path()).stdout).unwrap()
    };
    let near = predicted("2400M");
    assert!(near.contains("1.20 times the largest of past runs: predicted as if it were within them"), "{near}");
    assert!(near.contains("of 18 past runs, each predicted from those before it"), "{near}");
    let far = predicted("8000M");
    assert!(far.contains("the interval is wider for it") && !far.contains("past runs, each"), "{far}");
}

#[test]
fn too_few_runs_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.csv"), "task,input_bytes,peak_bytes\na,1,1\na,2,2\n").unwrap();
    let error = refused(&["--from", "x.csv", "--kind", "^a$", "--size", "16M"], folder.path());
    assert!(
        error.contains("needs 3 completed runs, and there are 2")
            && error.contains("about 1.00 MiB, 2.00 MiB and 4.00 MiB"),
        "{error}"
    );
}

#[test]
fn bad_input_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    fs::write(folder.path().join("other.csv"), "a,b\n1,2\n").unwrap();
    fs::write(folder.path().join("program"), b"\x7fELF\x02\xff\xfe").unwrap();
    let from = ["--from", "history.csv", "--kind", "align"];
    for (arguments, part) in [
        (vec!["--from", "other.csv", "--kind", "a"], "it has no column peak_rss"),
        (vec!["--from", "missing.csv", "--kind", "a"], "cannot read missing.csv"),
        (
            vec!["--from", "program", "--kind", "a"],
            "program is no text file: it holds bytes that are no UTF-8. --from takes ",
        ),
        (from.to_vec(), "the size of the input is unknown"),
        ([&from[..], &["--size", "1G", "--feature", "--threads=8"]].concat(), "no past run has the feature --threads"),
    ] {
        let error = refused(&arguments, folder.path());
        assert!(error.contains(part) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn predicts_jobs_of_a_cluster_from_its_accounting() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slurm/recorded");
    for file in ["slurm-24.11.5-linux.txt", "slurm-22.05.8-linux.json"] {
        let found = figures(&["--from", file, "--kind", "^solver$"], &recorded);
        // 80 to 104 MiB and what an interpreter takes.
        let floor = found["predicted_bytes"]["floor"].as_u64().unwrap() / MIB;
        assert!((80..120).contains(&floor), "{found}");
        let left_out = found["runs_left_out"].as_array().unwrap();
        assert!(
            left_out.iter().any(|run| run["reason"].as_str().unwrap().contains("failed, was cancelled")),
            "{found}"
        );
    }
}

#[test]
fn counts_skipped_runs_and_lists_them_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    let unmeasured = "-\tCOMPLETED\talign\n".repeat(9);
    fs::write(folder.path().join("trace.txt"), "peak_rss\tstatus\tname\n".to_string() + &unmeasured).unwrap();
    let others: String = (1..=12).map(|run| format!("sort{run},{MIB},{MIB},60\n")).collect();
    fs::write(folder.path().join("others.csv"), "task,input_bytes,peak_bytes,seconds\n".to_string() + &others).unwrap();
    let asked = ["--from", "history.csv", "others.csv", "trace.txt", "--kind", "^align$", "--size", "1G"];
    let text = |more: &[&str]| String::from_utf8(predict(&[&asked[..], more].concat(), folder.path()).stdout).unwrap();
    let short = text(&[]);
    assert!(short.ends_with("\nLeft out: 21 (12: another kind; 9: no peak_rss); -v lists them\n"), "{short}");
    assert_eq!(short.matches("eft out").count(), 1, "{short}");
    let all = text(&["-v"]);
    assert!(all.contains("  others.csv:2: another kind: sort1\n"), "{all}");
    let listed = all.lines().skip_while(|line| *line != "Left out: 21").skip(1).count();
    assert_eq!(listed, 21, "{all}");
}
