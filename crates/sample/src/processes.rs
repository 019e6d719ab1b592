//! The job's processes, one by one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linux::procfs;
use model::{ProcessKey, ProcessRecord};

use crate::pace::Pace;

/// Processes beyond this number get no time line of their own; their peaks are kept all the same.
const OWN_LINES: usize = 64;
/// A proportional set is read again when the RSS has moved by one part in this.
const MOVED: u64 = 100;
/// Reading smaps_rollup: seconds per byte of RSS (10 ms per GB; notes of the project's own measurements).
const LOCK_SECONDS_PER_BYTE: f64 = 10e-3 / 1e9;

/// Sums over the processes alive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub processes: u64,
    pub tasks: u64,
    pub waiting: Option<u64>,
    pub rss: u64,
    pub rss_anon: Option<u64>,
    pub rss_file: Option<u64>,
    pub rss_shared: Option<u64>,
    pub pss: Option<u64>,
    pub pss_anon: Option<u64>,
    pub pss_file: Option<u64>,
    pub pss_shared: Option<u64>,
    pub locked: Option<u64>,
    pub pinned: Option<u64>,
    pub swap: Option<u64>,
    pub hugetlb: Option<u64>,
    pub page_tables: Option<u64>,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub io_delay_seconds: f64,
    pub cpu_seconds: f64,
}

/// One process as last seen.
struct Seen {
    record: ProcessRecord,
    alive: bool,
    rss: u64,
    status: procfs::Status,
    rollup: Option<(u64, procfs::SmapsRollup)>,
    io_delay: f64,
}

/// All processes seen so far.
#[derive(Default)]
pub struct Processes {
    seen: BTreeMap<ProcessKey, Seen>,
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / procfs::ticks_per_second() as f64
}

impl Processes {
    /// Looks at these PIDs now. `since`: seconds from boot to the run's begin. `tasks`: also look at every thread's state.
    pub fn look(&mut self, pids: &[i32], since: f64, pace: &mut Pace, elapsed: Duration, threads: bool) -> Sums {
        for seen in self.seen.values_mut() {
            seen.alive = false;
        }
        let mut sums = Sums { waiting: threads.then_some(0), ..Sums::default() };
        for pid in pids {
            self.look_at(*pid, since, &mut sums);
        }
        self.roll_up(pace, elapsed);
        self.add(&mut sums);
        sums
    }

    fn look_at(&mut self, pid: i32, since: f64, sums: &mut Sums) {
        let Ok(stat) = procfs::stat(pid) else { return };
        if stat.state == 'Z' {
            return;
        }
        let Ok(status) = procfs::status(pid) else { return };
        let rss = stat.rss_pages * procfs::page_bytes();
        let key = ProcessKey { pid, start_ticks: stat.starttime };
        let started = procfs::start_seconds(stat.starttime) - since;
        let seen = self.seen.entry(key).or_insert_with(|| Seen {
            record: ProcessRecord {
                key,
                parent: Some(stat.ppid),
                command: String::new(),
                started_seconds: Some(started),
                lifetime_seconds: None,
                max_rss_bytes: None,
                user_seconds: None,
                system_seconds: None,
                minor_faults: None,
                major_faults: None,
                io_delay_seconds: None,
                thread_seconds: None,
                exit_status: None,
                source: "sampled".into(),
            },
            alive: true,
            rss: 0,
            status: procfs::Status::default(),
            rollup: None,
            io_delay: 0.0,
        });
        seen.alive = true;
        seen.rss = rss;
        seen.record.command = stat.comm;
        seen.record.max_rss_bytes = status.vm_hwm.or(Some(rss)).max(seen.record.max_rss_bytes);
        seen.record.user_seconds = Some(seconds(stat.utime));
        seen.record.system_seconds = Some(seconds(stat.stime));
        seen.record.minor_faults = Some(stat.minflt);
        seen.record.major_faults = Some(stat.majflt);
        seen.status = status;
        sums.tasks += stat.num_threads;
        let mut delay = seconds(stat.blkio_delay_ticks.unwrap_or(0));
        if stat.num_threads > 1 || sums.waiting.is_some() {
            delay = 0.0;
            for task in procfs::tasks(pid).unwrap_or_default() {
                let Ok(task) = procfs::task_stat(pid, task) else { continue };
                delay += seconds(task.blkio_delay_ticks.unwrap_or(0));
                if let Some(waiting) = sums.waiting.as_mut().filter(|_| task.state == 'D') {
                    *waiting += 1;
                }
            }
        }
        // Threads that have gone take their delay along.
        seen.io_delay = seen.io_delay.max(delay);
    }

    /// Reads the proportional sets that have moved most, as far as the lock budget goes.
    fn roll_up(&mut self, pace: &mut Pace, elapsed: Duration) {
        let moved = |seen: &Seen| seen.rollup.as_ref().map_or(seen.rss, |(rss, _)| rss.abs_diff(seen.rss));
        let mut stale: Vec<_> =
            self.seen.values_mut().filter(|s| s.alive && s.rss > 0 && moved(s) >= s.rss / MOVED).collect();
        stale.sort_by_key(|seen| std::cmp::Reverse(moved(seen)));
        for seen in stale {
            let expected = Duration::from_secs_f64(seen.rss as f64 * LOCK_SECONDS_PER_BYTE);
            if !pace.may_lock(elapsed, expected) {
                return;
            }
            let begin = Instant::now();
            if let Ok(rollup) = procfs::smaps_rollup(seen.record.key.pid) {
                seen.rollup = Some((seen.rss, rollup));
            }
            pace.locked(begin.elapsed());
        }
    }

    fn add(&self, sums: &mut Sums) {
        for seen in self.seen.values() {
            sums.minor_faults += seen.record.minor_faults.unwrap_or(0);
            sums.major_faults += seen.record.major_faults.unwrap_or(0);
            sums.io_delay_seconds += seen.io_delay;
            sums.cpu_seconds += seen.record.user_seconds.unwrap_or(0.0) + seen.record.system_seconds.unwrap_or(0.0);
        }
        let alive: Vec<&Seen> = self.seen.values().filter(|s| s.alive).collect();
        let status = |of: fn(&procfs::Status) -> Option<u64>| alive.iter().map(|s| of(&s.status)).sum::<Option<u64>>();
        // A process too young to have been read counts with its RSS in the sum; its parts are then unknown.
        let parts = |of: fn(&procfs::SmapsRollup) -> Option<u64>| {
            alive.iter().filter(|s| s.rss > 0).map(|s| s.rollup.as_ref().and_then(|(_, r)| of(r))).sum::<Option<u64>>()
        };
        sums.processes = alive.len() as u64;
        sums.rss = alive.iter().map(|s| s.rss).sum();
        sums.rss_anon = status(|s| s.rss_anon);
        sums.rss_file = status(|s| s.rss_file);
        sums.rss_shared = status(|s| s.rss_shmem);
        sums.locked = status(|s| s.vm_lck);
        sums.pinned = status(|s| s.vm_pin);
        sums.swap = status(|s| s.vm_swap);
        sums.hugetlb = status(|s| s.hugetlb_pages);
        sums.page_tables = status(|s| s.vm_pte);
        sums.pss = parts(|r| r.pss);
        sums.pss_anon = parts(|r| r.pss_anon);
        sums.pss_file = parts(|r| r.pss_file);
        sums.pss_shared = parts(|r| r.pss_shmem);
    }

    /// RSS of each process alive that gets a line of its own.
    pub fn own_lines(&self) -> impl Iterator<Item = (ProcessKey, u64)> {
        self.seen.values().take(OWN_LINES).filter(|s| s.alive).map(|s| (s.record.key, s.rss))
    }

    /// What is known of each, in order of their start. A process that is gone is given the life it was seen for.
    pub fn into_records(self) -> Vec<ProcessRecord> {
        let mut records: Vec<_> = self.seen.into_values().map(|seen| seen.record).collect();
        records.sort_by_key(|record| (record.key.start_ticks, record.key.pid));
        records
    }
}
