//! Processes, assembled from tracepoint events.

use std::collections::HashMap;

use linux::bpf::{Exit, Fork, Threads};
use linux::procfs;
use model::{ProcessKey, ProcessRecord};

/// The processes of a job.
#[derive(Debug)]
pub(crate) struct Processes {
    origin_ns: u64,
    page_bytes: u64,
    ns_per_tick: u64,
    ended: Vec<ProcessRecord>,
    /// Living processes, and those whose threads' sums have not arrived yet.
    known: HashMap<i32, Known>,
}

#[derive(Debug)]
struct Known {
    record: ProcessRecord,
    exit: Option<Times>,
}

/// Figures of a process from two sources, either of which may have missed threads: the greater one is right.
#[derive(Clone, Copy, Debug)]
struct Times {
    user_ns: u64,
    system_ns: u64,
    runtime_ns: u64,
    minor_faults: u64,
    major_faults: u64,
}

impl Processes {
    pub(crate) fn new(origin_ns: u64) -> Processes {
        Processes {
            origin_ns,
            page_bytes: procfs::page_bytes(),
            ns_per_tick: 1_000_000_000 / procfs::ticks_per_second().max(1),
            ended: Vec::new(),
            known: HashMap::new(),
        }
    }

    pub(crate) fn adopted(&mut self, pid: i32) {
        let Ok(stat) = procfs::stat(pid) else { return };
        let mut record = self.record(pid, stat.ppid, stat.starttime * self.ns_per_tick, stat.comm.as_bytes());
        record.started_seconds = Some(procfs::start_seconds(stat.starttime) - seconds(self.origin_ns));
        self.known.entry(pid).or_insert(Known { record, exit: None });
    }

    pub(crate) fn forked(&mut self, fork: &Fork<'_>) {
        let mut record = self.record(fork.pid, fork.parent, fork.start_boottime_ns, fork.command);
        record.started_seconds = Some(self.seconds_since_origin(fork.start_ns));
        record.own = Some(fork.own);
        if let Some(former) = self.known.insert(fork.pid, Known { record, exit: None }) {
            self.ended.push(former.record);
        }
    }

    pub(crate) fn executed(&mut self, pid: i32, command: &[u8]) {
        if let Some(known) = self.known.get_mut(&pid) {
            known.record.command = String::from_utf8_lossy(command).into_owned();
        }
    }

    pub(crate) fn exited(&mut self, exit: &Exit<'_>) {
        let mut record = self.record(exit.pid, exit.parent, exit.start_boottime_ns, exit.command);
        // If its parent has ended first, the event names the new parent; keep the original one.
        if let Some(known) = self.known.get(&exit.pid).filter(|known| known.record.key == record.key) {
            record.parent = known.record.parent;
        }
        record.started_seconds = Some(self.seconds_since_origin(exit.start_ns));
        record.own = Some(exit.own);
        record.lifetime_seconds = Some(seconds(exit.t_ns.saturating_sub(exit.start_ns)));
        record.max_rss_bytes = Some(exit.max_rss_pages * self.page_bytes);
        let signal = exit.code & 0x7f;
        record.signal = (signal != 0).then_some(signal as i32);
        record.exit_status = Some(if signal != 0 { 128 + signal as i32 } else { (exit.code >> 8 & 0xff) as i32 });
        let times = Times {
            user_ns: exit.user_ns,
            system_ns: exit.system_ns,
            runtime_ns: exit.runtime_ns,
            minor_faults: exit.minor_faults,
            major_faults: exit.major_faults,
        };
        times.write_to(&mut record);
        self.known.insert(exit.pid, Known { record, exit: Some(times) });
    }

    pub(crate) fn summed(&mut self, pid: i32, threads: &Threads) {
        let Some(Known { mut record, exit: Some(exit) }) = self.known.remove(&pid) else { return };
        record.thread_seconds = Some(seconds(threads.life_ns));
        record.io_delay_seconds = threads.delay_ns.map(seconds);
        let times = Times {
            user_ns: exit.user_ns.max(threads.user_ns),
            system_ns: exit.system_ns.max(threads.system_ns),
            runtime_ns: exit.runtime_ns.max(threads.runtime_ns),
            minor_faults: exit.minor_faults.max(threads.minor_faults),
            major_faults: exit.major_faults.max(threads.major_faults),
        };
        times.write_to(&mut record);
        self.ended.push(record);
    }

    /// All, ordered by their start.
    pub(crate) fn finish(mut self) -> Vec<ProcessRecord> {
        self.ended.extend(self.known.into_values().map(|known| known.record));
        self.ended.sort_by_key(|record| (record.key.start_ticks, record.key.pid));
        self.ended
    }

    fn record(&self, pid: i32, parent: i32, start_boottime_ns: u64, command: &[u8]) -> ProcessRecord {
        let key = ProcessKey { pid, start_ticks: start_boottime_ns / self.ns_per_tick };
        ProcessRecord {
            parent: Some(parent),
            command: String::from_utf8_lossy(command).into_owned(),
            ..ProcessRecord::new(key, "tracepoint")
        }
    }

    fn seconds_since_origin(&self, t_ns: u64) -> f64 {
        (t_ns as f64 - self.origin_ns as f64) / 1e9
    }
}

impl Times {
    /// Ticks give the ratio of user to system time, the scheduler gives the sum: the kernel combines them in the same
    /// way (cputime_adjust).
    fn write_to(&self, record: &mut ProcessRecord) {
        let ticks = self.user_ns + self.system_ns;
        let (user, system) = match (self.runtime_ns, ticks) {
            (0, _) => (self.user_ns, self.system_ns),
            (runtime, 0) => (runtime, 0),
            (runtime, _) => {
                let system = (u128::from(runtime) * u128::from(self.system_ns) / u128::from(ticks)) as u64;
                (runtime - system, system)
            }
        };
        record.user_seconds = Some(seconds(user));
        record.system_seconds = Some(seconds(system));
        record.minor_faults = Some(self.minor_faults);
        record.major_faults = Some(self.major_faults);
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
