//! What ended a command before its work was done, whatever status it exits with.

use model::{Exit, Header, Observation, ProcessRecord, Target};

use crate::clients;

/// What `timeout` exits with when its time was up, and what it may exit with where it kills or keeps the command's status.
const TIME_WAS_UP: i32 = 124;
const TIME_MAY_HAVE_BEEN_UP: [i32; 3] = [124, 128 + 9, 128 + 15];

/// Signals that end a program before its work is done: HUP, INT, QUIT, ILL, TRAP, ABRT, BUS, FPE, KILL, SEGV, ALRM, TERM, XCPU,
/// XFSZ and SYS. PIPE is how a program ends whose output is no longer wanted.
const CUTTING: [i32; 15] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14, 15, 24, 25, 31];

/// A clause that names it. `None` where nothing shows that the command was ended: it may exit with any status by itself.
pub fn short(run: &Observation, header: &Header) -> Option<String> {
    if run.target != Target::Command {
        return None;
    }
    if let Some(kills @ 1..) = run.kept.oom_kills.filter(|_| run.limit_bytes.is_none()) {
        return Some(format!("the kernel killed {kills} of its processes for lack of memory"));
    }
    match run.exit {
        Exit::TimedOut => Some("the time-out ended it".into()),
        Exit::Signal(number) => Some(format!("signal {number} ended it")),
        Exit::StoppedEarly => Some("bursar ended it".into()),
        Exit::StillRunning => Some("its record was cut off".into()),
        Exit::Status(0) => None,
        Exit::Status(status) => by_processes(run, header, status),
    }
}

/// A command that failed: what ended the processes that it waited for.
fn by_processes(run: &Observation, header: &Header, status: i32) -> Option<String> {
    let has_exit_records = run.sources.get("processes").is_some_and(|source| source.contains("exit"));
    let is_timeout = |process: &ProcessRecord| process.command == "timeout";
    let signal = status.checked_sub(128).filter(|signal| CUTTING.contains(signal));
    let ended = run.processes.iter().find(|process| process.signal.is_some() && process.signal == signal);
    // A command that exits with 124 by itself gives it to its `timeout`.
    let by_itself = |process: &ProcessRecord| !is_timeout(process) && process.exit_status == Some(TIME_WAS_UP);
    let timed_out = if has_exit_records {
        let is_up = |process: &ProcessRecord| is_timeout(process) && process.exit_status == Some(TIME_WAS_UP);
        let killed = |process: &ProcessRecord| is_timeout(process) && process.signal == Some(9);
        let has_it_from = |of: &ProcessRecord| {
            run.processes.iter().any(|process| process.parent == Some(of.key.pid) && by_itself(process))
        };
        run.processes.iter().any(|process| (is_up(process) || killed(process)) && !has_it_from(process))
    } else {
        TIME_MAY_HAVE_BEEN_UP.contains(&status) && run.processes.iter().any(is_timeout)
    };
    if timed_out {
        return Some("timeout ended it".into());
    }
    if let Some((process, signal)) = ended.zip(signal) {
        return Some(format!("signal {signal} ended {}", process.command));
    }
    if run.evidence.interrupted {
        return Some("a signal that was sent to bursar ended it".into());
    }
    // What a shell exits with after a signal has ended the program that it waited for.
    let is_unclear = !has_exit_records && !run.evidence.waited_for_none;
    let signal = signal.filter(|_| is_unclear && clients::is_shell(&header.command))?;
    Some(format!("signal {signal} ended a program of it, as its status says"))
}
