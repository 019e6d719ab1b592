//! Exit records of the kernel's taskstats: what each process that ended had used. The rung below the exit tracepoint, for
//! kernels on which no BPF program may be loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use linux::procfs;
use linux::taskstats::{ExitRecord, Listener};
use model::{ProcessKey, ProcessRecord};

/// Receives the records of the whole machine, and gives those of one job.
pub struct ExitRecords {
    listener: Listener,
    began_ns: u64,
    processes: BTreeMap<i32, ProcessRecord>,
    lost: bool,
}

impl ExitRecords {
    /// Receives from now on; the run begins now.
    ///
    /// # Errors
    /// Without root, in a PID namespace other than the first, or on a kernel built without taskstats.
    pub fn start() -> Result<ExitRecords, linux::Error> {
        if procfs::pid_namespace(std::process::id() as i32).is_some_and(|own| own != procfs::FIRST_PID_NAMESPACE) {
            let source = io::Error::other("bursar runs in a PID namespace, and they have the numbers of the first one");
            return Err(linux::Error::System { what: "following exit records".into(), source });
        }
        let listener = Listener::open()?;
        Ok(ExitRecords { listener, began_ns: procfs::monotonic_ns(), processes: BTreeMap::new(), lost: false })
    }

    /// Takes what has arrived; to be called a few times a second, or records are lost.
    pub fn collect(&mut self) {
        let Ok(batch) = self.listener.poll() else {
            self.lost = true;
            return;
        };
        self.lost |= batch.lost;
        let now = (procfs::monotonic_ns() - self.began_ns) as f64 / 1e9;
        for record in batch.records.iter().filter(|record| !record.is_group) {
            self.add(record, now);
        }
    }

    /// The command's process and all that descend from it, in order of their start; and whether some may be missing.
    pub fn finish(mut self, command: i32) -> (Vec<ProcessRecord>, bool) {
        self.collect();
        let mut job = BTreeSet::from([command]);
        loop {
            let is_new =
                |p: &&ProcessRecord| !job.contains(&p.key.pid) && p.parent.is_some_and(|pid| job.contains(&pid));
            let children: Vec<i32> = self.processes.values().filter(is_new).map(|p| p.key.pid).collect();
            if children.is_empty() {
                break;
            }
            job.extend(children);
        }
        let mut records: Vec<_> = self.processes.into_values().filter(|p| job.contains(&p.key.pid)).collect();
        records.sort_by_key(|process| (process.key.start_ticks, process.key.pid));
        (records, self.lost)
    }

    /// One record is one thread's; a process is all of its threads.
    fn add(&mut self, record: &ExitRecord, now: f64) {
        let pid = record.tgid.unwrap_or(record.pid);
        let life = record.elapsed_us as f64 / 1e6;
        let process = self.processes.entry(pid).or_insert_with(|| ProcessRecord {
            parent: Some(record.ppid),
            command: record.comm.clone(),
            user_seconds: Some(0.0),
            system_seconds: Some(0.0),
            minor_faults: Some(0),
            major_faults: Some(0),
            io_delay_seconds: Some(0.0),
            thread_seconds: Some(0.0),
            ..ProcessRecord::new(ProcessKey { pid, start_ticks: 0 }, "taskstats")
        });
        let add = |to: &mut Option<f64>, seconds: f64| *to = to.map(|sum| sum + seconds);
        add(&mut process.user_seconds, record.utime_us as f64 / 1e6);
        add(&mut process.system_seconds, record.stime_us as f64 / 1e6);
        process.minor_faults = process.minor_faults.map(|n| n + record.minflt);
        process.major_faults = process.major_faults.map(|n| n + record.majflt);
        process.max_rss_bytes = process.max_rss_bytes.max(Some(record.hiwater_rss));
        // The kernel sometimes ends a delay that it never began: longer than the thread's life, it is no delay.
        let delay = record.blkio_delay_ns as f64 / 1e9;
        if delay <= life {
            add(&mut process.io_delay_seconds, delay);
            add(&mut process.thread_seconds, life);
        }
        if record.pid == pid {
            process.command.clone_from(&record.comm);
            process.lifetime_seconds = Some(life);
            process.started_seconds = Some(now - life);
            process.key.start_ticks = procfs::start_ticks(self.began_ns as f64 / 1e9 + now - life);
            let (signal, status) = ((record.exit_code & 0x7f) as i32, (record.exit_code >> 8 & 0xff) as i32);
            process.signal = (signal != 0).then_some(signal);
            process.exit_status = Some(if signal != 0 { 128 + signal } else { status });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn short_lived_children_of_the_command_are_found_and_nobody_elses() {
        let Ok(mut records) = ExitRecords::start() else {
            assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "exit records need root, and may not be skipped");
            eprintln!("skipped: needs root");
            return;
        };
        let mut command = Command::new("sh").args(["-c", "/bin/true; (/bin/true; exit 3); exit 0"]).spawn().unwrap();
        let mut other = Command::new("true").spawn().unwrap();
        command.wait().unwrap();
        other.wait().unwrap();
        records.collect();
        let (processes, lost) = records.finish(command.id() as i32);
        assert!(!lost);
        assert_eq!(processes.len(), 4, "{processes:#?}");
        assert!(processes.iter().all(|p| p.key.pid != other.id() as i32));
        assert!(processes.iter().all(|p| p.max_rss_bytes.is_some_and(|bytes| bytes > 100 << 10)));
        assert!(processes.iter().any(|p| p.exit_status == Some(3)));
    }
}
