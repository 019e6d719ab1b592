//! Exit records of processes that this test starts.

use std::process::Command;
use std::time::{Duration, Instant};

use linux::taskstats::{ExitRecord, Listener};

use crate::support::skip;

fn record_of(listener: &mut Listener, pid: i32) -> ExitRecord {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let batch = listener.poll().unwrap();
        if let Some(record) = batch.records.into_iter().find(|record| record.pid == pid && !record.is_group) {
            return record;
        }
        assert!(Instant::now() < deadline, "no record of {pid} came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_short_process_has_the_figures_of_wait4() {
    let mut listener = match Listener::open() {
        Ok(listener) => listener,
        Err(error) => return skip(&error.to_string()),
    };
    #[expect(clippy::zombie_processes, reason = "wait4 is what reaps it")]
    let child =
        Command::new("dd").args(["if=/dev/zero", "of=/dev/null", "bs=30M", "count=1", "status=none"]).spawn().unwrap();
    let pid = child.id() as i32;
    let ended = linux::wait::wait4(pid, true).unwrap().unwrap();
    let record = record_of(&mut listener, pid);
    assert_eq!((record.comm.as_str(), record.exit_code), ("dd", 0));
    assert_eq!(record.ppid, std::process::id() as i32);
    assert!(record.tgid.is_none_or(|tgid| tgid == pid), "{record:?}");
    // Not compared with wait4's, which includes the peak of this test from before exec.
    assert!((30 << 20..36 << 20).contains(&record.hiwater_rss), "{record:?}");
    assert!(record.minflt.abs_diff(ended.rusage.minor_faults) < 200, "{record:?} {ended:?}");
    // One counts ticks, the other is exact.
    let (ticks, exact) =
        ((record.utime_us + record.stime_us) as f64 / 1e6, ended.rusage.user_seconds + ended.rusage.system_seconds);
    assert!((ticks - exact).abs() < 0.05 + exact / 2.0, "{record:?} {ended:?}");
    assert!(record.elapsed_us > 1000 && record.elapsed_us < 20_000_000);
}
