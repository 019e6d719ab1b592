//! `bursar balance` on real cgroups, with swap of its own.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::zram::Zram;
use support::{bursar, bursar_as_nobody, is_root, need};

const MIB: u64 = 1 << 20;

/// Writes to all pages of so many MiB repeatedly, in random order or in sequence.
const CHANGES: &str = "
import mmap, random, sys
kind, size = sys.argv[1], int(sys.argv[2]) << 20
memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE)
noise = random.randbytes(4096)
for at in range(0, size, 4096): memory[at:at + 4096] = noise
pages = size // 4096
draw = random.Random(1).random
while True:
    for step in range(pages):
        at = int(draw() * pages) if kind == 'random' else step
        memory[at * 4096] = step & 255
";

/// Holds so many MiB, and reads them all to check them for each line of input.
const HOLDS: &str = "
import hashlib, random, sys
held = random.randbytes(int(sys.argv[1]) << 20)
digest = hashlib.md5(held).digest()
print('held', flush=True)
for line in sys.stdin: print('as it was' if hashlib.md5(held).digest() == digest else 'changed', flush=True)
";

/// A Python program in a cgroup.
fn python_in(dir: &Path, program: &str, arguments: &[&str]) -> Command {
    let script = format!("echo 0 > {}/cgroup.procs; exec python3 -c \"$0\" \"$@\"", dir.display());
    let mut command = Command::new("sh");
    command.args(["-c", &script, program]).args(arguments);
    command
}

fn cgroup(name: &str) -> PathBuf {
    let dir = PathBuf::from(format!("/sys/fs/cgroup/memory/test-balance-{}-{name}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    dir
}

/// A cgroup (version 1) with a program in it; dropping it ends and removes both.
struct Job {
    dir: PathBuf,
    child: Child,
}

impl Job {
    fn start(name: &str, limit: u64, arguments: &[&str]) -> Job {
        let dir = cgroup(name);
        fs::write(dir.join("memory.limit_in_bytes"), limit.to_string()).unwrap();
        let child = python_in(&dir, CHANGES, arguments).spawn().unwrap();
        Job { dir, child }
    }

    fn limit(&self) -> u64 {
        fs::read_to_string(self.dir.join("memory.limit_in_bytes")).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir(&self.dir);
    }
}

/// A process that holds 64 MiB in a cgroup with others; ended when dropped.
struct Holder {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Holder {
    fn start(dir: &Path) -> Holder {
        let mut command = python_in(dir, HOLDS, &["64"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut holder = Holder { says: BufReader::new(child.stdout.take().unwrap()), child };
        assert_eq!(holder.says(), "held");
        holder
    }

    fn says(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line.trim().into()
    }

    /// Makes it read all its memory; returns whether the content is unchanged.
    fn check_memory(&mut self) -> String {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
        self.says()
    }

    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A mount on a cgroup; unmounted when dropped.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// The intervals written so far.
fn intervals(json: &Path) -> Vec<Value> {
    let text = fs::read_to_string(json).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Swap for this test; `None` without root or on cgroup v2. Only one test runs at a time: a bursar that starts restores what a killed
/// bursar of another test left.
fn swap() -> Option<(Zram, MutexGuard<'static, ()>)> {
    let alone = alone()?;
    Some((Zram::of(1024)?, alone))
}

fn alone() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let v1 = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    if !is_root() || !need("the memory controller of cgroup v1", v1) {
        return None;
    }
    Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The limits of [`two`]. Each program fits in its limit: with less, the kernel sometimes kills it though swap is free, even without
/// bursar.
const BEFORE: (u64, u64) = (112 * MIB, 208 * MIB);

/// Two programs of 96 MiB and 192 MiB; `None` where balancing cannot be tested.
fn two(test: &str) -> Option<(impl Sized, Job, Job)> {
    let swap = swap()?;
    let gains = Job::start(&format!("{test}-gains"), BEFORE.0, &["random", "96"]);
    let streams = Job::start(&format!("{test}-streams"), BEFORE.1, &["stream", "192"]);
    Some((swap, gains, streams))
}

/// Time after which an awaited event counts as failed: limits change slowly when other programs run.
const PATIENCE: Duration = Duration::from_secs(300);

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "did not happen in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

#[test]
fn memory_goes_where_it_helps_and_limits_are_restored() {
    let Some((_swap, gains, mut streams)) = two("ends") else { return };
    let targets = [gains.dir.to_str().unwrap(), &format!("cgroup:{},min=20M", streams.dir.display())];
    let balance_of = |total: &str, options: &[&str]| {
        let mut command = bursar();
        command.args(["balance", "--total", total, "--interval", "300ms"]).args(options).args(targets);
        command
    };
    let balance = |options: &[&str]| balance_of("128M", options);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("intervals.json");
    let intervals = || intervals(&json);

    let dry = balance(&["--dry-run", "--json", "-", "-q", "--duration", "1s"]).output().unwrap();
    assert!(dry.status.success() && !dry.stdout.is_empty(), "{dry:?}");
    assert_eq!((gains.limit(), streams.limit()), BEFORE, "a dry run moves nothing");

    let path = json.to_str().unwrap().to_string();
    let mut live = balance(&["-q", "--json", &path]).spawn().unwrap();
    wait_until("the one that gains has more", || {
        gains.limit() > 85 * MIB && streams.limit() < 45 * MIB && gains.limit() + streams.limit() <= 128 * MIB
    });
    assert!(streams.limit() >= 20 * MIB, "its minimum");
    let given = |interval: &Value| -> u64 {
        let all = interval["targets"].as_array().unwrap();
        all.iter().map(|one| one["limit_bytes"].as_u64().unwrap()).sum()
    };
    // The limits begin above the total and are lowered step by step; an interval is written when it ends.
    let within = || intervals().into_iter().skip_while(|interval| given(interval) > 128 * MIB);
    wait_until("an interval within the total is written", || within().next().is_some());
    signal(&live, rustix::process::Signal::TERM);
    assert!(live.wait().unwrap().success());
    assert_eq!((gains.limit(), streams.limit()), BEFORE, "after SIGTERM");
    for interval in within() {
        assert!(given(&interval) <= 128 * MIB, "{interval}");
        assert_eq!(interval["total_bytes"], 128 * MIB);
        let all = interval["targets"].as_array().unwrap();
        assert_eq!(all.len(), 2);
        for one in all {
            let keys: Vec<&str> = one.as_object().unwrap().keys().map(String::as_str).collect();
            let mut expected = [
                "name",
                "limit_bytes",
                "wss_bytes",
                "wss_is_lower_bound",
                "files_in_memory_bytes",
                "misses_per_second",
                "moved_bytes",
                "why",
            ];
            expected.sort_unstable();
            assert_eq!(keys, expected);
            assert!(!one["why"].as_str().unwrap().is_empty());
        }
    }

    // Both limits exceed this total together, so a limit changes at once.
    let mut killed = balance_of("100M", &["-q"]).spawn().unwrap();
    let is_moved = || (gains.limit(), streams.limit()) != BEFORE;
    wait_until("a limit is moved", is_moved);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(is_moved(), "nothing has restored the limits yet");
    let repaired = bursar().args(["doctor", "--repair"]).output().unwrap();
    assert!(String::from_utf8_lossy(&repaired.stdout).contains("was put back to"), "{repaired:?}");
    assert_eq!((gains.limit(), streams.limit()), BEFORE, "after SIGKILL and repair");

    // One target ends; balancing goes on with the other.
    fs::remove_file(&json).unwrap();
    let mut live = balance(&["-q", "--json", &path]).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("an interval", || !intervals().is_empty());
    streams.child.kill().unwrap();
    streams.child.wait().unwrap();
    wait_until("its cgroup can be removed", || fs::remove_dir(&streams.dir).is_ok());
    wait_until("one is left", || intervals().last().is_some_and(|last| last["targets"].as_array().unwrap().len() == 1));
    signal(&live, rustix::process::Signal::INT);
    let stderr = std::io::read_to_string(live.stderr.take().unwrap()).unwrap();
    assert!(live.wait().unwrap().success() && stderr.contains("has ended"), "{stderr}");
    assert_eq!(gains.limit(), BEFORE.0, "after Ctrl-C");
}

#[test]
fn a_limit_set_by_others_is_replaced_and_restored_at_the_end() {
    let Some((_swap, gains, streams)) = two("others") else { return };
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("intervals.json");
    let mut command = bursar();
    command.args(["balance", "-q", "--total", "128M", "--interval", "300ms", "--json"]).arg(&json);
    let mut balance = command.arg(&gains.dir).arg(&streams.dir).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("limits are moved", || gains.limit() + streams.limit() <= 128 * MIB);
    // Sets the limit as systemd does at daemon-reload for a unit without a limit; repeated, because a write at the moment when bursar
    // lowers that limit is overwritten.
    let says = |what: &str| intervals(&json).iter().any(|interval| interval.to_string().contains(what));
    wait_until("it is reported", || {
        fs::write(streams.dir.join("memory.limit_in_bytes"), "-1").unwrap();
        says("somebody else set memory.limit_in_bytes to no limit, and it was set again")
    });
    wait_until("it is set again", || streams.limit() <= 128 * MIB);
    signal(&balance, rustix::process::Signal::TERM);
    let stderr = std::io::read_to_string(balance.stderr.take().unwrap()).unwrap();
    assert!(balance.wait().unwrap().success() && stderr.contains("restores that one at the end"), "{stderr}");
    assert_eq!(gains.limit(), BEFORE.0);
    assert!(streams.limit() > 1 << 60, "{}", streams.limit());

    // Sets a limit as `systemctl set-property` does, before the end of the first interval: bursar sees it only when it restores the limits.
    let mut command = bursar();
    command.args(["balance", "-q", "--total", "128M", "--interval", "1h"]);
    let mut balance = command.arg(&gains.dir).arg(&streams.dir).spawn().unwrap();
    wait_until("bursar has both limits", || {
        fs::read_to_string(streams.dir.join("memory.oom_control")).unwrap().contains("oom_kill_disable 1")
    });
    fs::write(gains.dir.join("memory.limit_in_bytes"), (160 * MIB).to_string()).unwrap();
    signal(&balance, rustix::process::Signal::TERM);
    assert!(balance.wait().unwrap().success());
    assert_eq!(gains.limit(), 160 * MIB);
    let repaired = bursar().args(["doctor", "--repair"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&repaired.stdout).contains("others-"), "{repaired:?}");
}

/// Holds 32 MiB; after a line of input, 200 MiB.
const BURSTS: &str = "
import sys
held = bytearray(b'x') * (32 << 20)
print('held', flush=True)
sys.stdin.readline()
burst = bytearray(b'x') * (200 << 20)
print('burst', flush=True)
sys.stdin.readline()
";

#[test]
fn a_heap_that_cannot_be_reclaimed_raises_its_limit_at_once() {
    let Some(_alone) = alone() else { return };
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    if !need("no swap", swaps.lines().count() == 1) {
        return;
    }
    let (dir, other) = (cgroup("bursts"), cgroup("bursts-beside"));
    fs::write(dir.join("memory.limit_in_bytes"), (64 * MIB).to_string()).unwrap();
    let mut command = python_in(&dir, BURSTS, &[]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut job = Job { dir: dir.clone(), child };
    let mut says = BufReader::new(job.child.stdout.take().unwrap()).lines();
    assert_eq!(says.next().unwrap().unwrap(), "held");
    let beside = python_in(&other, CHANGES, &["stream", "16"]).spawn().unwrap();
    let beside = Job { dir: other, child: beside };
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("intervals.json");
    let mut command = bursar();
    command.args(["balance", "-q", "--total", "128M", "--interval", "2s", "--json"]).arg(&json);
    let mut balance = command.arg(&dir).arg(&beside.dir).spawn().unwrap();
    wait_until("it balances", || !intervals(&json).is_empty());
    writeln!(job.child.stdin.as_mut().unwrap()).unwrap();
    assert_eq!(says.next().unwrap().unwrap(), "burst");
    wait_until("it is reported", || {
        intervals(&json).iter().any(|interval| interval.to_string().contains("it was raised at once"))
    });
    assert!(job.limit() > 232 * MIB, "{}", job.limit());
    // The limit is below what the job holds.
    writeln!(job.child.stdin.as_mut().unwrap()).unwrap();
    assert!(job.child.wait().unwrap().success());
    signal(&balance, rustix::process::Signal::TERM);
    assert!(balance.wait().unwrap().success());
    assert_eq!(job.limit(), 64 * MIB);
}

/// Reads 80 MiB in a memfd repeatedly, and touches 16 MiB of heap in a loop.
const READS_MEMFD: &str = "
import mmap, os
file = os.memfd_create('held')
for _ in range(80): os.write(file, b'x' * (1 << 20))
heap = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE)
buffer = bytearray(64 << 10)
while True:
    heap[::4096] = b'x' * (len(heap) // 4096)
    for at in range(0, 80 << 20, len(buffer)): os.preadv(file, [buffer], at)
";

#[test]
fn files_in_memory_make_the_working_set_a_lower_bound() {
    let Some(_alone) = alone() else { return };
    let dir = cgroup("memfd");
    let child = python_in(&dir, READS_MEMFD, &[]).spawn().unwrap();
    let job = Job { dir, child };
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("intervals.json");
    let mut command = bursar();
    command.args(["balance", "--dry-run", "--total", "256M", "--interval", "1s", "--json"]).arg(&json);
    let mut balance = command.arg(&job.dir).stderr(Stdio::null()).spawn().unwrap();
    let target = || intervals(&json).last().map_or(Value::Null, |interval| interval["targets"][0].clone());
    let files = |stderr: &Value| stderr["files_in_memory_bytes"].as_u64().unwrap_or(0);
    // The job has filled the file, and its working set is known.
    let is_complete = |stderr: &Value| {
        files(stderr) >= 79 * MIB && stderr["wss_bytes"].is_u64() && stderr["wss_is_lower_bound"] == true
    };
    let mut stderr = Value::Null;
    wait_until("it is reported", || {
        stderr = target();
        is_complete(&stderr)
    });
    signal(&balance, rustix::process::Signal::TERM);
    assert!(balance.wait().unwrap().success());
    assert!(files(&stderr) <= 81 * MIB, "{stderr:#}");
    assert!(stderr["why"].as_str().unwrap().contains(" MiB more: reads and writes of files in memory"), "{stderr:#}");
}

#[test]
fn an_empty_cgroup_gives_its_memory_until_a_program_begins() {
    let Some(_swap) = swap() else { return };
    let gains = Job::start("empty-gains", 112 * MIB, &["random", "96"]);
    let dir = cgroup("empty");
    let before = 64 * MIB;
    fs::write(dir.join("memory.limit_in_bytes"), before.to_string()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("intervals.json");
    let mut live = bursar()
        .args(["balance", "--total", "128M", "--interval", "300ms", "-q", "--json", json.to_str().unwrap()])
        .args([&gains.dir, &dir])
        .spawn()
        .unwrap();
    // The limits of the second target since the first interval whose reason contains this word.
    let limits_since = |word: &str| -> Vec<u64> {
        let seen = intervals(&json);
        let second = seen.iter().map(|interval| &interval["targets"][1]);
        let since = second.skip_while(|second| !second["why"].as_str().unwrap().contains(word));
        since.map(|second| second["limit_bytes"].as_u64().unwrap()).collect()
    };
    wait_until("the one that runs has all that it needs", || {
        !limits_since("nothing runs in it").is_empty() && gains.limit() > 96 * MIB
    });

    let begun = Job { child: python_in(&dir, CHANGES, &["stream", "192"]).spawn().unwrap(), dir };
    // At once, or in steps while the other target could not give enough.
    wait_until("the program that began has its share", || {
        limits_since("has begun in it").iter().any(|limit| *limit >= 40 * MIB)
    });
    wait_until("the program that gains has its memory again", || gains.limit() > 85 * MIB && begun.limit() < 45 * MIB);
    signal(&live, rustix::process::Signal::TERM);
    assert!(live.wait().unwrap().success());
    assert_eq!((gains.limit(), begun.limit()), (112 * MIB, before));
}

#[test]
fn a_process_that_waits_under_oom_continues_with_more_memory() {
    let Some(_swap) = swap() else { return };
    let dir = cgroup("waits");
    let set = |name: &str, value: &str| fs::write(dir.join(name), value).unwrap();
    set("memory.limit_in_bytes", "32M");
    set("memory.oom_control", "1");
    // With swappiness 0 the cgroup swaps nothing out.
    set("memory.swappiness", "0");
    let child = python_in(&dir, CHANGES, &["random", "64"]).spawn().unwrap();
    let job = Job { dir: dir.clone(), child };
    let waits = || fs::read_to_string(dir.join("memory.oom_control")).unwrap().contains("under_oom 1");
    wait_until("it waits", waits);
    set("memory.swappiness", "60");

    let mut balance = bursar().args(["balance", "-q", "--total", "32M"]).arg(&dir).spawn().unwrap();
    wait_until("it has all that it changes, half of it in swap", || {
        let status = fs::read_to_string(format!("/proc/{}/status", job.child.id())).unwrap();
        let swapped = status.lines().find_map(|line| line.strip_prefix("VmSwap:")?.trim().strip_suffix(" kB")).unwrap();
        swapped.parse::<u64>().unwrap() << 10 >= 32 * MIB
    });
    signal(&balance, rustix::process::Signal::TERM);
    assert!(balance.wait().unwrap().success());
    assert_eq!(job.limit(), 32 * MIB);
}

#[test]
fn a_single_process_is_paged_out_to_its_share_once() {
    let Some(_swap) = swap() else { return };
    let dir = cgroup("shared");
    let (mut one, mut other) = (Holder::start(&dir), Holder::start(&dir));
    let before = other.resident();
    let mut live = bursar()
        .args(["balance", "--total", "40M", "--interval", "300ms", "-q", &one.child.id().to_string()])
        .spawn()
        .unwrap();
    // The kernel's figure of resident memory is inexact by up to 64 pages per processor.
    wait_until("it has its share", || one.resident() <= 41 * MIB);
    assert!(other.resident() >= before - MIB, "{} of {before}", other.resident());
    signal(&live, rustix::process::Signal::TERM);
    assert!(live.wait().unwrap().success());
    assert_eq!((one.check_memory(), other.check_memory()), ("as it was".into(), "as it was".into()));
    assert!(one.resident() >= 64 * MIB, "it may exceed its share afterwards: {}", one.resident());
    drop((one, other));
    fs::remove_dir(dir).unwrap();
}

#[test]
fn failures_are_reported_and_limits_are_restored() {
    let Some((_swap, gains, streams)) = two("wrong") else { return };
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("intervals.json");
    let balance = |command: &mut Command, options: &[&str]| {
        // Both limits exceed this total together, so a limit changes at once.
        command.args(["balance", "--total", "100M", "--interval", "300ms", "-q"]).args(options);
        command.args([&gains.dir, &streams.dir]).stderr(Stdio::piped()).spawn().unwrap()
    };
    let one_sentence = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(125) && stderr.lines().count() == 1, "{stderr}");
        stderr
    };
    let limits = || (gains.limit(), streams.limit());

    let stderr = one_sentence(balance(&mut bursar_as_nobody(folder.path()), &[]));
    assert!(stderr.contains("delegated cgroup") && stderr.matches("Permission denied").count() == 1, "{stderr}");
    let stderr = one_sentence(balance(&mut bursar(), &["--json", "/dev/full"]));
    assert!(stderr.contains("/dev/full cannot be written"), "{stderr}");
    assert_eq!(limits(), BEFORE, "after a disk that is full");

    // After a read-only bind mount, bursar cannot write one of them.
    let mount =
        |arguments: &[&str]| Command::new("mount").args(arguments).arg(&streams.dir).output().unwrap().status.success();
    let mut live = balance(&mut bursar(), &["--json", json.to_str().unwrap()]);
    wait_until("a limit is moved", || limits() != BEFORE);
    assert!(mount(&["--bind", streams.dir.to_str().unwrap()]));
    let mounted = Mounted(&streams.dir);
    wait_until("nobody writes to it", || mount(&["-o", "remount,bind,ro"]));
    let refused = |at: usize| {
        let last = intervals(&json).pop();
        last.is_some_and(|last| last["targets"][at]["why"].as_str().unwrap().contains("limit cannot be changed"))
    };
    wait_until("the refusal is reported", || refused(1));
    assert!(!refused(0), "the other goes on");
    live.kill().unwrap();
    live.wait().unwrap();
    drop(mounted);
    assert_ne!(limits(), BEFORE, "nobody has put them back yet");
    let next = balance(&mut bursar(), &["--dry-run", "--duration", "10ms"]).wait_with_output().unwrap();
    let stderr = String::from_utf8(next.stderr).unwrap();
    assert!(next.status.success() && stderr.contains("left by a killed run: "), "{stderr}");
    assert_eq!(limits(), BEFORE, "after SIGKILL and the next start");
}

#[test]
fn targets_that_cannot_be_balanced_are_refused() {
    let own = std::process::id().to_string();
    for (arguments, stderr) in [
        (&["--total", "64M", "/sys/fs/cgroup/no-such-group"][..], "no-such-group"),
        (&["--total", "64M", "4194304"], "has ended"),
        (&["--total", "64M", "7,limit=3"], "none of min=SIZE"),
        (&["--total", "64M", "7,min=40M", "8,min=40M"], "is 80.0 MiB together, more than --total 64.0 MiB"),
        (&["--total", "64M", "--dry-run", &own, &own], "in common"),
    ] {
        let output = bursar().arg("balance").args(arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(125) && complaint.contains(stderr), "{complaint}");
    }
}
