//! `bursar faults` on programs that make a known number of faults of each kind.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use serde_json::Value;
use support::{
    PID_NAMESPACE, Programs, bursar, bursar_as_nobody, can_limit, can_unshare, huge_pages_alone, is_root, json_of, need,
};

/// The number of faults of each kind that starting and ending a program may take.
const FEW: u64 = 60;

/// Runs `bursar faults` on the test program; returns the status and the JSON.
fn faults_of(arguments: &[&str]) -> (i32, Value) {
    json_of(bursar().args(["faults", "-q", "--json", "-", "--", Programs::build().faults()]).args(arguments))
}

fn count(json: &Value, kind: &str) -> u64 {
    json["kinds"][kind]["count"].as_u64().unwrap_or(0)
}

/// Asserts a count within 1 %, plus the faults of the program's start.
fn assert_made(json: &Value, kind: &str, made: u64) {
    let seen = count(json, kind);
    assert!((made..=made + made / 100 + FEW).contains(&seen), "{seen} {kind} faults of {made}: {json:#}");
}

/// Whether faults can be timed here.
fn can_time() -> bool {
    is_root() && need("BPF on the exception tracepoints", linux::faults::available().is_ok())
}

#[test]
fn each_kind_of_fault_is_recognised() {
    if !can_time() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("data");
    for (what, kind, made) in [
        ("base", "base", 5000),
        ("zero", "zero", 3000),
        ("cow", "cow", 2000),
        ("file", "file", 1500),
        ("shared", "shared", 2500),
    ] {
        let (status, json) = faults_of(&[what, &made.to_string(), file.to_str().unwrap()]);
        assert_eq!(status, 0);
        assert_made(&json, kind, made);
        for other in
            ["base", "large", "huge", "zero", "cow", "file", "shared", "swap", "hugetlb", "other", "userfaultfd"]
        {
            assert!(other == kind || count(&json, other) < FEW, "{what}, {other}: {json:#}");
        }
        assert!(json["untimed_count"].as_u64().unwrap() < FEW, "{json:#}");
    }
}

#[test]
fn huge_pages_are_reported_with_their_order() {
    let _alone = huge_pages_alone();
    let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !can_time() || !need("transparent huge pages", modes.contains("[madvise]") || modes.contains("[always]")) {
        return;
    }
    let (_, json) = faults_of(&["huge", "40"]);
    let huge = &json["kinds"]["huge"];
    let others = count(&json, "base").saturating_sub(FEW) / 512;
    assert!(huge["count"].as_u64().unwrap() + others >= 40, "memory may be fragmented: {json:#}");
    assert_eq!(huge["by_order"][0]["order"], 9);
}

#[test]
fn hugetlb_faults_are_a_kind_of_their_own() {
    if !can_time() {
        return;
    }
    const PAGES: &str = "/proc/sys/vm/nr_hugepages";
    let _alone = huge_pages_alone();
    let read = || std::fs::read_to_string(PAGES).unwrap().trim().parse::<u64>().unwrap();
    struct PutBack(u64);
    impl Drop for PutBack {
        fn drop(&mut self) {
            let _ = std::fs::write(PAGES, self.0.to_string());
        }
    }
    let before = PutBack(read());
    std::fs::write(PAGES, (before.0 + 8).to_string()).unwrap();
    if need("8 free huge pages", read() >= before.0 + 8) {
        let (status, json) = faults_of(&["hugetlb", "8"]);
        // While a processor executes a system call on BPF maps of any process, the kernel delivers no perf event there. The end of such a
        // fault is missed, and the fault is reported as unfinished.
        let unfinished = json["unfinished_count"].as_u64().unwrap();
        let (seen, other) = (count(&json, "hugetlb"), count(&json, "other"));
        assert_eq!(
            (status, seen + unfinished),
            (0, 8),
            "{seen} seen, {unfinished} unfinished, {other} others: {json:#}"
        );
        assert!(seen >= 7, "{seen} seen, {unfinished} unfinished: {json:#}");
    }
}

#[test]
fn faults_by_the_kernel_for_the_program_count_as_other() {
    if !can_time() {
        return;
    }
    let (_, json) = faults_of(&["kernel", "1000"]);
    assert_made(&json, "base", 1000);
    let in_kernel = json["kinds"]["base"]["in_kernel_count"].as_u64().unwrap();
    assert!((1000..1000 + FEW).contains(&in_kernel), "{json:#}");
}

#[test]
fn threads_children_and_their_programs_are_followed() {
    if !can_time() {
        return;
    }
    assert_made(&faults_of(&["threads", "1000"]).1, "base", 4000);
    assert_made(&faults_of(&["children", "300"]).1, "base", 300);
    assert_made(&faults_of(&["executes", "700"]).1, "base", 700);
}

#[test]
fn a_fault_that_ends_in_a_signal_is_counted_separately() {
    if !can_time() {
        return;
    }
    assert_eq!(faults_of(&["interrupted", "400"]).1["unfinished_count"], 400);
    let output = bursar()
        .args(["faults", "-q", "--json", "-", "--", Programs::build().faults(), "segv", "16"])
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(11));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["exit_status"], &json["unfinished_count"]), (&139.into(), &1.into()));
}

/// The kernel's PIDs differ from those that bursar sees.
#[test]
fn the_slowest_faults_have_the_pids_of_bursars_namespace() {
    if !can_time() || !can_unshare(&PID_NAMESPACE[1..]) {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("json");
    let script = format!("echo $$; exec {} base 2000", Programs::build().faults());
    let mut command = std::process::Command::new(PID_NAMESPACE[0]);
    command.args(&PID_NAMESPACE[1..]).arg(env!("CARGO_BIN_EXE_bursar"));
    command.args(["faults", "-q", "--json", file.to_str().unwrap(), "--", "sh", "-c", &script]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let pid: u64 = String::from_utf8_lossy(&output.stdout).lines().next().unwrap().parse().unwrap();
    let slowest: Vec<u64> =
        json["slowest"].as_array().unwrap().iter().map(|fault| fault["pid"].as_u64().unwrap()).collect();
    // The only other process is the parent, which was there before: its PID is lower.
    assert!(slowest.contains(&pid) && slowest.iter().all(|its| *its <= pid), "{pid}: {slowest:?}");
}

#[test]
fn a_collapse_of_the_same_region_is_reported() {
    let _alone = huge_pages_alone();
    let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !can_time() || !need("MADV_COLLAPSE", !modes.is_empty() && linux::procfs::kernel_version() >= (6, 1)) {
        return;
    }
    // Whether a touch falls into a collapse is a matter of chance, on a busy machine a small one.
    let seen = (0..8).any(|_| {
        let (status, json) = faults_of(&["collapsed", "300"]);
        assert_eq!(status, 0);
        json["overall"]["collapse"]["count"].as_u64().unwrap() > 0
    });
    assert!(seen);
}

#[test]
fn reclaim_under_a_limit_is_reported() {
    if !can_time() || !can_limit() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (data, json_path) = (folder.path().join("data"), folder.path().join("faults.json"));
    std::fs::write(&data, vec![7; 96 << 20]).unwrap();
    let mut command = bursar();
    command.args(["run", "-q", "--limit", "96M", "--"]).arg(assert_cmd::cargo::cargo_bin("bursar"));
    command.args(["faults", "-q", "--json"]).arg(&json_path).args([
        "--",
        Programs::build().faults(),
        "reclaiming",
        "8000",
    ]);
    assert!(command.arg(&data).status().unwrap().success());
    let json: Value = serde_json::from_slice(&std::fs::read(&json_path).unwrap()).unwrap();
    assert!(json["kinds"]["base"]["reclaim"]["count"].as_u64().unwrap() > 0, "{json:#}");
}

/// A figure of one kind of system call.
fn call(json: &Value, kind: &str, figure: &str) -> f64 {
    json["calls"][kind][figure].as_f64().unwrap_or(0.0)
}

#[test]
fn memory_that_system_calls_populate_is_in_the_first_line() {
    if !can_time() {
        return;
    }
    const PAGES: u64 = 4096;
    let bytes = (PAGES * 4096) as f64;
    let (status, json) = faults_of(&["populated", &PAGES.to_string()]);
    assert_eq!(status, 0);
    assert!(count(&json, "base") < FEW, "{json:#}");
    for kind in ["mmap", "populate", "mlock"] {
        // mmap populates twice: as requested by MAP_POPULATE, and after mlockall.
        let asked = if kind == "mmap" { 2.0 * bytes } else { bytes };
        for figure in ["populated_bytes", "allocated_bytes"] {
            let seen = call(&json, kind, figure);
            assert!((asked..=asked + (FEW * 4096) as f64).contains(&seen), "{kind}, {figure}: {json:#}");
        }
        assert!(call(&json, kind, "populating_seconds") > 0.0 && call(&json, kind, "max_us") > 0.0);
    }
    let programs = Programs::build();
    let program = programs.faults();
    let output = bursar().args(["faults", "--", program, "populated", "4096"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ");
    let first = text.lines().next().unwrap();
    assert!(first.contains("; system calls populated 64.") && first.contains(" MiB more in "), "{text}");
    let output = bursar().args(["faults", "--", program, "base", "64"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("populated 64") && !text.contains("MiB more"), "{text}");
}

#[test]
fn time_in_collapses_and_frees_is_attributed_to_their_call() {
    let _alone = huge_pages_alone();
    let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !can_time() || !need("MADV_COLLAPSE", !modes.is_empty() && linux::procfs::kernel_version() >= (6, 1)) {
        return;
    }
    let (status, json) = faults_of(&["collapses", "40"]);
    assert_eq!(status, 0);
    assert_eq!((call(&json, "collapse", "count"), call(&json, "collapse", "populated_bytes")), (40.0, 0.0));
    assert!(call(&json, "collapse", "allocated_bytes") >= (40 * (2 << 20)) as f64, "{json:#}");
    assert_eq!(call(&json, "release", "count"), 40.0);
    assert!(call(&json, "advise", "count") >= 80.0);
    // Clearing and copying 40 times 2 MiB takes longer than all other calls.
    let others = ["mmap", "munmap", "mprotect", "brk", "advise"].map(|kind| call(&json, kind, "sum_seconds"));
    assert!(call(&json, "collapse", "sum_seconds") > others.iter().sum(), "{json:#}");
}

#[test]
fn reclaim_within_a_call_is_attributed_to_the_call() {
    if !can_time() || !can_limit() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (data, figures) = (folder.path().join("data"), folder.path().join("figures.json"));
    std::fs::write(&data, vec![7; 96 << 20]).unwrap();
    let mut command = bursar();
    command.args(["run", "-q", "--limit", "96M", "--"]).arg(assert_cmd::cargo::cargo_bin("bursar"));
    command.args(["faults", "-q", "--json"]).arg(&figures);
    command.args(["--", Programs::build().faults(), "populates-under-limit", "8000"]);
    assert!(command.arg(&data).status().unwrap().success());
    let json: Value = serde_json::from_slice(&std::fs::read(&figures).unwrap()).unwrap();
    assert!(call(&json, "populate", "reclaim_seconds") > 0.0, "{json:#}");
    assert_eq!(call(&json, "populate", "allocated_bytes"), (8000 * 4096) as f64);
}

#[test]
fn userfaultfd_faults_are_a_kind_of_their_own() {
    if !can_time() {
        return;
    }
    for what in ["userfault", "userfault-protected"] {
        let (status, json) = faults_of(&[what, "200"]);
        assert_eq!(status, 0);
        assert_eq!(count(&json, "userfaultfd"), 200, "{what}: {json:#}");
        let kind = &json["kinds"]["userfaultfd"];
        assert!(kind["p50_us"].as_f64().unwrap() >= 1000.0, "{json:#}");
        let off = kind["off_cpu"]["part_seconds"].as_f64().unwrap();
        assert!(off > 0.9 * kind["sum_seconds"].as_f64().unwrap(), "{json:#}");
        for other in ["base", "zero", "cow", "other"] {
            assert!(count(&json, other) < FEW, "{what}, {other}: {json:#}");
        }
    }
}

#[test]
fn the_documented_figures_exist_and_are_consistent() {
    if !can_time() {
        return;
    }
    let (_, json) = faults_of(&["base", "20000"]);
    for figures in [&json["kinds"]["base"], &json["overall"]] {
        let figure = |name: &str| figures[name].as_f64().unwrap_or_else(|| panic!("{name}: {figures:#}"));
        let order = ["p50_us", "p99_us", "p999_us", "p99999_us", "max_us"].map(figure);
        assert!(order.is_sorted() && order[0] > 0.0, "{order:?}");
        let (mean, sum) = (figure("mean_us"), figure("sum_seconds"));
        assert!((sum * 1e6 / figure("count") - mean).abs() < 0.01, "{figures:#}");
        assert!(figure("stddev_us") >= 0.0 && figure("tracer_cost_us") > 0.0);
        let on_cpu = figures["on_cpu"]["sum_seconds"].as_f64().unwrap();
        assert!(on_cpu <= sum && (sum - on_cpu - figures["off_cpu"]["part_seconds"].as_f64().unwrap()).abs() < 1e-6);
        let by_order: u64 =
            figures["by_order"].as_array().unwrap().iter().map(|of| of["count"].as_u64().unwrap()).sum();
        assert_eq!(by_order, figures["count"].as_u64().unwrap());
    }
    let slowest: Vec<f64> =
        json["slowest"].as_array().unwrap().iter().map(|slow| slow["latency_us"].as_f64().unwrap()).collect();
    assert!(slowest.len() == 64 && slowest.is_sorted_by(|a, b| a >= b));
    assert_eq!(slowest[0], json["overall"]["max_us"].as_f64().unwrap());
}

#[test]
fn the_status_output_and_input_are_the_commands_own() {
    let output = bursar().args(["faults", "-q", "--", "sh", "-c", "echo out; echo err >&2; exit 42"]).output().unwrap();
    assert_eq!(output.status.code(), Some(42));
    assert_eq!((output.stdout, output.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
    let output = bursar().args(["faults", "-q", "--", "sh", "-c", "kill -TERM $$"]).output().unwrap();
    assert_eq!(output.status.signal(), Some(15));
    let output = bursar().args(["faults", "--", "no-such-command-anywhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("bursar: no-such-command-anywhere: ") && text.lines().count() == 1, "{text}");
}

#[test]
fn the_report_of_a_record_repeats_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let (record, page) = (folder.path().join("job.bursar"), folder.path().join("page.html"));
    let mut command = bursar();
    command.args(["faults", "-v", "--record"]).arg(&record).args(["--", Programs::build().faults(), "base", "3000"]);
    let stderr = String::from_utf8(command.output().unwrap().stderr).unwrap();
    let again = bursar().arg("report").arg(&record).output().unwrap();
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.lines().count() > 3 && stderr.starts_with(&again), "{stderr}\n{again}");
    let short = bursar().args(["faults", "--", Programs::build().faults(), "base", "3000"]).output().unwrap();
    let short = String::from_utf8(short.stderr).unwrap();
    let last = short.lines().last().unwrap();
    assert!(short.lines().count() <= 25 && last.contains("details: bursar report "), "{short}");
    assert!(bursar().arg("report").arg(&record).arg("--html").arg(&page).status().unwrap().success());
    assert!(std::fs::read_to_string(&page).unwrap().contains("page faults"));
}

#[test]
fn a_second_run_has_a_load_that_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("load");
    let load = format!("echo x >> {}; sleep 0.01", mark.display());
    let mut command = bursar();
    // The second of the two runs goes on until the load has begun twice.
    let script =
        "mkdir \"$0.run\" 2>/dev/null && exit; until [ \"$(wc -c <\"$0\")\" -gt 2 ]; do sleep 0.05; done 2>/dev/null";
    command.args(["faults", "-q", "--json", "-", "--beside", &load, "--", "sh", "-c", script]).arg(&mark);
    let (status, json) = json_of(&mut command);
    assert_eq!(status, 0);
    assert!(json["beside"]["overall"]["count"].as_u64().unwrap() > 0 && json["beside"]["load"] == load.as_str());
    let length = |path: &Path| std::fs::metadata(path).unwrap().len();
    let ended = length(&mark);
    assert!(ended > 2, "it ran more than once");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(length(&mark), ended, "it runs no more");

    let (_, json) = json_of(bursar().args(["faults", "-q", "--json", "-", "--beside", "exit 3", "--", "sleep", "0.2"]));
    assert!(json["beside"]["notes"].to_string().contains("The load failed"), "{json:#}");
}

#[test]
fn without_root_faults_are_counted_without_latencies() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("faults");
    support::copy_program(Programs::build().faults().as_ref(), &program);
    let mut command = bursar_as_nobody(folder.path());
    command.args(["faults", "-q", "--json", "-", "--"]);
    let (status, json) = json_of(command.arg(&program).args(["base", "4000"]).env("XDG_STATE_HOME", "/nonexistent"));
    assert_eq!(status, 0);
    let seen = json["overall"]["count"].as_u64().unwrap();
    assert!((4000..4000 + 40 + 4 * FEW).contains(&seen), "{json:#}");
    assert!(json["overall"]["p50_us"].is_null() && json["overall"]["tracer_cost_us"].is_null());
    assert!(json["kinds"].as_object().unwrap().is_empty() && json["rung"].as_str().unwrap().contains("count"));
}
