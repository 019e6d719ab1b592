//! bursar as PID 1 of a container, and in place of its command: signals and orphans.

mod support;

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use linux::signals;
use rustix::process::{Pid, WaitOptions, waitpid};
use support::{Programs, every_command, is_root};

const BURSAR: &str = env!("CARGO_BIN_EXE_bursar");

/// bursar as PID 1 of a PID namespace, with its state in the folder.
fn as_pid_1(folder: &Path, arguments: &[String]) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc", BURSAR]).args(arguments);
    unshare.env("XDG_STATE_HOME", folder).env_remove("RUST_BACKTRACE");
    unshare
}

/// The arguments followed by a shell script.
fn with_script(arguments: &[String], script: &str) -> Vec<String> {
    arguments.iter().cloned().chain(["--", "sh", "-c", script].map(Into::into)).collect()
}

#[test]
fn as_pid_1_a_command_ended_by_a_signal_gives_128_and_its_number() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let status = |arguments: &[String], signal: i32| {
        let output = as_pid_1(folder.path(), &with_script(arguments, &format!("kill -{signal} $$"))).output().unwrap();
        (output.status.code(), output)
    };
    for arguments in every_command(folder.path()) {
        let (code, output) = status(&arguments, 15);
        assert_eq!(code, Some(143), "{arguments:?}: {output:?}");
    }
    for signal in [1, 2, 3, 6, 9, 11, 13, 14, 34] {
        let (code, output) = status(&["run".into(), "-q".into()], signal);
        assert_eq!(code, Some(128 + signal), "signal {signal}: {output:?}");
    }
}

#[test]
fn as_pid_1_a_termination_from_outside_ends_the_command() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for arguments in every_command(folder.path()).iter().filter(|words| words[0] != "budget") {
        let mut unshare = as_pid_1(folder.path(), &with_script(arguments, "echo ready; exec sleep 60"));
        let mut unshare = unshare.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(unshare.stdout.take().unwrap()).lines();
        assert_eq!(output.next().unwrap().unwrap(), "ready", "{arguments:?}");
        signals::send(linux::procfs::children(unshare.id() as i32)[0], 15).unwrap();
        assert_eq!(unshare.wait().unwrap().code(), Some(143), "{arguments:?}");
    }
}

#[test]
fn as_pid_1_bursar_reaps_orphans_while_the_command_runs() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Orphans that ended and were not reaped stay children of PID 1.
    let script = "i=0; while [ $i -lt 20 ]; do (sleep 0.01 &); i=$((i + 1)); done; i=0
        while cat /proc/[0-9]*/stat 2>/dev/null | grep -q '^[0-9]* (sleep) . 1 '; do
            i=$((i + 1)); [ $i -lt 1000 ] || exit 7; sleep 0.02
        done";
    for arguments in every_command(folder.path()) {
        let output = as_pid_1(folder.path(), &with_script(&arguments, script)).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    }
}

#[test]
fn as_pid_1_bursar_does_not_reap_its_own_children_early() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The load of the second run ends at once, and stays a zombie until bursar asks for its status at the end.
    let second = folder.path().join("second");
    let first = format!("[ -e {0} ] || {{ touch {0}; exit 0; }}; ", second.display());
    let script = "i=0; until cat /proc/[0-9]*/stat 2>/dev/null | grep -q '^[0-9]* (sh) Z 1 '; do
            i=$((i + 1)); [ $i -lt 1000 ] || exit 7; sleep 0.02
        done";
    let faults = ["faults", "--beside", "exit 3"].map(String::from);
    let output = as_pid_1(folder.path(), &with_script(&faults, &(first + script))).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("The load failed") && errors.contains("exit status: 3"), "{errors}");
}

/// A command that prints the signals it receives, in a process group of its own.
struct Receiver {
    bursar: Child,
    lines: Lines<BufReader<ChildStdout>>,
    _input: ChildStdin,
}

impl Receiver {
    fn start(command: &mut Command) -> Receiver {
        let mut bursar = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(bursar.stdout.take().unwrap()).lines();
        let mut receiver = Receiver { _input: bursar.stdin.take().unwrap(), bursar, lines };
        assert_eq!(receiver.line(), "ready");
        receiver
    }

    fn line(&mut self) -> String {
        self.lines.next().map(Result::unwrap).unwrap_or_else(|| format!("ended: {:?}", self.bursar.wait()))
    }

    /// Sends a signal to bursar; returns what the command prints.
    fn sent(&mut self, signal: i32) -> String {
        signals::send(self.bursar.id() as i32, signal).unwrap();
        self.line()
    }

    /// Ends the command's input; returns bursar's exit status.
    fn end(self) -> std::process::ExitStatus {
        let Receiver { mut bursar, _input, .. } = self;
        drop(_input);
        bursar.wait().unwrap()
    }
}

#[test]
fn every_catchable_signal_is_forwarded() {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let stops = 20;
    for arguments in every_command(folder.path()).iter().filter(|words| words[0] != "budget") {
        let mut bursar = Command::new(BURSAR);
        bursar.args(arguments).args(["--", programs.signals()]).env("XDG_STATE_HOME", folder.path());
        let mut receiver = Receiver::start(&mut bursar);
        for signal in signals::forwardable().filter(|signal| *signal != stops) {
            assert_eq!(receiver.sent(signal), format!("{signal:02}"), "{arguments:?}");
        }
        assert_eq!(receiver.end().code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn signals_blocked_at_bursars_start_are_forwarded() {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let mut blocked = Command::new("env");
    blocked.args(["--block-signal=TERM", "--block-signal=USR1", BURSAR, "run", "-q", "--", programs.signals()]);
    let mut receiver = Receiver::start(blocked.env("XDG_STATE_HOME", folder.path()));
    let bursar = receiver.bursar.id() as i32;
    let is_command = |pid: &i32| linux::procfs::stat(*pid).is_ok_and(|stat| stat.comm == "signals");
    let command = linux::procfs::children(bursar).into_iter().find(is_command).unwrap();
    let has = |line: &str| {
        let status = std::fs::read_to_string(format!("/proc/{command}/status")).unwrap_or_default();
        status.lines().any(|other| other == line)
    };
    assert!(has("SigBlk:\t0000000000004200"), "TERM and USR1 stay blocked for the command");
    signals::send(bursar, 15).unwrap();
    // The signal is pending until the command unblocks it.
    while !has("ShdPnd:\t0000000000004000") {
        assert!(receiver.bursar.try_wait().unwrap().is_none(), "bursar ended");
        std::thread::yield_now();
    }
    assert_eq!(receiver.end().code(), Some(0));
}

#[test]
fn bursar_stops_and_continues_with_its_command() {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let mut bursar = Command::new(BURSAR);
    bursar.args(["run", "-q", "--", programs.signals()]).env("XDG_STATE_HOME", folder.path());
    let mut receiver = Receiver::start(&mut bursar);
    let pid = Pid::from_child(&receiver.bursar);
    for _ in 0..3 {
        assert_eq!(receiver.sent(20), "20");
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
        assert_eq!(receiver.sent(18), "18");
    }
    assert_eq!(receiver.end().code(), Some(0));
}

/// `perl -e 'alarm 9; exec @ARGV' bursar run -- COMMAND`
#[test]
fn an_alarm_set_before_bursar_began_ends_the_command() {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let mut alarm = Command::new(programs.signals());
    alarm.args(["alarm", "3", BURSAR, "run", "-q", "--", programs.signals()]).env("XDG_STATE_HOME", folder.path());
    let mut receiver = Receiver::start(&mut alarm);
    assert_eq!(receiver.line(), "14");
    assert_eq!(receiver.end().code(), Some(0));
}

#[test]
fn a_parent_that_ignores_its_childrens_end_gets_the_status() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in every_command(folder.path()) {
        let mut ignoring = Command::new("env");
        ignoring.args(["--ignore-signal=CHLD", BURSAR]).args(with_script(&arguments, "exit 42"));
        let output = ignoring.env("XDG_STATE_HOME", folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(42), "{arguments:?}: {output:?}");
        assert_eq!(output.status.signal(), None);
    }
}
