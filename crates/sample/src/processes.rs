//! The job's processes, one by one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linux::{Error, procfs};
use model::{OwnPid, ProcessKey, ProcessRecord, Resident};

use crate::moves::{Level, has_moved, moved};
use crate::pace::Pace;

/// Processes beyond this number get no time line of their own; their peaks are kept all the same.
const OWN_LINES: usize = 64;
/// Proportional sets are read again when the job's RSS has moved by one part in this.
const MOVED: u64 = 100;
/// While the RSS still moves by more than one part in this from sample to sample, or processes come and go, a reading would
/// be old at once; it waits, but not longer than so many samples.
const SETTLED: u64 = 50;
const PATIENCE: u32 = 50;
/// Nor is a reading kept if more than one part in this moved while it was read.
const STILL: u64 = 500;
/// Reading smaps_rollup: seconds per byte of RSS (10 ms per GB; notes of the project's own measurements).
const LOCK_SECONDS_PER_BYTE: f64 = 10e-3 / 1e9;
const LOCK_SECONDS_PER_PROCESS: f64 = 50e-6;

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
    /// What all hold together, by a reading of the proportional sets that nothing disturbed.
    pub held: Option<u64>,
    /// What they hold together at least, and each kind of it.
    pub held_least: u64,
    pub least: Least,
    /// Their heap and shared memory together at most.
    pub most: Most,
    /// The most that they can have obtained and given back since the first look.
    pub gained: u64,
    pub lost: u64,
    pub locked: Option<u64>,
    pub pinned: Option<u64>,
    pub swap: Option<u64>,
    pub hugetlb: Option<u64>,
    pub page_tables: Option<u64>,
    /// Shared memory and hugetlb pages of the process that has most of them mapped.
    pub largest_shared: Option<u64>,
    pub largest_hugetlb: Option<u64>,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub io_delay_seconds: f64,
    pub cpu_seconds: f64,
}

/// What processes hold at least, however much of it they share, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least {
    pub heap: u64,
    pub file: u64,
    pub shared: u64,
    pub swap: u64,
}

/// What processes hold together at most, bytes: by a reading of their proportional sets, and what they have obtained since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Most {
    pub heap: u64,
    pub shared: u64,
}

/// One process as last seen.
struct Seen {
    record: ProcessRecord,
    alive: bool,
    /// When it was first seen to have gone, seconds since boot.
    gone: Option<f64>,
    rss: u64,
    stack_start: u64,
    status: procfs::Status,
    /// Of all looks.
    largest: Resident,
    io_delay: f64,
}

impl Seen {
    fn level(&self) -> Level {
        Level {
            key: self.record.key,
            parent: self.record.parent.unwrap_or(0),
            stack_start: self.stack_start,
            rss: self.rss,
            heap: self.status.rss_anon.unwrap_or(0),
            shared: self.status.rss_shmem.unwrap_or(0),
            faulted: self.record.minor_faults.unwrap_or(0) * procfs::page_bytes(),
        }
    }
}

/// `level` now. Of its kinds nothing is read.
fn level_again(level: Level) -> Option<Level> {
    let stat = procfs::stat(level.key.pid).ok().filter(|stat| stat.starttime == level.key.start_ticks)?;
    let page = procfs::page_bytes();
    Some(Level { rss: stat.rss_pages * page, faulted: stat.minflt * page, ..level })
}

/// All processes seen so far.
#[derive(Default)]
pub struct Processes {
    seen: BTreeMap<ProcessKey, Seen>,
    /// The processes alive at the last sample, and when the proportional sets were last read.
    before: Vec<Level>,
    rolled_up: Vec<Level>,
    unsettled: u32,
    /// Why proportional sets are not known.
    pub unread: Option<String>,
    cpu_seconds: f64,
    gained: u64,
    lost: u64,
    most: Most,
    /// One process is looked at, and its children are none of the job's.
    is_alone: bool,
    /// Memory that bursar shares with them.
    shared_by_us_bytes: u64,
}

/// `None` if it has ended meanwhile.
fn rollup(pid: i32) -> Option<Result<procfs::SmapsRollup, Error>> {
    match procfs::smaps_rollup(pid) {
        Err(Error::Gone(_)) => None,
        read => Some(read),
    }
}

/// Block I/O delay of a task, in seconds. The kernel sometimes ends a delay that it never began; longer than the task's life,
/// it is no delay.
fn io_delay(stat: &procfs::Stat) -> f64 {
    let life = procfs::monotonic_ns() as f64 / 1e9 - procfs::start_seconds(stat.starttime);
    Some(procfs::seconds_of(stat.blkio_delay_ticks.unwrap_or(0))).filter(|delay| *delay <= life + 0.02).unwrap_or(0.0)
}

impl Processes {
    /// None seen yet. `is_alone`: of a single process, without its children. `shared_by_us_bytes`: memory that they may have mapped, and
    /// that is not theirs.
    pub fn new(is_alone: bool, shared_by_us_bytes: u64) -> Processes {
        Processes { is_alone, shared_by_us_bytes, ..Processes::default() }
    }

    /// What of a process's shared memory is taken for ours. How much of ours it has mapped is not known: of much more than that, nothing is
    /// taken off, for a figure that is a little too large is better than one that is too small.
    fn ours(&self, shared: Option<u64>) -> u64 {
        shared
            .filter(|bytes| *bytes <= 2 * self.shared_by_us_bytes)
            .map_or(0, |bytes| bytes.min(self.shared_by_us_bytes))
    }

    /// Looks at these PIDs now. `since`: seconds from boot to the run's begin. `threads`: also look at every thread's state.
    /// `again`: which PIDs there are when it is asked.
    pub fn look(
        &mut self,
        pids: &[i32],
        since: f64,
        pace: &mut Pace,
        elapsed: Duration,
        threads: bool,
        again: &dyn Fn() -> Vec<i32>,
    ) -> Sums {
        for seen in self.seen.values_mut() {
            seen.alive = false;
        }
        let mut sums = Sums { waiting: threads.then_some(0), ..Sums::default() };
        for pid in pids {
            self.look_at(*pid, since, &mut sums);
        }
        let now = procfs::monotonic_ns() as f64 / 1e9;
        for seen in self.seen.values_mut().filter(|seen| !seen.alive) {
            seen.gone.get_or_insert(now);
        }
        // A process whose parent did not wait for it takes its time along.
        self.cpu_seconds = self.cpu_seconds.max(sums.cpu_seconds);
        sums.cpu_seconds = self.cpu_seconds;
        self.roll_up(pace, elapsed, &mut sums, &|| again().iter().all(|pid| pids.contains(pid)));
        self.add(&mut sums);
        sums
    }

    fn look_at(&mut self, pid: i32, since: f64, sums: &mut Sums) {
        let Ok(stat) = procfs::stat(pid) else { return };
        // With that of children that have ended: most of a build's processes live between two samples.
        let reaped_time = if self.is_alone { 0 } else { stat.reaped_time };
        sums.cpu_seconds += procfs::seconds_of(stat.utime + stat.stime + reaped_time);
        if stat.state == 'Z' {
            return;
        }
        let Ok(mut status) = procfs::status(pid) else { return };
        // It is ending: page faults since the last look would count as known, and what they brought was not seen.
        if stat.rss_pages == 0 && status.rss_anon.is_none() {
            return;
        }
        let ours = self.ours(status.rss_shmem);
        status.rss_shmem = status.rss_shmem.map(|bytes| bytes - ours);
        let rss = (stat.rss_pages * procfs::page_bytes()).saturating_sub(ours);
        let key = ProcessKey { pid, start_ticks: stat.starttime };
        // Another program has nothing of its parent's.
        let begins = self.seen.get(&key).is_none_or(|seen| seen.stack_start != stat.stack_start);
        let inherited_bytes = begins.then(|| self.inherited(&stat, status.rss_anon));
        let started = procfs::start_seconds(stat.starttime) - since;
        let seen = self.seen.entry(key).or_insert_with(|| Seen {
            record: ProcessRecord {
                parent: Some(stat.ppid),
                started_seconds: Some(started),
                own: status.own_pid.map(|own| OwnPid { pid: own, namespace: procfs::pid_namespace(pid) }),
                ..ProcessRecord::new(key, "sampled")
            },
            alive: true,
            gone: None,
            rss: 0,
            stack_start: 0,
            status: procfs::Status::default(),
            largest: Resident::default(),
            io_delay: 0.0,
        });
        seen.alive = true;
        seen.rss = rss;
        seen.stack_start = stat.stack_start;
        seen.largest.inherited_bytes = inherited_bytes.unwrap_or(seen.largest.inherited_bytes);
        seen.record.command.clone_from(&stat.comm);
        seen.record.max_rss_bytes = status.vm_hwm.or(Some(rss)).max(seen.record.max_rss_bytes);
        seen.record.user_seconds = Some(procfs::seconds_of(stat.utime));
        seen.record.system_seconds = Some(procfs::seconds_of(stat.stime));
        seen.record.minor_faults = Some(stat.minflt);
        seen.record.major_faults = Some(stat.majflt);
        seen.largest = seen.largest.or_now(
            stat.rss_pages * procfs::page_bytes(),
            status.rss_anon.unwrap_or(0),
            status.rss_shmem.is_none_or(|shared| shared > 0),
            stat.minflt * procfs::page_bytes(),
        );
        seen.status = status;
        sums.tasks += stat.num_threads;
        let mut delay = io_delay(&stat);
        if stat.num_threads > 1 || sums.waiting.is_some() {
            delay = 0.0;
            for task in procfs::tasks(pid).unwrap_or_default() {
                let Ok(task) = procfs::task_stat(pid, task) else { continue };
                delay += io_delay(&task);
                if let Some(waiting) = sums.waiting.as_mut().filter(|_| task.state == 'D') {
                    *waiting += 1;
                }
            }
        }
        // Threads that have gone take their delay along.
        seen.io_delay = seen.io_delay.max(delay);
    }

    /// Heap that a process that begins has from its parent.
    fn inherited(&self, stat: &procfs::Stat, heap: Option<u64>) -> u64 {
        let is_parent = |seen: &&Seen| {
            seen.record.key.pid == stat.ppid && seen.stack_start == stat.stack_start && stat.stack_start != 0
        };
        let parent = self.seen.values().rfind(is_parent);
        parent.and_then(|parent| parent.status.rss_anon).min(heap).unwrap_or(0)
    }

    /// Reads the proportional sets, of all processes in one go: a page that one more process maps counts less in all the
    /// others, so sets that were read at different times do not add up.
    fn roll_up(&mut self, pace: &mut Pace, elapsed: Duration, sums: &mut Sums, no_more_came: &dyn Fn() -> bool) {
        let now: Vec<Level> = self.seen.values().filter(|s| s.alive && s.rss > 0).map(Seen::level).collect();
        let settled = !has_moved(&self.before, &now, SETTLED);
        let is_patient = self.unsettled < PATIENCE;
        let moved = moved(&self.before, &now);
        self.gained = self.gained.saturating_add(moved.gained);
        self.lost = self.lost.saturating_add(moved.lost);
        (sums.gained, sums.lost) = (self.gained, self.lost);
        self.most.heap = self.most.heap.saturating_add(moved.heap_gained);
        self.most.shared = self.most.shared.saturating_add(moved.shared_gained);
        self.before.clone_from(&now);
        let bytes: u64 = now.iter().map(|level| level.rss).sum();
        let expected = LOCK_SECONDS_PER_PROCESS * now.len() as f64 + LOCK_SECONDS_PER_BYTE * bytes as f64;
        if !settled && is_patient {
            self.unsettled += 1;
            return;
        }
        if !has_moved(&self.rolled_up, &now, MOVED) || !pace.may_lock(elapsed, Duration::from_secs_f64(expected)) {
            return;
        }
        let begin = Instant::now();
        let sets: Result<Vec<_>, _> = now.iter().filter_map(|level| rollup(level.key.pid)).collect();
        pace.locked(begin.elapsed());
        let after: Vec<Level> = now.iter().copied().filter_map(level_again).collect();
        let is_disturbed = has_moved(&now, &after, STILL);
        if is_patient && is_disturbed {
            self.unsettled += 1;
            return;
        }
        self.unsettled = 0;
        self.rolled_up = now;
        let sets = match sets {
            Ok(sets) => sets,
            // What some of them have is not what all have.
            Err(error) => return self.unread = Some(error.to_string()),
        };
        let sum = |of: fn(&procfs::SmapsRollup) -> Option<u64>| sets.iter().map(of).sum::<Option<u64>>();
        let pss_shared = sum(|r| r.pss_shmem);
        let ours = self.ours(pss_shared);
        sums.pss = sum(|r| r.pss).map(|bytes| bytes.saturating_sub(ours));
        sums.pss_anon = sum(|r| r.pss_anon);
        sums.pss_file = sum(|r| r.pss_file);
        sums.pss_shared = pss_shared.map(|bytes| bytes - ours);
        // A process that nobody has read has its part of what the others share.
        sums.held = sums.pss.filter(|_| !is_disturbed && no_more_came()).map(|pss| {
            // What others have mapped, too, counts less than one page in PSS.
            let parts = [sums.pss_anon, sums.pss_file, sums.pss_shared];
            let largest = [|s: &Seen| s.status.rss_anon, |s: &Seen| s.status.rss_file, |s: &Seen| s.status.rss_shmem]
                .map(|of| self.seen.values().filter(|s| s.alive).filter_map(of).max());
            let held: Option<u64> = parts.into_iter().zip(largest).map(|(part, largest)| part.max(largest)).sum();
            held.unwrap_or(pss)
        });
    }

    /// At least so much do the processes alive hold together: what forks of one another share is no more than what the largest of
    /// them has, and files and shared memory may be the same in all.
    fn least(alive: &[&Seen]) -> Least {
        let largest =
            |of: fn(&procfs::Status) -> Option<u64>| alive.iter().filter_map(|s| of(&s.status)).max().unwrap_or(0);
        let mut forks: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for seen in alive {
            let (heap, swap) = forks.entry(seen.stack_start).or_default();
            *heap = (*heap).max(seen.status.rss_anon.unwrap_or(0));
            *swap = (*swap).max(seen.status.vm_swap.unwrap_or(0));
        }
        Least {
            heap: forks.values().map(|(heap, _)| heap).sum(),
            file: largest(|s| s.rss_file),
            shared: largest(|s| s.rss_shmem),
            swap: forks.values().map(|(_, swap)| swap).sum(),
        }
    }

    fn add(&mut self, sums: &mut Sums) {
        for seen in self.seen.values() {
            sums.minor_faults += seen.record.minor_faults.unwrap_or(0);
            sums.major_faults += seen.record.major_faults.unwrap_or(0);
            sums.io_delay_seconds += seen.io_delay;
        }
        let alive: Vec<&Seen> = self.seen.values().filter(|s| s.alive).collect();
        // One that is just ending has no memory left, and no lines of it.
        let with_memory = || alive.iter().filter(|s| s.status.vm_rss.is_some());
        let status = |of: fn(&procfs::Status) -> Option<u64>| with_memory().map(|s| of(&s.status)).sum::<Option<u64>>();
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
        let largest = |of: fn(&procfs::Status) -> Option<u64>| alive.iter().filter_map(|s| of(&s.status)).max();
        sums.largest_shared = largest(|s| s.rss_shmem);
        sums.largest_hugetlb = largest(|s| s.hugetlb_pages);
        // A reading is both bounds at once.
        let quiet = |set: Option<u64>| set.filter(|_| sums.held.is_some());
        let (heap, shared) = (quiet(sums.pss_anon), quiet(sums.pss_shared));
        sums.least = Processes::least(&alive);
        sums.least.heap = sums.least.heap.max(heap.unwrap_or(0));
        sums.least.shared = sums.least.shared.max(shared.unwrap_or(0));
        sums.held_least = (sums.least.heap + sums.least.file + sums.least.shared).min(sums.rss);
        let known = |most: u64, sum: Option<u64>, set: Option<u64>, least: u64| {
            most.min(sum.unwrap_or(0)).min(set.unwrap_or(u64::MAX)).max(least)
        };
        self.most = Most {
            heap: known(self.most.heap, sums.rss_anon, heap, sums.least.heap),
            shared: known(self.most.shared, sums.rss_shared, shared, sums.least.shared),
        };
        sums.most = self.most;
    }

    /// RSS of each process alive that gets a line of its own.
    pub fn own_lines(&self) -> impl Iterator<Item = (ProcessKey, u64)> {
        self.seen.values().take(OWN_LINES).filter(|s| s.alive).map(|s| (s.record.key, s.rss))
    }

    /// What is known of each, in order of their start. A process that is gone is given the life it was seen for.
    pub fn into_records(self) -> Vec<ProcessRecord> {
        let record = |seen: Seen| {
            let start = procfs::start_seconds(seen.record.key.start_ticks);
            let lifetime_seconds = seen.gone.map(|gone| (gone - start).max(0.0));
            ProcessRecord { largest_seen: Some(seen.largest), lifetime_seconds, ..seen.record }
        };
        let mut records: Vec<_> = self.seen.into_values().map(record).collect();
        records.sort_by_key(|record| (record.key.start_ticks, record.key.pid));
        records
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_time_of_children_too_short_to_be_seen_is_counted() {
        let burn = "for i in 1 2 3 4 5 6 7 8; do sh -c 'i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done'; done; exec sleep 60";
        let mut job = Command::new("sh").args(["-c", burn]).spawn().unwrap();
        let pid = job.id() as i32;
        let (mut processes, mut alone, mut pace) = (Processes::new(false, 0), Processes::new(true, 0), Pace::new(None));
        let deadline = Instant::now() + Duration::from_secs(60);
        // Only the shell is looked at, so none of its children is ever seen alive.
        let reaped = loop {
            let stat = procfs::stat(pid).unwrap();
            if stat.comm == "sleep" || Instant::now() > deadline {
                break procfs::seconds_of(stat.reaped_time);
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let sums = processes.look(&[pid], 0.0, &mut pace, Duration::ZERO, false, &Vec::new);
        let own = alone.look(&[pid], 0.0, &mut pace, Duration::ZERO, false, &Vec::new).cpu_seconds;
        job.kill().unwrap();
        job.wait().unwrap();
        assert!(reaped > 0.05 && sums.cpu_seconds >= reaped, "{} of {reaped}", sums.cpu_seconds);
        assert!(own <= sums.cpu_seconds - reaped, "a process watched alone has {own} of its own");
        let after = processes.look(&[], 0.0, &mut pace, Duration::ZERO, false, &Vec::new);
        assert_eq!(after.cpu_seconds, sums.cpu_seconds, "it never falls");
    }
}
