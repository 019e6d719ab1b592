//! Which of the job's processes a log is of.
//!
//! A process in a PID namespace of its own logs the numbers by which it knows itself, one in a UTS namespace another host's
//! name, one in a time namespace another start. Outside, the kernel names all of them otherwise.

use model::ProcessRecord;

use crate::log::{ProcessLog, Started};

/// Where the processes were seen from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// The host's name.
    pub host: String,
    /// The boot of this machine.
    pub boot: String,
    /// The PID namespace; 0: not known.
    pub pid_namespace: u64,
    /// When the run began, nanoseconds since 1970.
    pub started_unix_ns: u64,
}

impl Here {
    /// Whether a process ran on this machine, whatever name of the host it saw.
    pub fn has(&self, started: &Started) -> bool {
        if started.boot.is_empty() { started.host == self.host } else { started.boot == self.boot }
    }
}

/// Clocks that are read one after the other may differ by so much.
const CLOCK_SECONDS: f64 = 0.1;
/// A command's name has so many bytes at most.
const NAME_BYTES: usize = 15;

/// Gives every log of a process that was seen from here the numbers by which it was seen. All others stay as they are.
pub fn identify(logs: &mut [ProcessLog], processes: &[ProcessRecord], here: &Here) {
    let mut found: Vec<Option<&ProcessRecord>> = logs.iter().map(|log| by_number(log, processes, here)).collect();
    // A record that came without a number of its own: what has no log yet, and is called so.
    for (number, log) in logs.iter().enumerate() {
        if found[number].is_some() || !is_elsewhere(log, here) {
            continue;
        }
        // What it was before exec.
        let same = logs.iter().zip(&found).find(|(other, found)| found.is_some() && is_one(other, log));
        let is_free = |process: &&ProcessRecord| {
            let is_taken = found.iter().flatten().any(|taken| taken.key == process.key);
            process.own.is_none() && !is_taken && is_called_as(process, log) && lived(process, log, here)
        };
        found[number] = match same {
            Some((_, found)) => *found,
            None => processes.iter().find(is_free),
        };
    }
    for (log, process) in logs.iter_mut().zip(found) {
        let Some(process) = process else { continue };
        let started = &mut log.started;
        started.pid = process.key.pid;
        started.start_ticks = process.key.start_ticks;
        started.parent = process.parent.unwrap_or(started.parent);
        started.pid_namespace = here.pid_namespace;
    }
}

/// Whether its numbers are another namespace's.
fn is_elsewhere(log: &ProcessLog, here: &Here) -> bool {
    let namespace = log.started.pid_namespace;
    namespace != 0 && here.pid_namespace != 0 && namespace != here.pid_namespace
}

fn is_one(one: &ProcessLog, other: &ProcessLog) -> bool {
    one.started.is_same_process(&other.started)
}

/// The process that has its number; of several one after the other, the one of its start, else the one that lived then.
fn by_number<'a>(log: &ProcessLog, processes: &'a [ProcessRecord], here: &Here) -> Option<&'a ProcessRecord> {
    let started = &log.started;
    if !here.has(started) {
        return None;
    }
    let has_number = |process: &&ProcessRecord| match process.own {
        _ if !is_elsewhere(log, here) => process.key.pid == started.pid,
        Some(own) => {
            own.pid == started.pid && own.namespace.is_none_or(|inner| u64::from(inner) == started.pid_namespace)
        }
        None => false,
    };
    let key = |process: &ProcessRecord| model::ProcessKey { pid: process.key.pid, start_ticks: started.start_ticks };
    let all = || processes.iter().filter(has_number);
    all().find(|process| process.is(key(process))).or_else(|| all().find(|process| lived(process, log, here)))
}

/// Whether it lived when the log began.
fn lived(process: &ProcessRecord, log: &ProcessLog, here: &Here) -> bool {
    let Some(begin) = process.started_seconds else { return false };
    let at = (log.started.unix_ns as f64 - here.started_unix_ns as f64) / 1e9;
    let end = process.lifetime_seconds.map_or(f64::INFINITY, |life| begin + life);
    (begin - CLOCK_SECONDS..=end + CLOCK_SECONDS).contains(&at)
}

fn is_called_as(process: &ProcessRecord, log: &ProcessLog) -> bool {
    let name = log.started.executable.rsplit('/').next().unwrap_or_default().as_bytes();
    !name.is_empty() && name[..name.len().min(NAME_BYTES)] == *process.command.as_bytes()
}

#[cfg(test)]
mod tests {
    use model::{OwnPid, ProcessKey};

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const BEGIN: u64 = 1_700_000_000 * SECOND;

    fn here() -> Here {
        Here { host: "node1".into(), boot: "b".into(), pid_namespace: 10, started_unix_ns: BEGIN }
    }

    fn log(pid: i32, start_ticks: u64, pid_namespace: u64) -> ProcessLog {
        let (host, executable) = ("node1".into(), "/usr/bin/app".into());
        let unix_ns = BEGIN + SECOND;
        let started = Started {
            pid,
            start_ticks,
            pid_namespace,
            host,
            executable,
            boot: "b".into(),
            unix_ns,
            ..Started::default()
        };
        ProcessLog { started, ..ProcessLog::default() }
    }

    fn process(pid: i32, start_ticks: u64, own: Option<(i32, u32)>) -> ProcessRecord {
        ProcessRecord {
            parent: Some(2),
            command: "app".into(),
            started_seconds: Some(0.9),
            lifetime_seconds: Some(2.0),
            own: own.map(|(pid, namespace)| OwnPid { pid, namespace: Some(namespace) }),
            ..ProcessRecord::new(ProcessKey { pid, start_ticks }, "tracepoint")
        }
    }

    fn identified(mut logs: Vec<ProcessLog>, processes: &[ProcessRecord]) -> Vec<(i32, u64, u64)> {
        identify(&mut logs, processes, &here());
        logs.iter().map(|log| (log.started.pid, log.started.start_ticks, log.started.pid_namespace)).collect()
    }

    #[test]
    fn a_process_of_another_pid_namespace_has_the_number_it_has_here() {
        let processes = [process(71, 500, Some((1, 20))), process(72, 500, Some((1, 30)))];
        let logs = vec![log(1, 500, 30), log(1, 500, 20)];
        assert_eq!(identified(logs, &processes), [(72, 500, 10), (71, 500, 10)]);
    }

    #[test]
    fn a_number_that_is_another_process_here_is_not_that_process() {
        let processes = [process(1, 500, Some((1, 10)))];
        assert_eq!(identified(vec![log(1, 500, 30)], &processes), [(1, 500, 30)]);
    }

    #[test]
    fn a_record_without_a_number_of_its_own_is_found_by_name_and_time_once() {
        let processes = [process(71, 0, None)];
        let logs = vec![log(1, 500, 30), log(1, 500, 40)];
        assert_eq!(identified(logs, &processes), [(71, 0, 10), (1, 500, 40)]);
    }

    #[test]
    fn another_start_of_a_time_namespace_is_the_same_process_if_it_lived_then() {
        let processes = [process(71, 500, None)];
        assert_eq!(identified(vec![log(71, 900_000, 10)], &processes), [(71, 500, 10)]);
        let ended = ProcessRecord { lifetime_seconds: Some(0.0), started_seconds: Some(0.1), ..process(71, 500, None) };
        assert_eq!(identified(vec![log(71, 900_000, 10)], &[ended]), [(71, 900_000, 10)]);
    }

    #[test]
    fn a_process_that_sees_another_name_of_this_host_is_found_and_one_of_another_boot_is_not() {
        let identified_as = |boot: &str| {
            let mut logs = vec![log(71, 500, 10)];
            logs[0].started.host = "sandbox".into();
            logs[0].started.boot = boot.into();
            identify(&mut logs, &[process(71, 500, None)], &here());
            (logs[0].started.host.clone(), logs[0].started.parent)
        };
        assert_eq!(identified_as("b"), ("sandbox".to_string(), 2));
        assert_eq!(identified_as("another"), ("sandbox".to_string(), 0));
    }

    #[test]
    fn a_log_of_an_earlier_runtime_is_found_by_its_number() {
        let mut old = log(71, 501, 0);
        old.started.boot.clear();
        assert_eq!(identified(vec![old], &[process(71, 500, None)]), [(71, 500, 10)]);
    }
}
