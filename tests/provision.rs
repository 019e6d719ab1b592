//! `bursar provision`: the launcher, with statistics that processes report and with programs that end badly.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use support::pool::Pool;
use support::{PID_NAMESPACE, Programs, bursar, can_unshare, json_after, need};

const MIB: u64 = 1 << 20;
const MPIS: [&str; 2] = ["openmpi", "mpich"];

fn program(name: &str) -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| support::make("programs/provision")).join(name).display().to_string()
}

/// A command with an empty folder of pools, whatever pools the machine has.
fn provision(options: &[&str], command: &[&str]) -> Command {
    static POOLS: OnceLock<tempfile::TempDir> = OnceLock::new();
    let pools = POOLS.get_or_init(|| tempfile::tempdir().unwrap());
    let mut all = bursar();
    all.arg("provision").args(options).arg("--").args(command).env("BURSAR_POOLS", pools.path());
    // Open MPI needs these to run as root, and with fewer processors than ranks.
    all.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    all.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    all
}

fn run(options: &[&str], command: &[&str]) -> Output {
    provision(options, command).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The entry of the process that reports by the test's own calls; the runtime in it may have added another.
fn by_hand(stats: &Value) -> &Value {
    let mut processes = stats["processes"].as_array().unwrap().iter();
    processes.find(|process| process["executable"] == "by-hand").unwrap_or_else(|| panic!("{stats:#}"))
}

#[test]
fn repair_removes_the_folder_of_a_killed_provision() {
    let place = tempfile::tempdir().unwrap();
    let left = || {
        let names = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("bursar-provision-")).count()
    };
    let mut killed = provision(&["-q"], &["sh", "-c", "echo begun; cat"]);
    killed.env("TMPDIR", place.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut killed = killed.spawn().unwrap();
    let mut printed = BufReader::new(killed.stdout.take().unwrap());
    printed.read_line(&mut String::new()).unwrap();
    let input = killed.stdin.take();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(left(), 1, "after SIGKILL nothing cleans up");
    // The command runs on without bursar, to its end.
    drop(input);
    printed.read_to_string(&mut String::new()).unwrap();
    let repaired = bursar().args(["doctor", "--repair"]).env("TMPDIR", place.path()).output().unwrap();
    assert!(repaired.status.success(), "{}", stderr(&repaired));
    assert_eq!(left(), 0);
}

#[test]
fn statistics_have_the_fields_of_the_runtimes_header() {
    let (status, stats, before) = json_after(&mut provision(&["--stats", "-"], &[&program("tell"), "12345"]));
    assert_eq!((status, before.as_str()), (0, "told\n"));
    let process = by_hand(&stats);
    for (name, value) in [
        ("rank", json!(3)),
        ("node", json!(1)),
        ("leased_bytes", json!(64 << 20)),
        ("pool_bytes_peak", json!(32 << 20)),
        ("demand_bytes_peak", json!(12345)),
        ("served_bytes", json!(48 << 20)),
        ("start_seconds", json!(0.001)),
        ("lease_seconds", json!(0.002)),
        ("populate_seconds", json!(0.003)),
        ("zeroed_bytes", json!(40)),
        ("zeroed_beside_bytes", json!(50)),
        ("forks", json!(5)),
        ("fallbacks", json!(6)),
        ("failed", json!(7)),
        ("copied_bytes", json!(60)),
        ("unwritten_bytes", json!(70)),
        ("left_alone", Value::Null),
    ] {
        assert_eq!(process[name], value, "{name}: {process:#}");
    }
    let reasons = [
        "small",
        "reserved",
        "stack",
        "fixed",
        "code",
        "kind",
        "edge",
        "exhausted",
        "cap",
        "no_pool",
        "taken_back",
        "forked",
        "advised",
    ];
    for (number, reason) in reasons.iter().enumerate() {
        assert_eq!(process["passed_to_linux"][reason], json!({ "calls": 100 + number, "bytes": 1000 + number }));
    }
    assert_eq!(process["passed_to_linux"].as_object().unwrap().len(), reasons.len());
    for name in ["pool_bytes_peak", "populate_seconds", "served_bytes", "fallbacks"] {
        assert!(stats[name].as_f64() >= process[name].as_f64(), "{name} of all is the sum: {stats:#}");
    }
    assert!(stats["wall_seconds"].as_f64() > Some(0.0) && stats["before_exec_seconds"].as_f64() > Some(0.0));
    assert!(stats["pool"].is_null() && stats["exit_status"] == 0);
    let contract = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md")).unwrap();
    for name in stats.as_object().unwrap().keys().chain(process.as_object().unwrap().keys()) {
        assert!(contract.contains(&format!("`{name}`")), "docs/json.md does not name {name}");
    }
}

#[test]
fn page_faults_are_counted_over_the_whole_job() {
    let faults = |script: &str| {
        let (_, stats, _) = json_after(&mut provision(&["--stats", "-"], &["sh", "-c", script]));
        stats["page_faults"].as_u64()
    };
    let (one, several) = (faults("true"), faults("sh -c true; sh -c true; sh -c true; sh -c true"));
    if need("perf_event_open", one.is_some()) {
        assert!(several > one, "{several:?} of five shells, {one:?} of one");
    }
}

#[test]
fn output_status_and_signals_are_the_commands_own() {
    let output = run(&[], &["sh", "-c", "cat; echo out; echo err >&2; exit 7"]);
    assert_eq!((output.status.code(), printed(&output).as_str()), (Some(7), "out\n"));
    assert!(stderr(&output).starts_with("err\n"), "{}", stderr(&output));
    let killed = run(&["-q"], &["sh", "-c", "kill -TERM $$"]);
    assert_eq!((killed.status.signal(), stderr(&killed).as_str()), (Some(15), ""));
    for (command, status) in [("no-such-command-anywhere", 127), ("/etc/passwd", 126)] {
        let output = run(&[], &[command]);
        assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(status), 1), "{}", stderr(&output));
    }
}

#[test]
fn a_signal_to_bursar_reaches_the_command() {
    let script = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut running = provision(&["-q"], &["sh", "-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(running.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let bursar = rustix::process::Pid::from_raw(running.id() as i32).unwrap();
    rustix::process::kill_process(bursar, rustix::process::Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "caught");
    assert_eq!(running.wait().unwrap().code(), Some(3));
}

#[test]
fn a_program_has_the_same_results_as_without_bursar() {
    for bytes in ["0", "1000", "1000000", "300000000"] {
        let plain = Command::new(program("asks")).arg(bytes).output().unwrap();
        let output = run(&[], &[&program("asks"), bytes]);
        assert_eq!((printed(&output), output.status), (printed(&plain), plain.status), "{}", stderr(&output));
    }
}

#[test]
fn the_environment_has_the_runtimes_options() {
    let show = "echo $BURSAR_POOL_SIZE,$BURSAR_POOL_FAIL,$BURSAR_PIN,$BURSAR_POOL,$BURSAR_PROVISION";
    let output = run(&["-q", "--size", "64M", "--pin", "--on-exhaustion", "fail"], &["sh", "-c", show]);
    let folder = std::env::temp_dir().join("bursar-provision-").display().to_string();
    assert!(printed(&output).starts_with(&format!("67108864,1,1,,{folder}")), "{}", printed(&output));
    let output = run(&["-q"], &["sh", "-c", show]);
    assert!(printed(&output).starts_with(&format!(",,,,{folder}")), "{}", printed(&output));
    let folder = printed(&run(&["-q"], &["sh", "-c", "echo $BURSAR_PROVISION"]));
    assert!(!Path::new(folder.trim()).exists(), "the folder is removed at the end");
}

#[test]
fn a_missing_or_silent_pool_is_refused_before_the_command_runs() {
    let pools = tempfile::tempdir().unwrap();
    let asked = |name: &str| {
        let mut command = provision(&["--pool", name], &["echo", "ran"]);
        let output = command.env("BURSAR_POOLS", pools.path()).output().unwrap();
        assert_eq!((output.status.code(), printed(&output).as_str()), (Some(125), ""), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        stderr(&output)
    };
    assert!(asked("hpc").contains("there is no pool 'hpc'") && asked("hpc").contains("bursar pool create"));
    std::fs::create_dir(pools.path().join("silent")).unwrap();
    std::fs::write(pools.path().join("silent/pool.json"), "{}").unwrap();
    assert!(asked("hpc").contains("there are: silent"));
    assert!(asked("silent").contains("the broker of pool silent does not answer"));
    for wrong in ["", "../silent"] {
        assert!(asked(wrong).contains(&format!("'{wrong}' is no name for a pool: write letters")));
    }
    let output = provision(&[], &["true"]).env("BURSAR_POOLS", pools.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "without --pool no pool is needed");
}

#[test]
fn programs_that_cannot_be_served_run_and_are_reported() {
    for (name, why) in [("static", "statically linked"), ("go", "Go program"), ("sanitized", "sanitizer")] {
        let output = run(&[], &[&program(name), "1000000"]);
        assert_eq!(
            (output.status.code(), printed(&output).as_str()),
            (Some(0), "245\n"),
            "{name}: {}",
            stderr(&output)
        );
        assert!(stderr(&output).contains(why), "{name}: {}", stderr(&output));
        let quiet = stderr(&run(&["--quiet"], &[&program(name), "1000000"]));
        assert!(quiet.lines().count() == 1 && quiet.contains(why), "{name}: {quiet}");
    }
}

#[test]
fn around_a_launcher_every_rank_is_reported() {
    for mpi in MPIS.map(|mpi| format!("mpirun.{mpi}")) {
        if !need(&mpi, Command::new(&mpi).arg("--version").output().is_ok()) {
            continue;
        }
        let (status, stats, printed) =
            json_after(&mut provision(&["-q", "--stats", "-"], &[&mpi, "-n", "2", &program("tell"), "1"]));
        assert_eq!((status, printed.matches("told").count()), (0, 2), "{mpi}: {stats:#}");
        let reports =
            stats["processes"].as_array().unwrap().iter().filter(|process| process["executable"] == "by-hand");
        assert_eq!(reports.count(), 2, "{mpi}: {stats:#}");
    }
}

#[test]
fn under_a_launcher_every_rank_writes_its_own_statistics() {
    let bursar = assert_cmd::cargo::cargo_bin("bursar").display().to_string();
    for mpi in MPIS.map(|mpi| format!("mpirun.{mpi}")) {
        if !need(&mpi, Command::new(&mpi).arg("--version").output().is_ok()) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let stats = folder.path().join("stats.json").display().to_string();
        let mut command = Command::new(&mpi);
        command.args(["-n", "2", &bursar, "provision", "--stats", &stats, "--", &program("tell"), "1"]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{mpi}: {}", stderr(&output));
        for rank in 0..2 {
            let text = std::fs::read_to_string(format!("{stats}.{rank}")).unwrap();
            by_hand(&serde_json::from_str(&text).unwrap());
            assert!(stderr(&output).contains(&format!("rank {rank}: ")), "{mpi}: {}", stderr(&output));
        }
        assert!(!Path::new(&stats).exists());
    }
}

#[test]
fn pool_size_counts_programs_that_run_together() {
    let budget = |script: &str| {
        let mut command = bursar();
        command.args(["pool", "size", "--json", "-", "--", "sh", "-c", script]);
        let (status, json, _) = json_after(&mut command);
        assert_eq!(status, 0);
        json["pool_bytes"].as_u64().unwrap()
    };
    let tell = program("tell");
    let one = budget(&format!("{tell} {} 0.5", 100 * MIB));
    assert_eq!(one, 128 * MIB, "in whole segments of 64 MiB");
    let after = budget(&format!("{tell} {} 0.5; {tell} {} 0.5", 100 * MIB, 100 * MIB));
    assert_eq!(after, one);
    let beside = budget(&format!("{tell} {} 0.5 & {tell} {} 0.5; wait", 100 * MIB, 100 * MIB));
    assert_eq!(beside, 2 * one);
    let output = bursar().args(["pool", "size", "-q", "--", &program("static"), "1000000"]).output().unwrap();
    assert!(
        stderr(&output).lines().count() == 1 && stderr(&output).contains("statically linked"),
        "{}",
        stderr(&output)
    );
}

/// Both have PID 1 in their namespaces, and begin at the same time.
#[test]
fn pool_size_adds_programs_of_two_pid_namespaces() {
    if !can_unshare(&PID_NAMESPACE[1..]) {
        return;
    }
    let one = format!("{} {} {} 0.5", PID_NAMESPACE.join(" "), program("tell"), 100 * MIB);
    let script = format!("{one} & {one} & wait");
    let words = ["pool", "size", "--json", "-", "--", "sh", "-c", &script];
    let mut within = Command::new(PID_NAMESPACE[0]);
    within.args(&PID_NAMESPACE[1..]).arg(env!("CARGO_BIN_EXE_bursar"));
    for mut command in [bursar(), within] {
        let (status, json, _) = json_after(command.args(words));
        assert_eq!((status, json["pool_bytes"].as_u64()), (0, Some(256 * MIB)), "{json:#}");
    }
}

#[test]
fn the_default_pool_is_used_if_its_broker_answers() {
    let Some(pool) = Pool::create() else { return };
    for options in [&["--stats", "-"][..], &["--pool", "default", "--stats", "-"]] {
        let mut command = provision(options, &[&program("asks"), &(64 * MIB).to_string()]);
        let (status, stats, printed) = json_after(pool.with(&mut command));
        assert_eq!((status, printed.as_str(), &stats["pool"]), (0, "16384\n", &json!("default")));
        let peak = stats["pool_bytes_peak"].as_u64().unwrap();
        assert!((64 * MIB..=128 * MIB).contains(&peak), "{stats:#}");
    }
}

#[test]
fn pool_memory_that_is_never_written_is_reported() {
    let Some(pool) = Pool::create() else { return };
    let bytes = |mib: u64| (mib * MIB).to_string();
    let run = |options: &[&str], words: &[&str]| {
        let output = pool.with(&mut provision(options, words)).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let over = program("over");
    let figures = |words: &[&str]| json_after(pool.with(&mut provision(&["--quiet", "--stats", "-"], words))).1;
    // Reported when the pool is exhausted, and at the end if it is not.
    for (later, empties) in [(60, true), (0, false)] {
        let words = [over.as_str(), &bytes(100), &bytes(5), &bytes(later)];
        let unwritten = figures(&words)["unwritten_bytes"].as_u64().unwrap();
        assert!((90 * MIB..=96 * MIB).contains(&unwritten), "{unwritten}");
        let (status, text) = run(&[], &words);
        assert_eq!(status, Some(0));
        assert!(text.contains("from the pool was never written: the program asks for more than it uses"), "{text}");
        assert_eq!(text.contains("what came later found the pool empty for it"), empties, "{text}");
    }
    assert_eq!(figures(&[&over, &bytes(100), &bytes(100), "0"])["unwritten_bytes"], 0);
    let (_, text) = run(&[], &[&over, &bytes(100), &bytes(100), "0"]);
    assert!(!text.contains("never written"), "{text}");
}

#[test]
fn copies_for_children_of_a_threaded_process_are_reported() {
    let Some(pool) = Pool::create() else { return };
    let words = [program("threads"), (64 * MIB).to_string(), "3".into()];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (status, stats, printed) = json_after(pool.with(&mut provision(&["--stats", "-"], &words)));
    assert_eq!((status, printed.as_str()), (0, "forked\n"));
    let copied = stats["copied_bytes"].as_u64().unwrap();
    assert!((3 * 64 * MIB..=3 * 70 * MIB).contains(&copied), "{stats:#}");
    let text = stderr(&pool.with(&mut provision(&[], &words)).output().unwrap());
    assert!(text.contains("each child of a process with several threads has a copy of all"), "{text}");
    let text = stderr(&pool.with(&mut provision(&[], &[&program("asks"), "67108864"])).output().unwrap());
    assert!(!text.contains("copied at forks"), "{text}");
}

#[test]
fn a_failed_request_counts_towards_the_demand() {
    let Some(pool) = Pool::create() else { return };
    let words = [&program("over"), &(100 * MIB).to_string(), "1", &(60 * MIB).to_string()].map(|word| word.to_string());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = provision(&["--stats", "-", "--on-exhaustion", "fail"], &words);
    let (status, stats, _) = json_after(pool.with(&mut command));
    let demand = stats["demand_bytes_peak"].as_u64().unwrap();
    assert!(status == 1 && stats["failed"].as_u64().unwrap() > 0 && demand > 128 * MIB, "{stats:#}");
}

/// Asserts that each byte is zero, and then overwrites it. Waits after each release, so that the memory is cleared meanwhile.
const USES_AGAIN: &str = "
import mmap, time
for i in range(60):
    memory = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    assert memory[:] == bytes(4 << 20)
    memory[:] = b'x' * (4 << 20)
    memory.madvise(mmap.MADV_DONTNEED)
    assert memory[:] == bytes(4 << 20)
    memory[:] = b'y' * (4 << 20)
    memory.close()
    time.sleep(0.01)
print('zero')";

#[test]
fn freed_memory_is_zeroed_while_the_program_runs() {
    let Some(pool) = Pool::create() else { return };
    let can = std::thread::available_parallelism().unwrap().get() > 1;
    // The helper runs only where a processor is idle: one of a few runs must show it.
    for tries in 1.. {
        let mut command = provision(&["--stats", "-"], &["python3", "-c", USES_AGAIN]);
        let (status, stats, printed) = json_after(pool.with(&mut command));
        assert_eq!((status, printed.as_str()), (0, "zero\n"), "{stats:#}");
        let figure = |name: &str| stats[name].as_u64().unwrap();
        assert!(figure("zeroed_bytes") >= 16 * MIB, "memory is cleared: {stats:#}");
        if !can || figure("zeroed_beside_bytes") > 0 {
            assert_eq!(can, stats["zeroing_cpu_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{stats:#}");
            break;
        }
        assert!(tries < 20, "{stats:#}");
    }
    let alone = ["taskset", "-c", "0", "sh", "-c", "exit 3"];
    let mut command = std::process::Command::new(alone[0]);
    let bursar = provision(&["--stats", "-"], &alone[3..]);
    command.args(&alone[1..3]).arg(bursar.get_program()).args(bursar.get_args());
    let (status, stats, _) = json_after(pool.with(&mut command));
    assert_eq!((status, &stats["zeroing_cpu_seconds"]), (3, &Value::Null), "with a single processor: {stats:#}");
}

#[test]
fn pool_memory_has_a_line_of_its_own_in_the_report() {
    let Some(pool) = Pool::create() else { return };
    let (programs, socket) = (Programs::build(), pool.socket());
    let script = format!("sleep 1 | {} {} {} 1 -1", programs.lease(), socket.display(), 64 * MIB);
    let mut command = bursar();
    let (status, account, _) = json_after(command.args(["run", "--json", "-", "--", "sh", "-c", &script]));
    assert_eq!((status, account["peak_breakdown"]["hugetlb"].as_u64()), (0, Some(64 * MIB)), "{account:#}");
    let output = bursar().args(["run", "-v", "--", "sh", "-c", &script]).output().unwrap();
    assert!(stderr(&output).contains("huge pages (pool) 64.0 MiB"), "{}", stderr(&output));
}
