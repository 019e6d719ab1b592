//! `bursar attribute` on programs whose memory is attributed by hand, and on programs that end badly.

mod support;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{OnceLock, PoisonError, RwLock};

use serde_json::{Value, json};
use support::allocators::allocators;
use support::filter::{ENOSYS, EPERM, under};
use support::{
    PID_NAMESPACE, bursar, bursar_as_nobody, can_unshare, huge_pages_alone, is_root, json_after, need, tolerance,
};

const SIZE: u64 = 64 << 20;
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// One run: its status, its JSON, and what the command printed.
type Run = (i32, Value, String);

/// How often a run is repeated: of a job that may end in several ways, until one under bursar ends as one without; of other jobs, until a
/// scan comes in time.
const RUNS: usize = 5;

fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| support::make("programs/attribute"))
}

fn program(name: &str) -> String {
    programs().join(name).display().to_string()
}

/// The MPIs that are installed; in CI all must be.
fn mpis() -> Vec<&'static str> {
    MPIS.into_iter().filter(|mpi| need(mpi, programs().join(format!("mpi.{mpi}")).exists())).collect()
}

/// Open MPI refuses to run as root, or on fewer processors than ranks, unless these variables are set. By default it binds the first rank
/// of every job to the same processor.
fn as_root(command: &mut Command) -> &mut Command {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("OMPI_MCA_hwloc_base_binding_policy", "none")
}

/// MPI libraries use the machine's pool of huge pages when it is not empty: the test that fills it excludes all others.
static POOL: RwLock<()> = RwLock::new(());

fn attribute<I: AsRef<OsStr>>(options: &[&str], command: impl IntoIterator<Item = I>) -> Run {
    let _empty = POOL.read().unwrap_or_else(PoisonError::into_inner);
    attribute_whatever_the_pool(options, command)
}

fn attribute_whatever_the_pool<I: AsRef<OsStr>>(options: &[&str], command: impl IntoIterator<Item = I>) -> Run {
    let mut all = bursar();
    all.args(["attribute", "-q", "--json", "-", "--interval", "20ms"]).args(options).arg("--").args(command);
    json_after(as_root(&mut all))
}

fn plain(case: &str, bytes: u64) -> Run {
    attribute(&["--component", "greedy=libgreedy.so*"], [program("plain"), case.into(), bytes.to_string()])
}

fn mpi(mpi: &str, ranks: u32, case: &str, bytes: u64) -> Run {
    attribute(&[], mpi_command(mpi, ranks, case, bytes))
}

fn mpi_command(mpi: &str, ranks: u32, case: &str, bytes: u64) -> Vec<String> {
    let program = program(&format!("mpi.{mpi}"));
    [format!("mpirun.{mpi}"), "-n".into(), ranks.to_string(), program, case.into(), bytes.to_string()].into()
}

/// Runs the program with its memory and without, and compares the differences with the expected ones, which the program prints.
///
/// Scans take at most half a percent of a processor. Beside other processes a scan costs more, so that none may happen while a job holds
/// its memory. If a difference is wrong and a run reports memory that was not scanned, both run again.
fn check(name: &str, bytes: u64, run: &dyn Fn(u64) -> Run) -> Run {
    for tries_left in (0..RUNS).rev() {
        let (_, without, _) = run(0);
        let with = run(bytes);
        check_sums(name, &with.1);
        let wrong = wrong_differences(name, &with, &without);
        let is_scanned = [&with.1, &without].iter().all(|json| json["not_looked_at_bytes"] == 0);
        if wrong.is_empty() {
            return with;
        }
        assert!(tries_left > 0 && !is_scanned, "{}\n{:#}", wrong.join("\n"), with.1);
    }
    unreachable!("the last try returns or fails")
}

/// The differences, of those that the program prints, that do not match a run without its memory.
fn wrong_differences(name: &str, with: &Run, without: &Value) -> Vec<String> {
    let truths: Vec<_> = with.2.lines().filter(|line| line.starts_with('/')).collect();
    assert!(!truths.is_empty(), "{name} prints its expected figures: {}", with.2);
    let wrong = |(pointer, truth): (&str, &str)| {
        let truth: u64 = truth.parse().unwrap();
        let at = |json: &Value| json.pointer(pointer).and_then(Value::as_u64);
        let grown = at(&with.1).unwrap_or(0) as i64 - at(without).unwrap_or(0) as i64;
        let is_wrong = grown.abs_diff(truth as i64) > tolerance(truth);
        let (with, without) = (at(&with.1), at(without));
        is_wrong.then(|| format!("{name}: {pointer} is {truth}, read {grown}: {with:?} less {without:?}"))
    };
    truths.iter().filter_map(|line| line.split_once('=')).filter_map(wrong).collect()
}

/// Checks that no component holds more than the total, and that almost nothing is unattributed except memory that only the kernel counted.
fn check_sums(name: &str, json: &Value) {
    let ranks = json["per_rank"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(!ranks.is_empty(), "{name}: no log: {json:#}");
    let not_scanned = json["not_looked_at_bytes"].as_u64().unwrap();
    for part in std::iter::once(json).chain(ranks) {
        let total = part["total_peak_bytes"].as_u64().unwrap();
        for (component, held) in part["components"].as_object().unwrap() {
            let peak = held["peak_bytes"].as_u64().unwrap();
            assert!(peak <= total, "{name}: {component} held {peak} of {total}: {part:#}");
        }
        let unexplained = part["unattributed_peak_bytes"].as_u64().unwrap().saturating_sub(not_scanned);
        assert!(unexplained <= (total / 50).max(1 << 20), "{name}: {unexplained} of {total} unattributed: {part:#}");
    }
}

/// Calls of all functions of this name, in C and in Fortran.
fn calls(json: &Value, name: &str) -> u64 {
    let functions = json["functions"].as_array().unwrap().iter();
    let named = functions.filter(|function| {
        let found = function["name"].as_str().unwrap().to_lowercase();
        let base = found.trim_end_matches('_').trim_end_matches("f08").trim_end_matches("08ts").trim_end_matches('_');
        base.trim_start_matches('p') == name.to_lowercase()
    });
    named.map(|function| function["calls"].as_u64().unwrap()).sum()
}

fn all(cases: &[&str], run: &dyn Fn(&str, u64) -> Run) {
    for case in cases {
        check(case, SIZE, &|bytes| run(case, bytes));
    }
}

/// Writes 120 MiB into a memfd, or maps it and touches all pages.
const MEMFD: &str = "
import mmap, os, sys, time
file = os.memfd_create('held')
if sys.argv[1] == 'written':
    for _ in range(120):
        os.write(file, b'x' * (1 << 20))
else:
    os.ftruncate(file, 120 << 20)
    memory = mmap.mmap(file, 120 << 20)
    memory[::4096] = b'x' * (len(memory) // 4096)
time.sleep(1)
";

#[test]
fn files_in_memory_that_no_process_mapped_are_in_the_first_line() {
    let run = |kind: &str| {
        let json = tempfile::NamedTempFile::new().unwrap();
        let mut command = bursar();
        command.args(["attribute", "--json"]).arg(json.path()).args(["--", "python3", "-c", MEMFD, kind]);
        let output = command.output().unwrap();
        let json: Value = serde_json::from_slice(&std::fs::read(json.path()).unwrap()).unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        let first = printed.lines().find(|line| line.starts_with("held ")).unwrap_or_else(|| panic!("{printed}"));
        (json, first.to_string())
    };
    let (mapped, first) = run("mapped");
    assert!(mapped["total_peak_bytes"].as_u64().unwrap() > 120 << 20 && !first.contains("files in memory"), "{first}");
    if !is_root() {
        return;
    }
    let (written, first) = run("written");
    let files = written["files_in_memory_bytes"].as_u64().unwrap();
    assert!(((120 << 20)..(123 << 20)).contains(&files), "{files}: {written}");
    assert!(first.contains(", and up to 12") && first.contains(" MiB in files in memory (tmpfs, memfds)"), "{first}");
}

#[test]
fn blocks_belong_to_their_caller_and_slack_to_the_allocator() {
    all(&["blocks", "small", "greedy"], &plain);
}

#[test]
fn mappings_stacks_files_and_shared_memory_have_own_lines() {
    all(&["mapped", "remapped", "sbrk", "shared", "file", "stacks"], &plain);
}

#[test]
fn processes_are_attributed_through_fork_exec_and_abort() {
    all(&["child", "exec"], &plain);
    let (status, ..) = check("abort", SIZE, &|bytes| plain("abort", bytes));
    assert_eq!(status, -1, "bursar ends by the same signal");
}

#[test]
fn a_static_program_executed_by_a_child_is_not_counted_as_it() {
    // The child's log begins, or its next scan comes, while the kernel still reads the new program.
    for wait in ["0", "0.1"] {
        let fork = format!(
            "import os, sys, time\nif not os.fork():\n    time.sleep({wait})\n    os.execve(sys.argv[1], sys.argv[1:], os.environ)\nos.wait()"
        );
        let mut slow = bursar();
        slow.args(["attribute", "-q", "--json", "-", "--interval", "20ms", "--", "/usr/bin/python3", "-c", &fork]);
        slow.args([&program("static"), &SIZE.to_string()]).env("LD_PRELOAD", program("libslow.so"));
        let (status, json, _) = json_after(&mut slow);
        assert_eq!(status, 0);
        assert_eq!(json["not_looked_at_bytes"], 0, "{json:#}");
        check_sums(wait, &json);
    }
}

#[test]
fn memory_held_at_a_fork_is_attributed_without_a_later_scan() {
    let (status, ..) = check("fork-killed", SIZE, &|bytes| {
        let mut rarely = bursar();
        rarely.args(["attribute", "-q", "--json", "-", "--interval", "10s", "--", &program("plain"), "fork-killed"]);
        json_after(rarely.arg(bytes.to_string()))
    });
    assert_eq!(status, -1, "bursar ends by the same signal");
}

/// Runs a program that grows, or is killed, with scans so rare that none sees its peak: (status, JSON) with the memory and without it.
fn unseen_peak(case: &str) -> [(i32, Value); 2] {
    [SIZE, 0].map(|bytes| {
        let mut rarely = bursar();
        rarely.args(["attribute", "-q", "--json", "-", "--interval", "10s", "--", &program("plain"), case]);
        let (status, json, _) = json_after(rarely.arg(bytes.to_string()));
        (status, json)
    })
}

/// By how much a figure is larger with the memory than without it.
fn grown(runs: &[(i32, Value); 2], pointer: &str) -> u64 {
    let [with, without] = [0, 1].map(|run: usize| runs[run].1.pointer(pointer).and_then(Value::as_u64).unwrap_or(0));
    with.saturating_sub(without)
}

#[test]
fn growth_between_the_last_scan_and_a_kill_is_in_the_total() {
    for case in ["grow-killed", "grow-abort"] {
        let runs = unseen_peak(case);
        assert_eq!(runs[0].0, -1, "{case}: bursar ends by the same signal");
        for figure in ["/total_peak_bytes", "/unattributed_peak_bytes", "/per_rank/0/total_peak_bytes"] {
            let found = grown(&runs, figure);
            assert!(found.abs_diff(SIZE) <= 3 << 20, "{case}: {figure} grew by {found}: {:#}", runs[0].1);
        }
        let notes = runs[0].1["notes"].to_string();
        assert!(notes.contains("not sampled in the last") && notes.contains("killed by signal"), "{case}: {notes}");
        assert_eq!(runs[0].1["per_rank"][0]["ended"], "killed", "{case}");
    }
}

#[test]
fn heap_of_a_process_that_is_killed_at_its_peak_is_attributed() {
    let bytes = 8 * SIZE;
    let (status, json, _) = plain("grow-long-killed", bytes);
    assert_eq!(status, -1, "bursar ends by the same signal");
    check_sums("grow-long-killed", &json);
    let peak = |pointer: &str| json.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    assert!(peak("/total_peak_bytes") >= bytes, "{json:#}");
    assert!(peak("/components/application/peak_bytes") >= bytes / 8 * 7, "{json:#}");
}

#[test]
fn a_killed_child_does_not_count_until_the_end() {
    let (_, without, _) = plain("child-killed", 0);
    let (status, with, _) = plain("child-killed", SIZE);
    let total = with["total_peak_bytes"].as_u64().unwrap() - without["total_peak_bytes"].as_u64().unwrap();
    assert!(status == 0 && total.abs_diff(SIZE) <= 3 << 20, "{total}: {with:#}");
}

#[test]
fn hugetlb_pages_are_attributed_though_not_in_the_resident_set() {
    const PAGES: &str = "/proc/sys/vm/nr_hugepages";
    if !is_root() {
        return;
    }
    struct Before(String);
    impl Drop for Before {
        fn drop(&mut self) {
            let _ = std::fs::write(PAGES, &self.0);
        }
    }
    let _alone = (POOL.write().unwrap_or_else(PoisonError::into_inner), huge_pages_alone());
    let before = Before(std::fs::read_to_string(PAGES).unwrap());
    let wanted = before.0.trim().parse::<u64>().unwrap() + SIZE / (2 << 20);
    std::fs::write(PAGES, wanted.to_string()).unwrap();
    let has = std::fs::read_to_string(PAGES).unwrap().trim() == wanted.to_string();
    if need("memory for 32 huge pages", has) {
        check("hugetlb", SIZE, &|bytes| {
            attribute_whatever_the_pool(&[], [program("plain"), "hugetlb".into(), bytes.to_string()])
        });
    }
}

#[test]
fn memory_touched_in_mpi_calls_stays_the_applications() {
    for name in mpis() {
        all(&["receive", "thread-in-barrier", "peer-in-barrier", "messages"], &|case, bytes| mpi(name, 2, case, bytes));
    }
}

#[test]
fn a_receive_buffer_is_mpis_by_touch_and_the_applications_by_owner() {
    for name in mpis() {
        let held = |bytes: u64, component: &str| {
            let (_, json, _) = attribute(&["--by", "touch"], mpi_command(name, 2, "receive", bytes));
            assert_eq!(json["by"], "touch");
            assert!(json["rung"].as_str().unwrap().starts_with("page-fault events"), "{name}: {json:#}");
            assert!(json["allocator_retained"].is_null() && json["libraries"] == Value::Array(Vec::new()), "{json:#}");
            // Rank 1 receives.
            json["per_rank"][1]["components"][component]["heap"].as_u64().unwrap()
        };
        let grown = |component| held(SIZE, component).saturating_sub(held(0, component));
        let (touched, owned) = (grown("mpi"), grown("application"));
        assert!(touched.abs_diff(SIZE) <= tolerance(SIZE), "{name}: by touch mpi has {touched}");
        assert!(owned <= tolerance(SIZE), "{name}: by touch the application has {owned}");
        check("receive", SIZE, &|bytes| mpi(name, 2, "receive", bytes));
    }
}

#[test]
fn by_touch_blames_no_setting_where_seccomp_refuses() {
    if !is_root() {
        return;
    }
    for (filter, number) in [(EPERM, 1), (ENOSYS, 38)] {
        let folder = tempfile::tempdir().unwrap();
        let words = under(filter);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(bursar().get_program()).env("XDG_STATE_HOME", folder.path());
        command.args(["attribute", "-q", "--json", "-", "--by", "touch", "--", "sleep", "0.1"]);
        let (_, json, _) = json_after(&mut command);
        let rung = json["rung"].as_str().unwrap();
        assert!(rung.ends_with(&format!("perf_event_open fails with error {number}")), "{json:#}");
        assert!(!rung.contains("perf_event_paranoid"), "{rung}");
    }
}

#[test]
fn messages_are_counted_by_sender_and_receiver() {
    let prepared = 4 * 4 + 4 * 7;
    for name in mpis() {
        let (_, json, _) = attribute(&["--comm-matrix"], mpi_command(name, 2, "exchange", 5000));
        let matrix = &json["comm_matrix"];
        assert_eq!(matrix["ranks"], json!(["0", "1"]), "{name}: {json:#}");
        assert_eq!(matrix["messages"], json!([[0, 23 + 4 + 4 + 3], [15 + 4 + 4, 0]]), "{name}: {matrix:#}");
        assert_eq!(
            matrix["bytes"],
            json!([[0, 10 * 5000 + 10 * 8 + 3 * 12 + prepared + 3 * 10], [10 * 8 + 5 * 100 + prepared, 0]]),
            "{name}: {matrix:#}"
        );
        assert_eq!(matrix["to_other_worlds"], json!({"messages": 0, "bytes": 0}), "{name}: {matrix:#}");
    }
}

#[test]
fn memory_that_changes_during_a_scan_is_attributed() {
    // The library has 8 MiB.
    for (case, bytes) in [("passing-block", SIZE), ("passing-mappings", 16 << 20), ("passing-library", 8 << 20)] {
        let (status, json, _) = plain(case, bytes);
        assert_eq!(status, 0, "{case}");
        check_sums(case, &json);
        // The memory was seen, perhaps not at its peak.
        assert!(json["total_peak_bytes"].as_u64() > Some(bytes / 4), "{case}: {json:#}");
    }
}

#[test]
fn the_report_of_a_record_repeats_the_components() {
    let folder = tempfile::tempdir().unwrap();
    let reported = |options: &[&str]| {
        let record = folder.path().join(format!("{}.bursar", options.len()));
        let mut command = bursar();
        command.args(["attribute", "-q", "--record"]).arg(&record).args(options).args(["--", "sleep", "0.2"]);
        assert!(command.status().unwrap().success());
        String::from_utf8(bursar().arg("report").arg(&record).output().unwrap().stdout).unwrap()
    };
    let table = |text: &str| text.lines().any(|line| line.starts_with("libc.so.6 "));
    assert!(table(&reported(&["--by-library"])) && !table(&reported(&[])));
}

#[test]
fn memory_from_operator_new_belongs_to_its_caller() {
    let (_, json, _) = attribute(&["--by-library"], [program("thrower"), SIZE.to_string()]);
    let libraries = json["libraries"].as_array().unwrap();
    let heap =
        |name: &str| libraries.iter().find(|of| of["library"] == name).map_or(0, |of| of["heap"].as_u64().unwrap());
    assert!(heap("thrower") >= SIZE, "{json:#}");
    assert!(heap("libstdc++.so.6") < 1 << 20, "{json:#}");
}

#[test]
fn memory_for_windows_and_staging_is_mpis() {
    for name in mpis() {
        all(&["window", "window-shared"], &|case, bytes| mpi(name, 2, case, bytes));
    }
    if mpis().contains(&"mpich") {
        check("staging", 16 << 20, &|bytes| mpi("mpich", 2, "staging", bytes));
    }
}

#[test]
fn memory_from_callbacks_is_the_applications() {
    for name in mpis() {
        all(&["callback"], &|case, bytes| mpi(name, 2, case, bytes));
    }
}

#[test]
fn each_call_counts_once_from_any_entry_point_and_thread() {
    for name in mpis() {
        let (_, json, _) = check("counted", SIZE, &|bytes| mpi(name, 2, "counted", bytes));
        assert_eq!(calls(&json, "MPI_Barrier"), 2 * 300, "{name}: {:#}", json["functions"]);
        let (_, json, _) = check("multiple", SIZE, &|bytes| mpi(name, 2, "multiple", bytes));
        assert_eq!(calls(&json, "MPI_Sendrecv"), 2 * 4 * 1000, "{name}: {:#}", json["functions"]);
    }
}

#[test]
fn time_in_functions_is_reported_on_request() {
    let resting = |options: &[&str]| {
        let options = [options, &["--component", "greedy=libgreedy.so*"]].concat();
        let (status, json, _) = attribute(&options, [program("plain"), "resting".into(), "50".into()]);
        let function = json["functions"].as_array().unwrap().iter().find(|one| one["name"] == "greedy_rest").cloned();
        assert_eq!(status, 0);
        function.unwrap()
    };
    let timed = resting(&["--times"]);
    let seconds = timed["seconds"].as_f64().unwrap();
    assert_eq!(timed["calls"], 4);
    // The processor time is compared with the kernel's figure.
    assert!((0.199..60.0).contains(&seconds), "{timed}");
    assert!(resting(&[])["seconds"].is_null());
}

#[test]
fn fortran_calls_are_counted_by_mpif_h_and_by_the_module() {
    for name in mpis() {
        for language in ["mpif", "f08"] {
            let program = program(&format!("{language}.{name}"));
            if !need("gfortran", Path::new(&program).exists()) {
                return;
            }
            let run = |bytes: u64| attribute(&[], [&format!("mpirun.{name}"), "-n", "2", &program, &bytes.to_string()]);
            let (_, json, _) = check(&program, SIZE, &run);
            assert_eq!(calls(&json, "MPI_Barrier"), 2 * 100, "{program}: {:#}", json["functions"]);
        }
    }
}

#[test]
fn a_failing_job_is_attributed_and_ends_as_without_bursar() {
    for name in mpis() {
        for case in ["exit-in-callback", "abort", "killed", "no-finalize"] {
            let words = mpi_command(name, 2, case, SIZE);
            // MPICH's mpirun reports the rank that exits first, or one that it has ended itself: which one differs from run to run.
            let mut ends = Vec::new();
            while ends.last().is_none_or(|(with, without)| with != without) {
                assert!(ends.len() < RUNS, "{name} {case}: statuses with us and without are {ends:?}");
                let alone = as_root(Command::new(&words[0]).args(&words[1..])).output().unwrap();
                let (status, json, _) = check(case, SIZE, &|bytes| mpi(name, 2, case, bytes));
                assert_eq!(json["ranks"], 2, "{name} {case}: {json:#}");
                ends.push((status, alone.status.code().unwrap_or(-1)));
            }
        }
    }
}

#[test]
fn spawned_ranks_are_attributed() {
    // Debian's MPICH cannot spawn ranks, with or without bursar.
    if mpis().contains(&"openmpi") {
        let (_, json, _) = check("spawn", SIZE, &|bytes| mpi("openmpi", 1, "spawn", bytes));
        let ranks: Vec<_> = json["per_rank"].as_array().unwrap().iter().map(|rank| &rank["world"]).collect();
        assert_eq!((&json["ranks"], ranks), (&json!(2), vec![&json!(1), &json!(2)]), "{json:#}");
    }
}

#[test]
fn an_mpi_opened_and_closed_by_dlopen_is_seen() {
    for (name, library) in [("openmpi", "libmpi.so.40"), ("mpich", "libmpich.so.12")] {
        if mpis().contains(&name) {
            let (status, json, _) = attribute(&[], [program("loader"), library.into()]);
            assert_eq!(status, 0);
            check_sums(library, &json);
            assert_eq!(calls(&json, "MPI_Initialized"), 100, "{library}: {:#}", json["functions"]);
            assert!(json["components"]["mpi"]["peak_bytes"].as_u64() > Some(1 << 20), "{library}: {json:#}");
        }
    }
}

#[test]
fn one_of_the_bursars_under_mpirun_reports_all_ranks() {
    for name in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let (record, json) = (folder.path().join("job.bursar"), folder.path().join("job.json"));
        let mut command = Command::new(format!("mpirun.{name}"));
        command.args(["-n", "2"]).arg(bursar().get_program()).args(["attribute", "-q", "--interval", "20ms"]);
        command.arg("--record").arg(&record);
        command.arg("--json").arg(&json).arg("--").args([
            &program(&format!("mpi.{name}")),
            "receive",
            &SIZE.to_string(),
        ]);
        let output = as_root(&mut command).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let json: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(json["ranks"], 2, "{name}: {json:#}");
        check_sums(name, &json);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "the folder of the logs is gone: {left:?}");
    }
}

#[test]
fn scaling_runs_the_command_for_each_number_of_ranks() {
    for name in mpis() {
        let mut command = mpi_command(name, 1, "receive", 0);
        (command[2], command[4]) = ("{}".into(), "counted".into());
        let (_, json, _) = attribute(&["--scaling", "1,2"], command.clone());
        let ranks: Vec<_> = json["scaling"].as_array().unwrap().iter().map(|run| run["ranks"].as_u64()).collect();
        // The single rank's barriers wait for no other rank, and are counted all the same.
        assert_eq!(ranks, [Some(1), Some(2)], "{json:#}");
    }
}

#[test]
fn other_tools_may_be_preloaded_after_the_library() {
    let other = program("libgreedy.so");
    let mut command = bursar();
    command.args(["attribute", "-q", "--json", "-", "--", "sh", "-c", "echo $LD_PRELOAD"]).env("LD_PRELOAD", &other);
    let (_, json, printed) = json_after(&mut command);
    assert!(printed.trim_end().ends_with(&format!(":{other}")), "{printed}");
    check_sums("sh", &json);
    for name in mpis() {
        let option: &[&str] = if name == "openmpi" { &["-x"] } else { &["-genv"] };
        let value: Vec<String> = if name == "openmpi" {
            vec![format!("LD_PRELOAD={other}")]
        } else {
            vec!["LD_PRELOAD".into(), other.clone()]
        };
        let mut words: Vec<String> = vec![format!("mpirun.{name}")];
        words.extend(option.iter().map(|word| word.to_string()).chain(value));
        words.extend(["-n", "1", "sh", "-c", "echo $LD_PRELOAD"].map(String::from));
        let (_, json, printed) = attribute(&[], words);
        assert!(printed.trim_end().ends_with(&format!(":{other}")), "{name}: {printed}");
        check_sums(name, &json);
    }
}

#[test]
fn every_part_of_a_job_has_the_library_except_the_launcher() {
    for name in mpis() {
        let program = program(&format!("mpi.{name}"));
        let part = ["-n", "1", &program, "receive", "1000"];
        let launcher = format!("mpirun.{name}");
        let (status, json, _) = attribute(&[], [&[&launcher[..]][..], &part, &[":"], &part].concat());
        assert_eq!((status, &json["ranks"]), (0, &2.into()), "{name}: {json:#}");
        assert_eq!(json["other_processes"].as_array().map(Vec::len), Some(0), "{name}: {json:#}");
    }
}

/// A million calls take a minute; run them by hand: `soak 1000000 SEED` under `bursar attribute`.
#[test]
fn a_programs_address_space_is_left_unchanged() {
    for seed in ["1", "2"] {
        let soak = |calls: u64| attribute(&[], [program("soak"), calls.to_string(), seed.into()]);
        let (status, ..) = check("soak", 40_000, &soak);
        assert_eq!(status, 0);
    }
}

/// Another user has no copy of the library yet, and the limit on the file size is smaller than the library.
fn a_library_that_cannot_be_written_leaves_no_files() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bursar = bursar_as_nobody(folder.path());
    let own = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
        path
    };
    // The journal stays; it has a folder of its own.
    let (temporary, runtime) = (own("temporary"), own("runtime"));
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""]).arg(bursar.get_program()).args(bursar.get_args());
    limited.args(["attribute", "--record", "r", "--", "true"]).current_dir(&temporary);
    limited.env("TMPDIR", &temporary).env("XDG_CACHE_HOME", temporary.join("cache"));
    limited.env("XDG_RUNTIME_DIR", runtime);
    let output = limited.output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let left = std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name != "r" && name != "cache").collect();
    assert_eq!(left, [""; 0], "{output:?}");
    assert!(!temporary.join("cache/bursar").exists(), "{output:?}");
}

#[test]
fn a_command_without_the_library_is_reported_in_one_sentence() {
    let fixed = program("static");
    let stderr = |words: &[&str]| {
        let mut command = bursar();
        command.args(["attribute", "--json", "-", "--"]).args(words);
        let output = as_root(&mut command).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        // The report is wrapped: join its lines.
        stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let reports = |words: &[&str], what: &str| {
        let stderr = stderr(words);
        assert!(stderr.contains(what), "{words:?}: {stderr}");
    };
    reports(&[&fixed, "1000"], "is statically linked");
    let quiet = bursar().args(["attribute", "--quiet", "--", &fixed, "1000"]).output().unwrap();
    let quiet = String::from_utf8_lossy(&quiet.stderr);
    assert!(quiet.lines().count() == 1 && quiet.contains("is statically linked"), "{quiet}");
    reports(&["env", "-i", &fixed, "1000"], "ran without the library");
    // The program that starts commands is larger than the limit on the file size.
    let folder = tempfile::tempdir().unwrap();
    let none = format!("ulimit -f 8; exec {} attribute --record r -- true", env!("CARGO_BIN_EXE_bursar"));
    let mut none_starts = Command::new("sh");
    none_starts.args(["-c", &none]).current_dir(folder.path()).env("TMPDIR", folder.path());
    assert_eq!(none_starts.output().unwrap().status.code(), Some(125));
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(|name| name != "r").collect::<Vec<_>>(), [""; 0], "nothing of it is left");
    a_library_that_cannot_be_written_leaves_no_files();
    let limited = format!("ulimit -v 4194304; exec {} attribute -- true 2>&1", env!("CARGO_BIN_EXE_bursar"));
    let limited = Command::new("sh").args(["-c", &limited]).output().unwrap();
    assert!(String::from_utf8_lossy(&limited.stdout).contains("limited to 4.00 GiB"), "{limited:?}");
    let sanitized = stderr(&[&program("sanitized"), "1000"]);
    assert!(sanitized.contains("sanitizer") && !sanitized.contains("does not come first"), "{sanitized}");
    let without = |seconds: f64| format!("(unset LD_PRELOAD; exec sleep {seconds}); true");
    reports(&["sh", "-c", &without(1.5)], "sleep (");
    let large = format!("(unset LD_PRELOAD; exec {} blocks {SIZE}); true", program("plain"));
    reports(&["sh", "-c", &large], "plain (");
    let short = stderr(&["sh", "-c", &without(0.2)]);
    assert!(short.contains("held ") && !short.contains("ran without"), "{short}");
    for name in mpis() {
        reports(&[&format!("mpirun.{name}"), "-n", "1", &fixed, "1000"], "is statically linked");
    }
    let mut command = bursar();
    let output = command.args(["attribute", "--", "no-such-command-anywhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}

#[test]
fn programs_linked_with_musl_are_seen() {
    let musl = program("musl");
    if !need("musl-gcc", Path::new(&musl).exists()) {
        return;
    }
    let (status, json, _) = attribute(&[], [&musl, &SIZE.to_string()]);
    assert_eq!(status, 0, "{json:#}");
    let application = &json["components"]["application"];
    let (peak, at_end) = (application["peak_bytes"].as_u64().unwrap(), application["at_end_bytes"].as_u64().unwrap());
    assert!((SIZE..SIZE + SIZE / 4).contains(&peak), "{json:#}");
    // musl's exit calls _Exit, not _exit.
    assert!(at_end < SIZE / 4, "{json:#}");
    assert_eq!(json["other_processes"].as_array().map(Vec::len), Some(0), "{json:#}");
    for (inside, what) in
        [(&["provision"][..], " from the kernel's huge pages"), (&["advise", "run"], "% of memory huge at most")]
    {
        let output = bursar().args(inside).args(["--", &musl, &SIZE.to_string()]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.contains(what), "{inside:?}: {stderr}");
    }
}

#[test]
fn a_program_run_as_another_user_is_attributed() {
    if !is_root() {
        return;
    }
    let (status, json, _) =
        attribute(&[], ["runuser", "-u", "nobody", "--", &program("plain"), "blocks", &SIZE.to_string()]);
    assert_eq!(status, 0);
    let peak = json["components"]["application"]["peak_bytes"].as_u64().unwrap();
    assert!(peak > SIZE, "{json:#}");
}

#[test]
fn a_daemon_that_drops_its_rights_is_attributed() {
    if is_root() {
        let (status, ..) = check("dropped", SIZE, &|bytes| plain("dropped", bytes));
        assert_eq!(status, 0);
        let mut advised = bursar();
        advised.args(["advise", "run", "-q", "--", &program("plain"), "dropped", &SIZE.to_string()]);
        assert!(advised.output().unwrap().status.success());
    }
}

#[test]
fn a_program_in_valgrind_runs_without_the_library() {
    if !need("valgrind", Command::new("valgrind").arg("--version").output().is_ok()) {
        return;
    }
    for inside in [&["attribute"][..], &["provision"], &["advise", "run"]] {
        let mut command = bursar();
        command.args(inside).args(["--", "valgrind", "-q", "--error-exitcode=9", &program("plain"), "blocks", "1000"]);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && stderr.contains("in valgrind") && !stderr.contains("=="),
            "{inside:?}: {stderr}"
        );
    }
}

/// The kernel refuses a user namespace to a process with several threads.
#[test]
fn a_program_may_enter_a_user_namespace() {
    let unshare = ["unshare", "--user", "--map-root-user"];
    if !need("user namespaces", Command::new(unshare[0]).args(&unshare[1..]).arg("true").status().unwrap().success()) {
        return;
    }
    for inside in [&["attribute", "-q", "--"][..], &["provision", "-q", "--"], &["advise", "run", "-q", "--"]] {
        let mut command = bursar();
        command.args(inside).args(unshare).args([&program("plain"), "blocks", &SIZE.to_string()]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{inside:?}: {output:?}");
    }
    let (_, json, _) = attribute(&[], unshare.into_iter().chain([&*program("plain"), "blocks", &SIZE.to_string()]));
    assert!(json["components"]["application"]["peak_bytes"].as_u64().unwrap() > SIZE, "{json:#}");
}

#[test]
fn a_program_that_enters_seccomp_is_attributed_until_then() {
    for case in ["sandboxed", "sandboxed-all"] {
        let (status, ..) = check(case, SIZE, &|bytes| plain(case, bytes));
        assert_eq!(status, 0, "{case}");
        for command in [&["provision", "-q"][..], &["advise", "run", "-q"]] {
            let mut inside = bursar();
            inside.args(command).args(["--", &program("plain"), case, &SIZE.to_string()]);
            let output = inside.output().unwrap();
            assert!(output.status.success(), "{command:?} {case}: {output:?}");
        }
    }
}

#[test]
fn a_program_without_free_descriptors_is_named_with_the_reason() {
    let (status, json, _) = plain("no-descriptor", SIZE);
    let notes = json["notes"].to_string();
    assert_eq!(status, 0, "{notes}");
    assert_eq!(notes.matches("has no file descriptor left").count(), 1, "{notes}");
    assert!(notes.contains("plain (") && !notes.contains("does not see itself"), "{notes}");
}

#[test]
fn a_time_out_loses_nothing_that_was_logged() {
    let script = format!("{} blocks {SIZE}; sleep 60", program("plain"));
    let (status, json, _) = attribute(&["--timeout", "3s"], ["sh", "-c", &script]);
    assert_eq!(status, 124);
    let peak = json["components"]["application"]["peak_bytes"].as_u64().unwrap();
    assert!(peak > SIZE, "{json:#}");
}

#[test]
fn logs_left_by_a_killed_bursar_can_be_reported() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("job.bursar");
    let mut command = bursar();
    command.args(["attribute", "-q", "--interval", "20ms", "--record"]).arg(&record).args(["--", "sleep", "63"]);
    // The logs of root stay there; beside the record is only a link.
    command.env("TMPDIR", folder.path());
    let mut running = command.spawn().unwrap();
    let logs = || -> Vec<PathBuf> {
        let folders = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        folders.filter(|path| path.extension().is_some_and(|end| end == "run")).collect()
    };
    let has_log = |folder: &PathBuf| std::fs::read_dir(folder).is_ok_and(|entries| entries.count() > 0);
    while !logs().iter().any(has_log) {
        assert!(running.try_wait().unwrap().is_none(), "it ended before its command logged");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    let left = linux::procfs::descendants(running.id() as i32);
    running.kill().unwrap();
    running.wait().unwrap();
    let again = folder.path().join("again.bursar");
    let mut command = bursar();
    command.args(["report", "--json", "-", "--record"]).arg(&again).arg(&logs()[0]);
    let (status, json, _) = json_after(&mut command);
    assert_eq!(status, 0);
    check_sums("sleep", &json);
    assert!(bursar().arg("report").arg(&again).output().unwrap().status.success());
    for sleeper in left {
        let pid = rustix::process::Pid::from_raw(sleeper).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    assert!(bursar().args(["doctor", "--repair"]).output().unwrap().status.success());
}

#[test]
fn real_programs_have_at_most_two_percent_unattributed() {
    let folder = tempfile::tempdir().unwrap();
    let melt = folder.path().join("in.melt");
    std::fs::write(&melt, MELT).unwrap();
    let melt = melt.to_str().unwrap();
    if need("LAMMPS", Command::new("lmp").arg("-help").output().is_ok()) {
        let (status, json, _) = attribute(&[], ["mpirun.openmpi", "-n", "2", "lmp", "-log", "none", "-in", melt]);
        assert_eq!(status, 0);
        check_sums("lmp", &json);
        assert!(calls(&json, "MPI_Sendrecv") + calls(&json, "MPI_Send") > 100, "{:#}", json["functions"]);
    }
    let script = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()";
    // Debian's own Python, for which mpi4py is packaged; PATH may name another first.
    let python = "/usr/bin/python3";
    if need("mpi4py", Command::new(python).args(["-c", "import mpi4py"]).status().is_ok_and(|s| s.success())) {
        let (status, json, _) = attribute(&[], ["mpirun.openmpi", "-n", "2", python, "-c", script]);
        assert_eq!(status, 0);
        check_sums("mpi4py", &json);
        assert_eq!(calls(&json, "MPI_Barrier"), 2, "{:#}", json["functions"]);
    }
}

/// A Lennard-Jones liquid, from LAMMPS's examples.
const MELT: &str = "units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
run 250
";

/// Runs a command in `env LD_PRELOAD=…`: the library has to share that variable with the allocator.
fn with_preload(preload: &str, command: &[String]) -> Run {
    let mut all = bursar();
    all.args(["attribute", "-q", "--json", "-", "--interval", "20ms", "--"]).args(command);
    json_after(all.env("LD_PRELOAD", preload))
}

#[test]
fn heap_of_preloaded_allocators_is_the_applications() {
    let guard = program("allocators/libguard.so");
    for allocator in allocators().iter().chain([&guard]) {
        for way in ["malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "new", "new[]"] {
            let held = |bytes: u64| [program("allocators/held"), way.into(), bytes.to_string()];
            let (status, ..) =
                check(&format!("{allocator}, {way}"), SIZE, &|bytes| with_preload(allocator, &held(bytes)));
            assert_eq!(status, 0, "{allocator}, {way}");
        }
    }
}

#[test]
fn heap_by_operators_of_every_kind_is_the_applications() {
    for program_name in ["allocators/held", "allocators/held-static"] {
        for way in ["new", "nothrow", "aligned"] {
            let held = |bytes: u64| [program(program_name), way.into(), bytes.to_string()];
            check(way, SIZE, &|bytes| attribute(&[], held(bytes)));
            for allocator in allocators() {
                check(&format!("{allocator}, {way}"), SIZE, &|bytes| with_preload(&allocator, &held(bytes)));
            }
        }
    }
}

/// A script that puts its allocator before the library.
#[test]
fn heap_of_an_allocator_before_the_library_is_the_applications() {
    for allocator in allocators() {
        let script = format!("LD_PRELOAD={allocator}:$LD_PRELOAD exec \"$@\"");
        let held = |bytes: u64| {
            let program = program("allocators/held");
            let words = ["sh", "-c", &script, "sh", &program, "new"].map(String::from);
            attribute(&[], words.into_iter().chain([bytes.to_string()]))
        };
        check(&allocator, SIZE, &held);
    }
}

/// Open MPI aborts if variables are given both by its list and by `-x`; an appfile takes no options.
#[test]
fn jobs_described_by_a_list_or_a_file_are_attributed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs").display().to_string();
    for name in mpis() {
        let program = program(&format!("mpi.{name}"));
        std::fs::write(&file, format!("-n 2 {program} receive 1000\n")).unwrap();
        let option = if name == "openmpi" { "--app" } else { "-configfile" };
        let (status, json, _) = attribute(&[], [&*format!("mpirun.{name}"), option, &file]);
        assert_eq!((status, json["per_rank"].as_array().unwrap().len()), (0, 2), "{name}: {json:#}");
    }
    if mpis().contains(&"openmpi") {
        let mut all = bursar();
        all.args(["attribute", "-q", "--json", "-", "--", "mpirun.openmpi", "-n", "2"]);
        all.args([&program("mpi.openmpi"), "receive", "1000"]).env("OMPI_MCA_mca_base_env_list", "FOO=1");
        let (status, json, _) = json_after(as_root(&mut all));
        assert_eq!((status, json["per_rank"].as_array().unwrap().len()), (0, 2), "{json:#}");
    }
}

/// The memory just before its blocks cannot be read.
#[test]
fn memory_before_blocks_of_a_guarding_malloc_is_not_read() {
    let (status, ..) =
        check("guarded", SIZE, &|bytes| attribute(&[], [program("allocators/guarded"), bytes.to_string()]));
    assert_eq!(status, 0);
}

/// The child grows and shrinks before it has a log.
#[test]
fn a_forked_child_that_shrinks_at_once_keeps_its_owners() {
    check("forked", SIZE, &|bytes| attribute(&[], [program("allocators/forked"), bytes.to_string()]));
}

#[test]
fn the_last_of_many_objects_has_its_component() {
    let folder = tempfile::tempdir().unwrap();
    let count = 300;
    for number in 1..=count {
        std::fs::copy(program("libgreedy.so"), folder.path().join(format!("{number}.so"))).unwrap();
    }
    let many = |bytes: u64| {
        let words = [program("allocators/many"), folder.path().display().to_string(), count.to_string()];
        attribute(&["--component", "late=libobtain.so"], words.into_iter().chain([bytes.to_string()]))
    };
    check("many", SIZE, &many);
}

/// Runs `reached`; its two libraries are components.
fn reached(case: &str, bytes: u64) -> Run {
    let components =
        ["--component", "plug=libplug.so", "--component", "plug=libdeep.so", "--component", "back=libback.so"];
    attribute(&components, [program("reached/reached"), case.into(), bytes.to_string()])
}

#[test]
fn functions_called_through_pointers_belong_to_their_library() {
    all(&["block", "small", "copy", "text", "array", "given-back", "mapping"], &reached);
}

#[test]
fn memory_from_code_that_a_component_calls_back_is_the_programs() {
    all(&["called", "called-strdup", "called-string", "called-in-a-thread", "called-in-a-comparison"], &reached);
    all(&["called-plug"], &reached);
}

#[test]
fn libraries_opened_with_rtld_deepbind_are_attributed() {
    all(&["deep-block", "deep-small", "deep-copy", "deep-text", "deep-array", "deep-crossing"], &reached);
}

/// Both a tool before MPI's functions and the library see each call once, in either order of preloading.
#[test]
fn tools_before_mpi_see_the_same_calls_as_without_bursar() {
    for name in mpis() {
        let (tool, program) = (program(&format!("tool.{name}.so")), program(&format!("mpi.{name}")));
        let launch = [&*format!("mpirun.{name}"), "-n", "2"].map(String::from);
        let run = |script: &str| {
            let words = ["sh", "-c", script, "sh", &program, "counted", "1000"].map(String::from);
            launch.iter().cloned().chain(words).collect::<Vec<String>>()
        };
        let stderr = |printed: &str| {
            let mut lines: Vec<String> =
                printed.lines().filter(|line| line.starts_with("tool ")).map(String::from).collect();
            lines.sort();
            lines
        };
        let alone = run(&format!("LD_PRELOAD={tool} exec \"$@\""));
        let alone = as_root(Command::new(&alone[0]).args(&alone[1..])).output().unwrap();
        let alone = stderr(&String::from_utf8_lossy(&alone.stdout));
        assert_eq!(alone.len(), 2, "{name}: {alone:?}");
        let (_, plain, _) = mpi(name, 2, "counted", 1000);
        for list in [format!("{tool}:$LD_PRELOAD"), format!("$LD_PRELOAD:{tool}")] {
            let (status, json, printed) = attribute(&[], run(&format!("LD_PRELOAD={list} exec \"$@\"")));
            assert_eq!((status, stderr(&printed)), (0, alone.clone()), "{name}: {list}");
            for function in ["MPI_Barrier", "MPI_Init", "MPI_Finalize"] {
                assert_eq!(calls(&json, function), calls(&plain, function), "{name}: {function}, {list}: {json:#}");
            }
        }
    }
}

/// The library's path does not exist in the mount namespace of the program.
#[test]
fn a_mount_namespace_without_the_library_is_in_the_first_line() {
    let hides = "mount -t tmpfs none /var/cache && exec \"$@\"";
    let can = Command::new("unshare").args(["-m", "sh", "-c", hides, "sh", "true"]).output();
    if !need("unshare -m", is_root() && can.is_ok_and(|output| output.status.success())) {
        return;
    }
    let mut command = bursar();
    command.args(["attribute", "--json", "-", "--", "unshare", "-m", "sh", "-c", hides, "sh", &program("plain")]);
    let output = command.args(["blocks", &SIZE.to_string()]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("ld.so"), "{stderr}");
    let first = stderr.lines().find(|line| line.starts_with("held ")).unwrap_or_default();
    assert!(first.contains("without 6") && first.contains("plain ("), "{stderr}");
    let stderr = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stderr.contains("plain (") && stderr.contains("into its mount namespace"), "{stderr}");
}

/// The first line of a run of a script that its first argument selects a part of.
fn first_line_of(script: &str, part: &str) -> String {
    let output = bursar().args(["attribute", "--", "python3", "-c", script, part]).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    printed.lines().find(|line| line.starts_with("held ")).unwrap_or_else(|| panic!("{printed}")).to_string()
}

/// Both have the name of the process that forked them.
const CHILDREN: &str = "
import os, sys, time
if not os.fork():
    if sys.argv[1] == 'exec':
        os.execve(sys.executable, [sys.executable, '-c', \"held = b'x' * (60 << 20); import time; time.sleep(0.5)\"], {})
    held = b'x' * (60 << 20)
    os._exit(0)
os.wait()
";

#[test]
fn a_child_without_a_log_is_in_the_first_line_whatever_its_name() {
    for part in ["exec", "fork"] {
        if part == "fork" && !need("exit records, for a child of milliseconds", is_root()) {
            continue;
        }
        let first = first_line_of(CHILDREN, part);
        assert!(first.contains(", without 6") && first.contains(" MiB of python3"), "{part}: {first}");
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_is_attributed() {
    all(&["first-thread-ends"], &plain);
}

/// Behind chroot there is no /proc either, so the process cannot be scanned before it becomes that program.
#[test]
fn a_program_behind_chroot_is_named_in_the_first_line() {
    if !is_root() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let put = |path: &Path, name: &str| {
        let to = root.path().join(name.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(path, to).unwrap();
    };
    let libraries = Command::new("ldd").arg(program("plain")).output().unwrap();
    for word in String::from_utf8_lossy(&libraries.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
        put(Path::new(word), word);
    }
    put(Path::new(&program("plain")), "plain");
    let mut command = bursar();
    command.args(["attribute", "--json", "-", "--", "chroot"]).arg(root.path()).args(["/plain", "blocks"]);
    // Without /proc the loader does not know the program's folder.
    command.arg(SIZE.to_string()).env("LD_LIBRARY_PATH", programs());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("ld.so"), "{stderr}");
    let first = stderr.lines().find(|line| line.starts_with("held ")).unwrap_or_default();
    assert!(first.contains("without 6") && first.contains("plain ("), "{stderr}");
}

#[test]
fn blocks_from_an_allocators_own_functions_are_unattributed() {
    if !need("libjemalloc.so.2", Path::new(&program("allocators/named")).exists()) {
        return;
    }
    let (status, json, _) = attribute(&[], [program("allocators/named"), SIZE.to_string()]);
    let unattributed = json["unattributed_peak_bytes"].as_u64().unwrap();
    assert!(status == 0 && unattributed.abs_diff(SIZE) <= 4 << 20, "{unattributed}: {json:#}");
    let notes = json["notes"].to_string();
    assert!(notes.contains("named calls mallocx of libjemalloc.so.2"), "{notes}");
}

/// What a run prints on standard error, joined into one line.
fn printed_words<I: AsRef<OsStr>>(options: &[&str], command: impl IntoIterator<Item = I>) -> String {
    let mut all = bursar();
    let output = all.arg("attribute").args(options).arg("--").args(command).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.status.success(), "{stderr}");
    stderr
}

/// The first line: up to the figures of the components.
fn first_words(stderr: &str) -> &str {
    let from = stderr.find("held ").unwrap_or_default();
    stderr[from..].split("; at their own peaks").next().unwrap_or_default()
}

/// Two such processes at once have the same PIDs inside their namespaces.
#[test]
fn processes_in_pid_namespaces_are_in_the_figures() {
    if !can_unshare(&PID_NAMESPACE[1..]) {
        return;
    }
    let (plain, inside) = (program("plain"), PID_NAMESPACE.join(" "));
    let script = format!("{inside} {plain} blocks {SIZE} & {inside} {plain} blocks {} & wait", SIZE / 2);
    let (status, json, _) = attribute(&[], ["sh", "-c", &script]);
    assert_eq!((status, &json["without_library"]), (0, &json!([])), "{json:#}");
    let ranks = json["per_rank"].as_array().unwrap().iter();
    let is_plain = |rank: &&Value| rank["command"].as_str().is_some_and(|command| command.ends_with("/plain"));
    let held = ranks.filter(is_plain).map(|rank| {
        assert!(rank["pid"].as_u64().unwrap() > 2, "the PID outside the namespace: {rank:#}");
        rank["total_peak_bytes"].as_u64().unwrap() / (SIZE / 2)
    });
    let mut held: Vec<u64> = held.collect();
    held.sort();
    assert_eq!(held, [1, 2], "{json:#}");
    assert!(!json["notes"].to_string().contains("ran without the library"), "{json:#}");
}

#[test]
fn a_static_program_in_a_pid_namespace_is_in_the_first_line() {
    if !can_unshare(&PID_NAMESPACE[1..]) {
        return;
    }
    let script = format!("(unset LD_PRELOAD; exec {} blocks {SIZE}); true", program("plain"));
    let stderr = printed_words(&[], PID_NAMESPACE.into_iter().chain(["sh", "-c", &script]));
    assert!(first_words(&stderr).contains("of plain (") && first_words(&stderr).contains("without 6"), "{stderr}");
}

#[test]
fn within_a_pid_namespace_no_process_is_missing() {
    if !can_unshare(&PID_NAMESPACE[1..]) {
        return;
    }
    let mut command = Command::new(PID_NAMESPACE[0]);
    command.args(&PID_NAMESPACE[1..]).args([env!("CARGO_BIN_EXE_bursar"), "attribute", "--json", "-", "--"]);
    let (status, json, _) = json_after(command.arg(program("plain")).args(["blocks", &SIZE.to_string()]));
    assert_eq!((status, &json["without_library"]), (0, &json!([])), "{json:#}");
    assert!(json["components"]["application"]["peak_bytes"].as_u64().unwrap() > SIZE, "{json:#}");
}

#[test]
fn another_host_name_or_boot_time_hides_no_process() {
    let options = ["--uts", "--time", "--boottime", "100000", "--fork"];
    if !can_unshare(&options) {
        return;
    }
    let script = format!("hostname elsewhere; exec {} blocks {SIZE}", program("plain"));
    let words = ["unshare"].into_iter().chain(options).chain(["sh", "-c", &script]);
    let (status, json, _) = attribute(&[], words);
    assert_eq!((status, &json["without_library"]), (0, &json!([])), "{json:#}");
    assert!(!json["notes"].to_string().contains("ran without the library"), "{json:#}");
    assert!(json["per_rank"].as_array().unwrap().iter().any(|rank| rank["host"] == "elsewhere"), "{json:#}");
}

#[test]
fn processes_that_outlive_the_command_are_in_the_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let (number, quiet) = (folder.path().join("pid").display().to_string(), ">/dev/null 2>&1");
    let starts = [
        format!("setsid sleep 60 {quiet} & echo $! >{number}"),
        format!("nohup sleep 60 {quiet} & echo $! >{number}"),
        format!("(sleep 60 {quiet} & echo $! >{number})"),
    ];
    for start in starts {
        let stderr = printed_words(&[], ["sh", "-c", &start]);
        let pid = std::fs::read_to_string(&number).unwrap();
        assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success(), "{start}: it went on");
        let first = first_words(&stderr);
        // The process may not have called exec yet: its name is not asserted.
        assert!(first.contains(", until the command ended: ") && first.contains(" went on"), "{start}: {stderr}");
    }
}

#[test]
fn a_component_pattern_that_matches_nothing_is_named() {
    let options = ["--component", "greedy=libgreedy.so*", "--component", "wrong=libgredy*"];
    let stderr = printed_words(&options, [program("plain"), "blocks".into(), "1000".into()]);
    assert!(stderr.contains("--component wrong=libgredy* matches no shared object"), "{stderr}");
    assert!(
        stderr.contains("near it are libgreedy.so") && !stderr.contains("greedy=libgreedy.so* matches"),
        "{stderr}"
    );
    let mut many = bursar();
    many.arg("attribute").args((0..15).flat_map(|n| ["--component".into(), format!("c{n}=lib{n}.so")]));
    let output = many.args(["--", "true"]).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("at most 14"), "{output:?}");
    let output = bursar().args(["attribute", "--scaling", "1,2", "--", "true"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("the command has no {}"), "{output:?}");
}

#[test]
fn many_libraries_are_summarised_and_indistinct_ones_named() {
    let folder = tempfile::tempdir().unwrap();
    let count = 300;
    for number in 1..=count {
        std::fs::copy(program("libgreedy.so"), folder.path().join(format!("{number}.so"))).unwrap();
    }
    let words = [program("allocators/many"), folder.path().display().to_string(), count.to_string(), SIZE.to_string()];
    let stderr = printed_words(&["--by-library"], words.clone());
    assert!(stderr.contains(" more ") && stderr.contains("(not known which)"), "{stderr}");
    assert!(stderr.contains("by library: at most") && stderr.contains("that of "), "{stderr}");
    let (_, json, _) = attribute(&["--by-library"], words.clone());
    let libraries = json["libraries"].as_array().unwrap();
    let largest = libraries.iter().find(|library| library["library"] == "libobtain.so");
    assert!(largest.is_some_and(|library| library["bytes"].as_u64() >= Some(SIZE)), "{json:#}");
    let (_, without, _) = attribute(&[], words);
    assert!(!without["notes"].to_string().contains("by library"), "{without:#}");
}
