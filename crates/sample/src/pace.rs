//! How often to sample, so that sampling costs next to nothing.

use std::time::Duration;

/// Of one core: what sampling may cost.
const CPU_SHARE: f64 = 0.006;
/// The same where the job keeps all processors busy and would have had that time: it loses more than is taken.
const BUSY_CPU_SHARE: f64 = 0.003;
/// A job that uses so much of the processors' time keeps them busy.
const BUSY: f64 = 0.9;
/// Of the run's time: how long the target's mmap lock may be held by reading smaps_rollup.
const LOCK_SHARE: f64 = 0.005;
/// What a short run may spend on smaps_rollup before its length is known.
const LOCK_ALLOWANCE: Duration = Duration::from_millis(5);
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(10);

/// Decides when the next sample is due and whether a costly read may be made.
pub struct Pace {
    fixed: Option<Duration>,
    cost: f64,
    cpu_share: f64,
    processors: f64,
    /// When the last sample was taken, and the CPU seconds that the job had used by then.
    used: Option<(Duration, f64)>,
    lock_held: Duration,
}

impl Pace {
    /// `fixed`: the person's `--interval`; `None` adapts.
    pub fn new(fixed: Option<Duration>) -> Pace {
        let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        Pace { fixed, cost: 0.0, cpu_share: CPU_SHARE, processors, used: None, lock_held: Duration::ZERO }
    }

    /// Told what a sample cost in CPU time, and the CPU seconds that the job had used by then: one that was there before has
    /// used some that do not count.
    pub fn spent(&mut self, cpu: Duration, elapsed: Duration, job_seconds: f64) {
        if let Some((at, used)) = self.used.replace((elapsed, job_seconds)) {
            let all = self.processors * elapsed.saturating_sub(at).as_secs_f64();
            self.cpu_share = if job_seconds - used > BUSY * all { BUSY_CPU_SHARE } else { CPU_SHARE };
        }
        let cost = cpu.as_secs_f64();
        self.cost = if self.cost == 0.0 { cost } else { 0.8 * self.cost + 0.2 * cost };
    }

    /// Time from one sample to the next.
    pub fn interval(&self, elapsed: Duration) -> Duration {
        // A run of hours needs not many more rows than a run of minutes, and each must be sealed: the time from one to the
        // next is a 500th of the time so far.
        let by_length = elapsed / 500;
        // Where looking is slow (an emulator, thousands of processes), a short run must still be seen a few times: after
        // half of its time so far, which is six times from 0.1 to 1 second and ever more seldom.
        let by_cost = Duration::from_secs_f64(self.cost / self.cpu_share).min(elapsed / 2);
        self.fixed.unwrap_or_else(|| by_cost.max(by_length).clamp(SHORTEST, LONGEST))
    }

    /// Whether a read that holds the lock for about `expected` may be made now.
    pub fn may_lock(&self, elapsed: Duration, expected: Duration) -> bool {
        self.lock_held + expected <= LOCK_ALLOWANCE + elapsed.mul_f64(LOCK_SHARE)
    }

    /// Told how long such a read took.
    pub fn locked(&mut self, time: Duration) {
        self.lock_held += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costly_sample_is_taken_less_often() {
        let (mut pace, by_length) = (Pace::new(None), Duration::from_millis(120));
        assert_eq!(pace.interval(Duration::from_secs(60)), by_length);
        pace.spent(Duration::from_millis(6), Duration::from_secs(1), 0.0);
        assert_eq!(pace.interval(Duration::from_secs(60)), Duration::from_secs(1));
    }

    #[test]
    fn a_job_that_keeps_all_processors_busy_is_looked_at_half_as_often_whatever_it_had_used_before() {
        let mut pace = Pace { processors: 2.0, ..Pace::new(None) };
        let mut interval_after = |second: u64, job_seconds| {
            pace.spent(Duration::from_millis(6), Duration::from_secs(second), job_seconds);
            pace.interval(Duration::from_secs(60))
        };
        assert_eq!(interval_after(1, 3600.0), Duration::from_secs(1), "used before it was attached to");
        assert_eq!(interval_after(2, 3601.0), Duration::from_secs(1), "one of two processors");
        assert_eq!(interval_after(3, 3602.9), Duration::from_secs(2), "both");
        assert_eq!(interval_after(4, 3603.0), Duration::from_secs(1));
    }

    #[test]
    fn a_short_run_is_seen_a_few_times_whatever_it_costs() {
        let mut pace = Pace::new(None);
        pace.spent(Duration::from_millis(100), Duration::ZERO, 0.0);
        let (mut elapsed, mut samples) = (Duration::ZERO, 0);
        while elapsed < Duration::from_secs(1) {
            elapsed += pace.interval(elapsed);
            samples += 1;
        }
        assert!((6..20).contains(&samples), "{samples}");
    }

    #[test]
    fn the_persons_interval_is_kept_whatever_it_costs() {
        let mut pace = Pace::new(Some(Duration::from_millis(5)));
        pace.spent(Duration::from_secs(1), Duration::ZERO, 0.0);
        assert_eq!(pace.interval(Duration::from_secs(3600)), Duration::from_millis(5));
    }

    #[test]
    fn the_lock_is_never_held_for_more_than_its_share() {
        let mut pace = Pace::new(None);
        let read = Duration::from_millis(10);
        let mut held = Duration::ZERO;
        for second in 0..100 {
            let elapsed = Duration::from_secs(second);
            while pace.may_lock(elapsed, read) {
                pace.locked(read);
                held += read;
            }
            assert!(held <= LOCK_ALLOWANCE + elapsed.mul_f64(LOCK_SHARE));
        }
        assert!(held >= Duration::from_millis(480));
    }
}
