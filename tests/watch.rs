//! `bursar watch` on programs whose working set is known.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{Programs, bursar, bursar_as_nobody, huge_pages_alone, is_root, need};

const MIB: u64 = 1 << 20;

/// Touches 48 MiB in a loop, and has 16 MiB more that it does not touch.
const ROUND: &str = "
import mmap, sys, time
rest = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE); rest[::4096] = b'x' * (len(rest) // 4096)
memory = mmap.mmap(-1, 48 << 20, mmap.MAP_PRIVATE)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    memory[::4096] = b'x' * (len(memory) // 4096)
sys.exit(7)
";

/// Touches 32 MiB in a loop, then 128 MiB, for the same time each.
const TWO_PHASES: &str = "
import mmap, sys, time
for size in (32, 128):
    memory = mmap.mmap(-1, size << 20, mmap.MAP_PRIVATE)
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        memory[::4096] = b'x' * (len(memory) // 4096)
";

/// Reads 80 MiB repeatedly in a file on tmpfs, in a memfd or on disk, or touches it through a mapping.
const IN_FILE: &str = "
import mmap, os, sys, time
kind, path = sys.argv[1:]
file = os.memfd_create('held') if kind == 'memfd' else os.open(path, os.O_RDWR | os.O_CREAT)
for _ in range(80):
    os.write(file, b'x' * (1 << 20))
mapping = mmap.mmap(file, 80 << 20) if kind == 'mapped' else None
buffer = bytearray(64 << 10)
end = time.monotonic() + 5
while time.monotonic() < end:
    if mapping:
        mapping[::4096]
        continue
    for at in range(0, 80 << 20, len(buffer)):
        os.preadv(file, [buffer], at)
# Python would unmap the file some time before it closes it.
os._exit(0)
";

/// Fills so many MiB, prints a line, and then touches the first so many every 50 ms, for so many seconds.
const MOSTLY_COLD: &str = "
import mmap, sys, time
all, hot, seconds = (int(word) for word in sys.argv[1:])
memory = mmap.mmap(-1, all << 20, mmap.MAP_PRIVATE)
memory[::4096] = b'x' * (len(memory) // 4096)
print('filled', flush=True)
end = time.monotonic() + seconds
while time.monotonic() < end:
    memory[:hot << 20:4096] = b'x' * (hot << 8)
    time.sleep(0.05)
";

/// Size in MiB, period and length in seconds.
const EACH_BURSTS: [(u64, &str, &str); 3] = [(64, "0.2", "5"), (100, "1", "7"), (200, "3", "16")];

/// The working sets of the intervals. Those with late scans, as on a busy machine, are lower bounds and left out.
fn sizes_of(intervals: &[Value]) -> Vec<u64> {
    for interval in intervals.iter().filter(|interval| is_late(interval)) {
        assert_eq!(interval["wss_is_lower_bound"], true, "{interval}");
    }
    intervals.iter().filter_map(|interval| interval["wss_bytes"].as_u64()).collect()
}

fn is_late(interval: &Value) -> bool {
    interval["scans_late_seconds"].as_f64().unwrap() >= 0.1
}

/// The largest working sets so far.
fn peaks_of(intervals: &[Value]) -> Vec<u64> {
    intervals.iter().filter_map(|interval| interval["peak_wss_bytes"].as_u64()).collect()
}

/// The working sets of the intervals of a program with bursts of this kind.
fn burst_working_sets(
    options: &[&str],
    kind: &str,
    mib: u64,
    period: &str,
    seconds: &str,
    file: Option<&str>,
) -> Vec<u64> {
    let programs = Programs::build();
    let size = mib.to_string();
    let json = tempfile::NamedTempFile::new().unwrap();
    let path = json.path().display().to_string();
    // The bursts wait for the first interval: on a busy machine tracking begins seconds after the command.
    let script = format!("until [ -s {path} ]; do sleep 0.1; done; exec \"$0\" \"$@\"");
    let command = ["--json", &path, "--", "sh", "-c", &script, programs.bursts(), kind, &size, period, seconds];
    let output = watch(&[options, &command, file.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    sizes_of(&intervals(&std::fs::read(json.path()).unwrap()))
}

/// The same as a user without root, and the printed lines.
fn burst_working_sets_as_nobody(kind: &str, mib: u64, period: &str, seconds: &str) -> (Vec<u64>, String) {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bursts");
    support::copy_program(programs.bursts().as_ref(), &program);
    let mut command = bursar_as_nobody(folder.path());
    command.args(["watch", "--json", "-", "--"]).arg(program).args([kind, &mib.to_string(), period, seconds]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let json: Vec<&str> = printed.lines().filter(|line| line.starts_with('{')).collect();
    (sizes_of(&intervals(json.join("\n").as_bytes())), String::from_utf8(output.stderr).unwrap())
}

fn is_within(per_cent: u64, sizes: &[u64], mib: u64) -> bool {
    sizes.last().is_some_and(|last| last.abs_diff(mib * MIB) * 100 <= mib * MIB * per_cent)
}

/// Whether it prints that the program needs so much; at least so much, if scans came late.
fn needs(text: &str, size: &str) -> bool {
    text.contains(&format!("needs about {size}"))
        || text.contains(&format!("needs at least {size}")) && text.contains("scans came up to")
}

fn watch(arguments: &[&str]) -> Output {
    bursar().arg("watch").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn report(arguments: &[&str]) -> Output {
    bursar().arg("report").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// A record of that program, and the lines and the JSON that were printed meanwhile.
fn recorded(folder: &Path, arguments: &[&str], seconds: &str) -> (String, String, String) {
    let (record, json) = (folder.join("watched.bursar"), folder.join("live.json"));
    let (record, json) = (record.display().to_string(), json.display().to_string());
    let output = watch(
        &[
            arguments,
            &["--interval", "200ms", "--record", &record, "--json", &json, "--", "python3", "-c", TWO_PHASES, seconds],
        ]
        .concat(),
    );
    assert!(output.status.success(), "{output:?}");
    (record, String::from_utf8(output.stderr).unwrap(), std::fs::read_to_string(json).unwrap())
}

fn intervals(output: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_working_set_of_a_loop_is_its_size() {
    let output = bursar()
        .args(["watch", "--interval", "500ms", "--json", "-", "--", "python3", "-c", ROUND, "6"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let intervals = intervals(&output.stdout);
    assert!(intervals.len() >= 4, "{intervals:?}");
    let is_right = |interval: &&Value| {
        let wss = interval["wss_bytes"].as_u64();
        wss.is_some_and(|wss| (40 * MIB..64 * MIB).contains(&wss))
    };
    let right = intervals.iter().filter(is_right).count();
    assert!(right >= 2, "{right} of {}: {intervals:?}", intervals.len());
    let lines = String::from_utf8(output.stderr).unwrap();
    assert!(needs(&lines, "") && lines.contains("scanning costs"), "{lines}");
}

#[test]
fn a_command_shorter_than_an_interval_gets_advice_to_use_run() {
    for seconds in ["0", "0.3"] {
        let output = watch(&["--interval", "5s", "--", "sleep", seconds]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && printed.contains("`bursar run -- COMMAND` measures"), "{printed}");
        assert!(printed.contains("the memory that it needs is unknown"), "{printed}");
    }
    let output = watch(&["--quiet", "--", "true"]);
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn reports_that_watching_began_late() {
    let output = watch(&["--interval", "5s", "--", "sleep", "1"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    let watched = printed.lines().find_map(|line| line.strip_prefix("watched for ")?.split(';').next()).unwrap();
    let (figure, unit) = watched.split_once(' ').unwrap();
    let watched = figure.parse::<f64>().unwrap() * if unit == "ms" { 1e-3 } else { 1.0 };
    assert!(watched > 0.85 || printed.contains("watching began "), "{printed}");
}

#[test]
fn memory_touched_in_bursts_is_in_the_working_set() {
    let watched = |options: &[&str], (mib, period, seconds)| {
        let sizes = burst_working_sets(options, "pages", mib, period, seconds, None);
        assert!(is_within(5, &sizes, mib), "{options:?}, {mib} MiB each {period} s: {sizes:?}");
    };
    std::thread::scope(|scope| {
        for bursts in EACH_BURSTS {
            scope.spawn(move || watched(&[], bursts));
            scope.spawn(move || watched(&["--always"], bursts));
        }
    });
}

#[test]
fn a_file_mapping_touched_in_bursts_is_in_the_working_set() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let watched = |path: &Path, (mib, period, seconds)| {
        std::fs::write(path, vec![7; (mib * MIB) as usize]).unwrap();
        let sizes = burst_working_sets(&[], "file", mib, period, seconds, path.to_str());
        assert!(is_within(5, &sizes, mib), "{mib} MiB each {period} s: {sizes:?}");
    };
    std::thread::scope(|scope| {
        for bursts in EACH_BURSTS {
            let path = folder.path().join(bursts.0.to_string());
            scope.spawn(move || watched(&path, bursts));
        }
    });
}

/// The intervals of a program that maps a file of 100 MiB and touches all of it within `lasts` seconds, every 3 s, beginning after
/// `seconds`.
fn late_bursts(seconds: &str, path: &str, lasts: &str) -> Vec<Value> {
    let programs = Programs::build();
    let bursts = programs.bursts();
    let json = tempfile::NamedTempFile::new().unwrap();
    let script = format!("sleep {seconds}; exec {bursts} file 100 3 13 {path} {lasts}");
    let output = watch(&["--quiet", "--json", json.path().to_str().unwrap(), "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    intervals(&std::fs::read(json.path()).unwrap())
}

#[test]
fn bursts_are_found_whenever_they_begin() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // As many at a time as there are processors. Each tracker has its own file, because a file that is mapped twice is swept.
    for at_once in [["0.5", "1"], ["1.5", "2"], ["2.5", "3"]] {
        std::thread::scope(|scope| {
            for seconds in at_once {
                let path = folder.path().join(seconds);
                std::fs::write(&path, vec![7; 100 << 20]).unwrap();
                scope.spawn(move || {
                    let intervals = late_bursts(seconds, path.to_str().unwrap(), "0");
                    let sizes = sizes_of(&intervals);
                    assert!(is_within(5, &sizes, 100) && !sizes.contains(&0), "began after {seconds} s: {sizes:?}");
                    assert_no_partial_working_set(&intervals, 92);
                });
            }
        });
    }
}

#[test]
fn bursts_of_two_programs_in_one_file_are_in_the_working_set() {
    if !is_root() {
        return;
    }
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(&file, vec![7; 100 << 20]).unwrap();
    let path = file.path().to_str().unwrap();
    std::thread::scope(|scope| {
        for seconds in ["1.5", "3"] {
            scope.spawn(move || {
                let intervals = late_bursts(seconds, path, "0");
                let sizes = sizes_of(&intervals);
                assert!(is_within(8, &sizes, 100) && !sizes.contains(&0), "began after {seconds} s: {sizes:?}");
                // Some pages are known only by sweeps.
                assert_no_partial_working_set(&intervals, 85);
            });
        }
    });
}

/// Asserts, of a program that touches 100 MiB in bursts, that no interval has a working set below `least` MiB; before it begins, almost
/// none.
fn assert_no_partial_working_set(intervals: &[Value], least: u64) {
    let is_sure = |interval: &&Value| interval["wss_is_lower_bound"] == false;
    let known = |interval: &Value| interval["wss_bytes"].as_u64();
    let part = intervals.iter().filter(is_sure).filter_map(known).find(|wss| (4 * MIB..least * MIB).contains(wss));
    let of_program =
        intervals.iter().filter(is_sure).filter(|interval| interval["touched_bytes"].as_u64() > Some(8 * MIB));
    let little = of_program.filter_map(known).find(|wss| *wss < least * MIB);
    let figures = ["time", "wss_bytes", "touched_bytes", "blind_bytes", "tracking", "scans_late_seconds"];
    let figures: Vec<_> =
        intervals.iter().map(|interval| figures.map(|name| interval[name].to_string()).join(" ")).collect();
    assert!(part.is_none() && little.is_none(), "{part:?} {little:?}\n{}", figures.join("\n"));
}

#[test]
fn a_part_of_a_burst_is_never_the_working_set() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Intervals end, and tracking is switched off and on, during the bursts.
    for at_once in [["0.5", "1", "1.5"], ["2", "2.5", "3"]] {
        std::thread::scope(|scope| {
            for (seconds, lasts) in at_once.into_iter().zip(["0.3", "0.8", "1.5"]) {
                let path = folder.path().join(seconds);
                std::fs::write(&path, vec![7; 100 << 20]).unwrap();
                scope.spawn(move || {
                    let intervals = late_bursts(seconds, path.to_str().unwrap(), lasts);
                    assert_no_partial_working_set(&intervals, 92);
                    let whole = sizes_of(&intervals).into_iter().any(|wss| (95 * MIB..105 * MIB).contains(&wss));
                    assert!(whole || intervals.iter().any(is_late), "{seconds} s, {lasts} s: {intervals:?}");
                });
            }
        });
    }
}

/// Asserts a working set of `hot` MiB: never much more, and from interval `from` on never less or unknown. Python needs a little, too.
fn assert_working_set_is_hot(intervals: &[Value], hot: u64, from: usize) {
    let known = |interval: &Value| interval["wss_bytes"].as_u64();
    let least = (hot - hot / 10) * MIB;
    let most = (hot + hot / 10 + 6) * MIB;
    let sizes: Vec<_> = intervals.iter().map(known).collect();
    assert!(sizes.len() > from, "{sizes:?}");
    assert!(sizes.iter().flatten().all(|wss| *wss <= most), "{sizes:?}");
    // While scans come late, a part may be missing; in the last interval the program ends.
    let intervals = intervals[from..sizes.len() - 1].iter().filter(|interval| !is_late(interval));
    assert!(intervals.map(known).all(|wss| wss.is_some_and(|wss| wss >= least)), "{sizes:?}");
}

#[test]
fn memory_filled_before_watching_is_not_in_the_working_set() {
    if !is_root() {
        return;
    }
    for (options, all, hot) in [(&["--always"][..], "200", 20), (&[][..], "150", 50)] {
        let mut program = Command::new("python3")
            .args(["-c", MOSTLY_COLD, all, &hot.to_string(), "8"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let pid = program.id().to_string();
        let output = watch(&[&["--json", "-", "--quiet", "--intrusive", "--pid", &pid], options].concat());
        assert!(program.wait().unwrap().success() && output.status.success(), "{output:?}");
        assert_working_set_is_hot(&intervals(&output.stdout), hot, 3);
    }
}

#[test]
fn reclaimed_file_pages_stay_in_the_working_set() {
    let Ok(tree) = linux::cgroup::Tree::find() else { return };
    let dir = tree.point().join(format!("watch-limit-{}", std::process::id()));
    if !is_root() || !need("a memory cgroup that can be written", std::fs::create_dir(&dir).is_ok()) {
        return;
    }
    let names = ["memory.limit_in_bytes", "memory.max"];
    let limit = names.into_iter().map(|name| dir.join(name)).find(|path| path.exists()).unwrap();
    std::fs::write(limit, (60 * MIB).to_string()).unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    // The program writes the file, so that its pages are charged to its cgroup.
    let programs = Programs::build();
    let bursts = programs.bursts();
    let script = format!(
        "echo $$ >{}/cgroup.procs; head -c 100M /dev/zero >{path}; exec {bursts} file 100 2 12 {path}",
        dir.display(),
        path = path.display()
    );
    let output = watch(&["--quiet", "--json", "-", "--", "sh", "-c", &script]);
    // The program prints its faults.
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().filter(|line| line.starts_with('{')).collect();
    let sizes = peaks_of(&intervals(lines.join("\n").as_bytes()));
    while std::fs::remove_dir(&dir).is_err() && dir.exists() {
        std::thread::yield_now();
    }
    assert!(!sizes.contains(&0) && is_within(10, &sizes, 100), "{printed}");
}

#[test]
fn files_in_memory_make_the_working_set_a_lower_bound() {
    let watched = |kind: &str, folder: &str| {
        let file = tempfile::NamedTempFile::new_in(folder).unwrap();
        let path = file.path().to_str().unwrap();
        // Memory that was accessed once at the start leaves the working set after eight intervals.
        let output = watch(&["--interval", "400ms", "--json", "-", "--", "python3", "-c", IN_FILE, kind, path]);
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stderr).unwrap();
        let last = intervals(&output.stdout).into_iter().rfind(|interval| !interval["wss_bytes"].is_null());
        (last.unwrap_or_else(|| panic!("{lines}")), lines, path.to_string())
    };
    for kind in ["tmpfs", "memfd"] {
        let (last, lines, path) = watched(kind, "/dev/shm");
        let name = if kind == "memfd" { "/memfd:held (deleted)" } else { &path };
        assert_eq!(last["files_in_memory_bytes"], 80 * MIB, "{kind}: {lines}");
        assert!(last["wss_is_lower_bound"] == true && last["largest_file_in_memory"] == name, "{last}");
        let says = format!(", and up to 80.0 MiB more: reads and writes of files in memory ({name}) are not seen");
        assert!(lines.contains("needs at least ") && lines.contains(&says), "{kind}: {lines}");
        let unseen = lines.lines().filter(|line| line.contains(&says));
        assert!(
            unseen.clone().count() > 0 && unseen.clone().all(|line| !line.contains("would cost")),
            "{kind}: {lines}"
        );
    }
    for (kind, folder) in [("disk", env!("CARGO_TARGET_TMPDIR")), ("mapped", "/dev/shm")] {
        let (last, lines, _) = watched(kind, folder);
        assert!(last["wss_is_lower_bound"] == is_late(&last) && last["files_in_memory_bytes"] == 0, "{kind}: {lines}");
        // An interval may have ended before the file was mapped.
        assert!(
            !lines.lines().rfind(|line| line.contains(" touched")).unwrap().contains("are not seen"),
            "{kind}: {lines}"
        );
        if is_root() {
            let wss = last["wss_bytes"].as_u64().unwrap();
            assert!((72 * MIB..96 * MIB).contains(&wss), "{kind}: {lines}");
        }
    }
}

#[test]
fn without_root_bursts_are_complete_or_unknown() {
    if !is_root() {
        return;
    }
    let watched = |mib, period, seconds| {
        let (sizes, lines) = burst_working_sets_as_nobody("pages", mib, period, seconds);
        let first = lines.lines().find(|line| line.starts_with("1 s")).unwrap_or_default();
        assert!(first.contains("its need is unknown yet; it accessed"), "{lines}");
        for size in &sizes {
            assert!(is_within(10, &[*size], mib), "{mib} MiB each {period} s: {lines}");
        }
        !sizes.is_empty()
    };
    // Reading smaps is rationed: beside other work the figures can stay unknown for long.
    let is_known = |mib, period| ["20", "80"].into_iter().any(|seconds| watched(mib, period, seconds));
    std::thread::scope(|scope| {
        for (mib, period, _) in EACH_BURSTS {
            scope.spawn(move || assert!(is_known(mib, period), "{mib} MiB each {period} s: unknown for 80 s"));
        }
    });
}

#[test]
fn huge_pages_make_the_working_set_an_upper_bound() {
    if !is_root() {
        return;
    }
    let _alone = huge_pages_alone();
    let programs = Programs::build();
    let command = ["--json", "-", "--", programs.bursts(), "sparse", "256", "0.2", "5"];
    let output = watch(&command);
    let lines = String::from_utf8(output.stderr).unwrap();
    let upper = |line: &str| {
        line.contains("an upper bound: ") && line.contains("are huge pages, each of which counts as a whole")
    };
    assert!(lines.lines().any(upper), "{lines}");
    let small = watch(&["--json", "-", "--", programs.bursts(), "pages", "64", "0.2", "3"]);
    let lines = String::from_utf8(small.stderr).unwrap();
    assert!(needs(&lines, "") && !lines.contains("upper bound"), "{lines}");
}

#[test]
fn a_worker_that_forked_twice_is_watched() {
    if !is_root() {
        return;
    }
    let bursts = Programs::build().bursts().to_string();
    let script = format!("setsid sh -c '{bursts} pages 100 0.2 4 >/dev/null &' & sleep 5");
    let output = watch(&["--json", "-", "--", "sh", "-c", &script]);
    let sizes = peaks_of(&intervals(&output.stdout));
    assert!(is_within(5, &sizes, 100), "{sizes:?} {output:?}");
    let lines = String::from_utf8(output.stderr).unwrap();
    assert!(!lines.contains("runs on"), "{lines}");
}

#[test]
fn a_daemon_that_outlives_the_command_is_named() {
    let bursts = Programs::build().bursts().to_string();
    let script = format!("setsid {bursts} pages 8 0.2 4 >/dev/null 2>&1 & sleep 1");
    let output = watch(&["--quiet", "--json", "-", "--interval", "200ms", "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    let output = watch(&["--interval", "200ms", "--", "sh", "-c", &script]);
    let lines = String::from_utf8(output.stderr).unwrap();
    assert!(lines.contains("(bursts) it has left runs on") && lines.contains("bursar watch --intrusive"), "{lines}");
}

#[test]
fn a_worker_that_left_the_tree_but_not_the_cgroup_is_named() {
    let Ok(tree) = linux::cgroup::Tree::find() else { return };
    let dir = tree.point().join(format!("watch-test-{}", std::process::id()));
    if !need("a memory cgroup that can be written", std::fs::create_dir(&dir).is_ok()) {
        return;
    }
    let script = "echo $$ > $0/cgroup.procs; setsid sh -c 'sleep 60 &'; exec sleep 61";
    let mut supervisor = Command::new("sh").args(["-c", script]).arg(&dir).spawn().unwrap();
    let pid = supervisor.id().to_string();
    let mut watched = bursar()
        .args(["watch", "--intrusive", "--interval", "100ms", "--pid", &pid])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(watched.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("not watched: process")
        && text.lines().count() < 50
        && printed.read_line(&mut text).unwrap() > 0
    {}
    watched.kill().unwrap();
    watched.wait().unwrap();
    let members = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap();
    members.lines().for_each(|pid| _ = Command::new("kill").arg(pid).status());
    supervisor.wait().unwrap();
    while std::fs::remove_dir(&dir).is_err() && dir.exists() {
        std::thread::yield_now();
    }
    let expected = format!("(sleep) in the same cgroup, not beneath process {pid}");
    assert!(text.contains(&expected) && text.contains(&dir.display().to_string()), "{text}");
}

/// A threaded cgroup and the root of its domain, in any v2 hierarchy; removed when dropped.
struct ThreadedCgroup(std::path::PathBuf);

impl ThreadedCgroup {
    fn make() -> Option<ThreadedCgroup> {
        let points = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(Path::new);
        let point = points.into_iter().find(|dir| dir.join("cgroup.threads").exists())?;
        let domain = point.join(format!("watch-threads-{}", std::process::id()));
        let inner = domain.join("inner");
        std::fs::create_dir_all(&inner).ok()?;
        let made = ThreadedCgroup(domain);
        std::fs::write(inner.join("cgroup.type"), "threaded").ok().map(|()| made)
    }
}

impl Drop for ThreadedCgroup {
    fn drop(&mut self) {
        let removed = |dir: &Path| std::fs::remove_dir(dir).is_ok() || !dir.exists();
        while !removed(&self.0.join("inner")) || !removed(&self.0) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_threaded_cgroup_is_watched_by_its_processes() {
    let made = ThreadedCgroup::make();
    if !need("a cgroup v2 hierarchy that can be written", made.is_some()) {
        return;
    }
    let threaded = made.unwrap();
    let inner = threaded.0.join("inner");
    let programs = Programs::build();
    let script = "echo $$ >$0/cgroup.procs && echo $$ >$0/inner/cgroup.threads && exec $1 pages 64 0.2 60";
    let mut program = Command::new("sh")
        .args(["-c", script])
        .arg(&threaded.0)
        .arg(programs.bursts())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !std::fs::read_to_string(inner.join("cgroup.threads")).unwrap().contains(&program.id().to_string()) {
        assert!(program.try_wait().unwrap().is_none());
    }
    let mut watched =
        bursar().args(["watch", "--intrusive", "--cgroup"]).arg(&inner).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(watched.stdout.take().unwrap());
    let mut text = String::new();
    while !needs(&text, "6") && text.lines().count() < 20 && printed.read_line(&mut text).unwrap() > 0 {}
    let refused = bursar().args(["balance", "--total", "1G", "--dry-run"]).arg(&inner).output().unwrap();
    watched.kill().unwrap();
    watched.wait().unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    let note = format!("{} is a threaded cgroup: the processes with threads in it are watched", inner.display());
    assert!(text.starts_with(&note) && needs(&text, "6"), "{text}");
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(complaint.contains(&format!("charged to {}", threaded.0.display())), "{complaint}");
}

#[test]
fn a_foreign_process_is_watched_only_with_intrusive() {
    let mut other = Command::new("python3").args(["-c", ROUND, "60"]).spawn().unwrap();
    let pid = other.id().to_string();
    let refused = bursar().args(["watch", "--pid", &pid]).output().unwrap();
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(125) && complaint.contains("--intrusive"), "{complaint}");
    let mut watched = bursar()
        .args(["watch", "--intrusive", "--interval", "200ms", "--pid", &pid])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(watched.stdout.take().unwrap());
    let mut text = String::new();
    while text.lines().count() < 3 && printed.read_line(&mut text).unwrap() > 0 {}
    other.kill().unwrap();
    other.wait().unwrap();
    std::io::Read::read_to_string(&mut printed, &mut text).unwrap();
    assert!(watched.wait().unwrap().success());
    assert!(text.lines().count() >= 3 && text.contains("touched"), "{text}");
}

#[test]
fn the_summary_is_printed_once() {
    let mut other = Command::new("python3").args(["-c", ROUND, "60"]).spawn().unwrap();
    let mut watched = bursar()
        .args(["watch", "--intrusive", "--interval", "500ms", "--pid", &other.id().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(watched.stdout.take().unwrap());
    let mut text = String::new();
    while text.lines().count() < 3 && printed.read_line(&mut text).unwrap() > 0 {}
    assert!(Command::new("kill").args(["-INT", &watched.id().to_string()]).status().unwrap().success());
    std::io::Read::read_to_string(&mut printed, &mut text).unwrap();
    assert!(watched.wait().unwrap().success());
    other.kill().unwrap();
    other.wait().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (intervals, summary) = lines.split_at(lines.iter().position(|line| !line.contains(" touched")).unwrap());
    let times: Vec<_> = intervals.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(times.len() >= 3 && times.windows(2).all(|pair| pair[0] != pair[1]), "{text}");
    assert!(summary.len() == 2 && summary[0].contains("need") && summary[1].starts_with("watched for "), "{text}");
    let quiet = watch(&["-q", "--", "sleep", "0.1"]);
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
}

#[test]
fn a_missing_target_is_reported() {
    for (arguments, expected) in
        [(["--pid", "4194304"], "no process"), (["--cgroup", "/sys/fs/cgroup/no-such-group"], "no-such-group")]
    {
        let output = bursar().arg("watch").args(arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(125) && complaint.contains(expected), "{complaint}");
    }
    let missing = bursar().args(["watch", "--", "/no/such/command"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127), "{missing:?}");
}

#[test]
fn tracking_stops_on_a_steady_program_and_resumes_on_change() {
    let folder = tempfile::tempdir().unwrap();
    let (_, lines, json) = recorded(folder.path(), &[], "7");
    let intervals = intervals(json.as_bytes());
    let wss = |interval: &Value| interval["wss_bytes"].as_u64().unwrap_or(0);
    let tracking = |interval: &Value| interval["tracking"].as_bool().unwrap();
    let is_small = |interval: &Value| (24 * MIB..48 * MIB).contains(&wss(interval));
    let is_large = |interval: &Value| (100 * MIB..180 * MIB).contains(&wss(interval));
    // Tracking is off in an interval of each phase, and the second one has the second phase's working set.
    let small = intervals.iter().position(|interval| !tracking(interval) && is_small(interval));
    let small = small.unwrap_or_else(|| panic!("{lines}"));
    let on_again = intervals[small..].iter().position(|interval| tracking(interval) && is_large(interval));
    let on_again = small + on_again.unwrap_or_else(|| panic!("{lines}"));
    assert!(intervals[on_again..].iter().any(|interval| !tracking(interval) && is_large(interval)), "{lines}");
    assert!(intervals[small..].iter().any(|interval| interval["new_phase"] == true), "{lines}");
    assert!(lines.contains("tracking is on") && lines.contains("tracking is off"), "{lines}");
}

#[test]
fn a_replay_repeats_the_output_and_makes_reports() {
    let folder = tempfile::tempdir().unwrap();
    let (record, lines, json) = recorded(folder.path(), &[], "2");
    let again = report(&["--replay", "--quiet", &record, "--json", "-"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), json);
    let again = report(&["--replay", &record]);
    let again = String::from_utf8(again.stdout).unwrap();
    let details = lines.strip_prefix(&again).unwrap_or_else(|| panic!("{again}\n{lines}"));
    assert_eq!(details, format!("details: bursar report {record}\n"));
    let page = folder.path().join("page.html");
    let report = bursar().arg("report").arg(&record).output().unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.starts_with("needs a") && needs(&text, "") && text.contains("working set"), "{text}");
    assert!(bursar().arg("report").arg(&record).arg("--html").arg(&page).status().unwrap().success());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("plot-heat") && page.contains("plot-working-set"));
}

#[test]
fn a_cut_or_foreign_record_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let fails = |file: &str, expected: &str| {
        let output = report(&["--replay", file]);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(125) && complaint.contains(expected), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert!(complaint.matches("os error").count() <= 1, "the cause is printed once: {complaint}");
    };
    fails(&path("missing"), "could not be opened");
    std::fs::write(path("empty"), "").unwrap();
    fails(&path("empty"), "is empty");
    std::fs::write(path("foreign"), "GIF89a, and so on").unwrap();
    fails(&path("foreign"), "is not a bursar record");
    let run = bursar().args(["run", "-q", "--record", &path("run"), "--", "true"]).status().unwrap();
    assert!(run.success());
    fails(&path("run"), "is not a record of `bursar watch --record FILE`");

    // A killed watch keeps its intervals, and the replay ends there.
    let mut watched = bursar()
        .args(["watch", "--interval", "200ms", "--record", &path("cut"), "--"])
        .args(["sh", "-c", "echo $$; exec python3 -c \"$0\" 60", ROUND])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    BufReader::new(watched.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let lines = BufReader::new(watched.stderr.take().unwrap()).lines().take(4).count();
    watched.kill().unwrap();
    watched.wait().unwrap();
    assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
    assert_eq!(lines, 4);
    let whole = std::fs::read(path("cut")).unwrap();
    std::fs::write(path("cut"), &whole[..whole.len() - 7]).unwrap();
    let output = report(&["--replay", &path("cut")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("cut short") && text.contains("touched"), "{text}");
    std::fs::write(path("cut"), &whole[..10]).unwrap();
    fails(&path("cut"), "cut short before its header");
}

#[test]
fn an_unwritable_json_does_not_end_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let ended = folder.path().join("ended");
    let script = format!("touch {}; sleep 1; touch {}", begun.display(), ended.display());
    let output = watch(&["--interval", "100ms", "--json", "/nonexistent/file", "--", "sh", "-c", &script]);
    assert!(output.status.code() == Some(125) && !begun.exists(), "{output:?}");
    // The error is found while the command runs, and after it has ended.
    for interval in ["100ms", "1min"] {
        let output = watch(&["--interval", interval, "--json", "/dev/full", "--", "sh", "-c", &script]);
        assert!(output.status.code() == Some(125) && ended.exists(), "{output:?}");
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains("No space left"), "{complaint}");
        std::fs::remove_file(&ended).unwrap();
    }
}

#[test]
fn a_fully_tracked_record_is_replayed_at_all_thresholds() {
    let folder = tempfile::tempdir().unwrap();
    let (record, _, json) = recorded(folder.path(), &["--always"], "3");
    assert!(intervals(json.as_bytes()).iter().all(|interval| interval["tracking"] == true));
    let page = folder.path().join("page.html");
    let output = report(&["--phases", &record, "--json", "-", "--html", page.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let replay: Value = serde_json::from_slice(&output.stdout).unwrap();
    let arms = replay["arms"].as_array().unwrap();
    let names: Vec<_> = arms.iter().map(|arm| arm["threshold"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "adaptive"]);
    assert_eq!((arms[0]["up_ratio"].as_f64(), arms[0]["mean_relative_error"].as_f64()), (Some(1.0), Some(0.0)));
    assert!(arms[7]["up_ratio"].as_f64().unwrap() < 1.0, "{arms:?}");
    assert!(std::fs::read_to_string(page).unwrap().contains("plot-0"));
    let text = report(&["--phases", &record]);
    assert!(String::from_utf8(text.stdout).unwrap().contains("adaptive"));
}

#[test]
fn a_partly_tracked_record_cannot_be_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let (record, lines, _) = recorded(folder.path(), &[], "3");
    assert!(lines.contains("tracking is off"), "{lines}");
    let output = report(&["--phases", &record]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(125) && complaint.contains("--always"), "{complaint}");
}

/// Starts bursar on a terminal, closes the terminal when a file has content, and prints bursar's status and CPU time.
const CLOSES: &str = "
import os, pty, resource, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
os.set_blocking(terminal, False)
while not (os.path.exists(sys.argv[1]) and os.path.getsize(sys.argv[1])):
    try: os.read(terminal, 65536)
    except BlockingIOError: time.sleep(0.01)
    except OSError: break
os.close(terminal)
_, status = os.waitpid(pid, 0)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)
";

#[test]
fn a_hang_up_ends_the_command_unless_it_ignores_the_hang_up() {
    let folder = tempfile::tempdir().unwrap();
    let (begun, json) = (folder.path().join("begun"), folder.path().join("intervals.json"));
    let closes = |file: &Path, options: &[&str], script: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", CLOSES]).arg(file).args([env!("CARGO_BIN_EXE_bursar"), "watch"]).args(options);
        command.args(["--", "sh", "-c", script]).output().unwrap()
    };
    let ended = closes(&begun, &[], &format!("echo begun >{}; exec sleep 600", begun.display()));
    assert!(ended.stdout.starts_with(b"-1 "), "by the hang-up: {ended:?}");
    // The program ends after ten intervals, most of them after the terminal was closed.
    let script = format!(
        "trap '' HUP; echo started; for i in $(seq 200); do sleep 0.5; test $(wc -l <{}) -ge 10 && exit 3; done; exit 4",
        json.display()
    );
    let output = closes(&json, &["--interval", "500ms", "--json", json.to_str().unwrap()], &script);
    let printed = String::from_utf8(output.stdout).unwrap();
    let (status, cpu) = printed.trim().split_once(' ').unwrap_or_else(|| panic!("{printed} {:?}", output.stderr));
    assert_eq!(status, "3", "4: no intervals after the terminal was closed");
    assert!(cpu.parse::<f64>().unwrap() < 2.0, "reading from a closed terminal takes {cpu} s of 5");
}

/// Only root can scan a program that its user may run but not read.
#[test]
fn a_command_that_cannot_be_watched_runs_to_its_end() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unreadable = folder.path().join("sh");
    let bursar = folder.path().join("bursar");
    for (from, to, mode) in
        [(Path::new("/bin/sh"), &unreadable, 0o711), (Path::new(env!("CARGO_BIN_EXE_bursar")), &bursar, 0o755)]
    {
        std::fs::copy(from, to).unwrap();
        std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&bursar)
        .args(["watch", "--"])
        .arg(&unreadable)
        .args(["-c", "sleep 1; echo done; exit 7"])
        .env("HOME", folder.path())
        .current_dir("/")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), b"done\n".as_slice()), "{errors}");
    assert!(errors.contains("the command goes on, and is not watched"), "{errors}");
}
