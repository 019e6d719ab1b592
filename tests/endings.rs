//! bursar ends a job completely: also processes that ignore signals, left the job, or fork fast.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use support::{Programs, copy_program, is_root};

const BURSAR: &str = env!("CARGO_BIN_EXE_bursar");

/// Time after which the guard kills the processes that a test left.
const GUARD_SECONDS: &str = "60";

/// A user for one test, who may have 64 processes. All of them are killed when this is dropped, when the test is killed, and after a minute
/// at the latest.
struct User {
    id: u32,
    guard: Child,
}

impl User {
    fn new(number: u32) -> User {
        let id = 1_000_000_000 + (std::process::id() % 1_000_000) * 64 + number;
        let script = format!(
            "timeout {GUARD_SECONDS} cat; while setpriv --reuid={id} --regid={id} --clear-groups kill -KILL -1; do sleep 0.1; done"
        );
        let mut guard = Command::new("sh");
        guard.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        User { id, guard: guard.spawn().unwrap() }
    }

    /// The prefix that runs a command as this user.
    fn prefix(&self) -> Vec<String> {
        let become_user = format!("setpriv --reuid={0} --regid={0} --clear-groups prlimit --nproc=64:64", self.id);
        become_user.split(' ').map(Into::into).collect()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().unwrap();
    }
}

/// A folder with copies of bursar and of a program that every user may execute.
fn copies(folder: &Path) -> (String, String) {
    let programs = Programs::build();
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (bursar, program) = (path("bursar"), path("misbehave"));
    copy_program(Path::new(BURSAR), Path::new(&bursar));
    copy_program(Path::new(programs.misbehave()), Path::new(&program));
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (bursar, program)
}

/// bursar's status, and whether a process still holds the job's descriptor 7.
fn ended(words: &[String], folder: &Path) -> (Option<i32>, bool) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" 7>&1 >/dev/null", "sh"]).args(words).env("XDG_STATE_HOME", folder.join("state"));
    let mut bursar = shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut held = bursar.stdout.take().unwrap();
    let status = bursar.wait().unwrap();
    fcntl_setfl(&held, OFlags::NONBLOCK).unwrap();
    (status.code(), held.read(&mut [0; 64]).is_err())
}

/// Prefix that hides the v2 hierarchy beside v1: with it the kernel kills a whole cgroup, without it bursar does.
fn without_unified() -> Option<Vec<String>> {
    let script = "umount /sys/fs/cgroup/unified && exec \"$@\"";
    let is_hybrid = Path::new("/sys/fs/cgroup/unified/cgroup.procs").exists();
    is_hybrid.then(|| ["unshare", "-m", "sh", "-c", script, "sh"].map(Into::into).to_vec())
}

fn words(parts: &[&[String]]) -> Vec<String> {
    parts.iter().flat_map(|part| part.iter().cloned()).collect()
}

fn split(text: &str) -> Vec<String> {
    text.split(' ').map(Into::into).collect()
}

/// Runs the program with a time-out in each way in which bursar tracks a job, and under other commands; asserts that no process is left.
fn leaves_nothing(way: &str, number: u32, others: &[&str]) {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (bursar, program) = copies(folder.path());
    let command = split(&format!("{program} {way}"));
    let run = |kind: &str| split(&format!("{bursar} {kind} -q --timeout 700ms --"));
    let in_cgroup = [Some(Vec::new()), without_unified()].into_iter().flatten();
    let mut kinds: Vec<(Vec<String>, Vec<String>)> = in_cgroup.map(|prefix| (prefix, run("run"))).collect();
    kinds.extend(others.iter().map(|kind| (Vec::new(), run(kind))));
    // Each case has its own user: ended processes count against the limit until init reaps them.
    for (at, (prefix, bursar)) in (0u32..).zip(kinds) {
        let user = User::new(number + at);
        let case = words(&[&prefix, &bursar, &user.prefix(), &command]);
        assert_eq!(ended(&case, folder.path()), (Some(124), false), "{case:?}");
    }
    // Without a cgroup for the job.
    let user = User::new(number + 9);
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(user.id), Some(user.id)).unwrap();
    let case = words(&[&user.prefix(), &run("run"), &command]);
    assert_eq!(ended(&case, &own), (Some(124), false), "{case:?}");
}

#[test]
fn a_time_out_ends_children_that_ignore_it_and_daemons() {
    leaves_nothing("strays", 0, &["attribute", "budget"]);
}

#[test]
fn a_time_out_ends_processes_that_fork_and_end_at_once() {
    leaves_nothing("hop 2", 10, &[]);
}

#[test]
fn a_time_out_ends_a_fork_bomb() {
    leaves_nothing("bomb 60", 20, &[]);
}

#[test]
fn a_time_out_spares_processes_that_bursar_did_not_start() {
    if !is_root() {
        return;
    }
    let user = User::new(30);
    let folder = tempfile::tempdir().unwrap();
    let (bursar, program) = copies(folder.path());
    // The shell starts a child and then becomes bursar, so the child is bursar's.
    let script = format!("sleep 60 & echo $! >&9; exec {bursar} run -q --timeout 300ms -- {program} strays >&2");
    let mut shell = Command::new("setpriv");
    shell.args([&format!("--reuid={}", user.id), "--clear-groups", "sh", "-c", &format!("exec 9>&1; {script}")]);
    let mut shell = shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(shell.wait().unwrap().code(), Some(124));
    assert_eq!(linux::procfs::stat(line.trim().parse().unwrap()).unwrap().comm, "sleep");
}

#[test]
fn the_load_of_faults_ends_with_all_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let programs = Programs::build();
    let load = format!("{} strays", programs.misbehave());
    let beside = ["faults", "-q", "--beside", &load, "--", "true"].map(String::from);
    let words = words(&[&[BURSAR.to_string()], &beside]);
    assert_eq!(ended(&words, folder.path()), (Some(0), false));
}

/// Requests sent in less than the 5 s after which a process that ignores SIGTERM is killed.
const REQUESTS: u32 = 14;
const PAUSE: Duration = Duration::from_millis(300);

#[test]
fn a_second_interrupt_ends_the_job_at_once() {
    let ignores = "trap 'echo term >&7' TERM; trap '' INT; echo ready >&7; while :; do sleep 0.1; done";
    for (arguments, before) in [("budget -q", "ready"), ("run -q --timeout 300ms", "term")] {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" 7>&1 >/dev/null", "sh", BURSAR]).args(arguments.split(' '));
        shell.args(["--", "sh", "-c", ignores]).env("XDG_STATE_HOME", folder.path());
        let mut bursar = shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(bursar.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == before), "{arguments}");
        let mut sent = 0;
        while bursar.try_wait().unwrap().is_none() && sent < REQUESTS {
            linux::signals::send(bursar.id() as i32, 2).unwrap();
            sent += 1;
            std::thread::sleep(PAUSE);
        }
        let is_over = bursar.try_wait().unwrap().is_some();
        bursar.wait().unwrap();
        assert!(is_over && sent >= 2, "{arguments}: after {sent} requests");
    }
}

/// Starts bursar on a command, waits until the command prints that it has begun, and sends a signal. Returns the signal that ended bursar,
/// and its standard error.
fn ended_by(arguments: &str, signal: i32) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" 7>&1 >/dev/null", "sh", BURSAR]).args(arguments.split(' '));
    shell.args(["--", "sh", "-c", "echo ready >&7; exec sleep 60"]).env("XDG_STATE_HOME", folder.path());
    let mut bursar = shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(bursar.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{arguments}");
    linux::signals::send(bursar.id() as i32, signal).unwrap();
    let output = bursar.wait_with_output().unwrap();
    (output.status.signal(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_signal_that_ends_the_runs_also_ends_bursar() {
    let prepare = "budget -q --prepare echo${IFS}ready>&7;sleep${IFS}1";
    for arguments in
        ["run -q", "run -q -n 3", "budget -q", "check --max 1G", "advise try -q --arms never", "faults -q", prepare]
    {
        for signal in [1, 2, 15] {
            let (ended, errors) = ended_by(arguments, signal);
            assert_eq!(ended, Some(signal), "{arguments}: {errors}");
        }
    }
}
