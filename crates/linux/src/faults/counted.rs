//! Page faults that are only counted, for users without root.

use std::io;

use model::{FaultFigures, FaultMoment, Faults};

use crate::perf::Counter;
use crate::procfs;

/// The source of the figures.
const RUNG: &str = "page-fault events of user space (perf), counted only";

/// Counts the faults of a process and of all that it starts.
#[derive(Debug)]
pub struct Counted {
    minor_and_major: [Counter; 2],
    /// Times of readings, CLOCK_MONOTONIC nanoseconds, and the counts.
    read: Vec<(u64, u64)>,
    /// One of this many readings is kept.
    one_in: usize,
    readings: usize,
}

impl Counted {
    /// Maximum number of kept readings; beyond it every other one is dropped.
    const MOST: usize = 4096;

    /// Counts from the moment when the process, or a child of it, calls exec.
    ///
    /// # Errors
    /// The kernel's error; `kernel.perf_event_paranoid` may forbid it.
    pub fn from_exec(pid: i32) -> io::Result<Counted> {
        let minor_and_major = Counter::minor_and_major_faults_from_exec(pid)?;
        Ok(Counted { minor_and_major, read: vec![(procfs::monotonic_ns(), 0)], one_in: 1, readings: 0 })
    }

    /// Records the current count.
    pub fn poll(&mut self) {
        self.readings += 1;
        if self.readings % self.one_in != 0 {
            return;
        }
        let count = self.minor_and_major.iter_mut().map(Counter::read).sum();
        self.read.push((procfs::monotonic_ns(), count));
        if self.read.len() > Self::MOST {
            self.read = self.read.iter().step_by(2).copied().collect();
            self.one_in *= 2;
        }
    }

    /// The results. Times are since `origin_ns` of CLOCK_MONOTONIC.
    pub fn finish(mut self, origin_ns: u64) -> Faults {
        self.one_in = 1;
        self.poll();
        let [minor, major] = &mut self.minor_and_major;
        let (minor, major) = (minor.read(), major.read());
        let seconds = |ns: u64| ns.saturating_sub(origin_ns) as f64 / 1e9;
        let moment = |two: &[(u64, u64)]| FaultMoment {
            seconds: seconds(two[0].0),
            count: two[1].1 - two[0].1,
            ..FaultMoment::default()
        };
        let length = |two: &[(u64, u64)]| two[1].0 - two[0].0;
        let lengths = self.read.windows(2).map(length).sum::<u64>() as f64 / (self.read.len() - 1).max(1) as f64;
        Faults {
            rung: RUNG.into(),
            overall: FaultFigures { count: minor + major, major_count: Some(major), ..FaultFigures::default() },
            moment_seconds: lengths / 1e9,
            moments: self.read.windows(2).map(moment).filter(|moment| moment.count > 0).collect(),
            ..Faults::default()
        }
    }
}
