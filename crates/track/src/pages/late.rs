//! Scans that start late or are held up, because other programs use the processors or the kernel makes bursar wait.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::own_cpu;

/// The working set covers 8 intervals, and so does this.
const ROUNDS: usize = 8;

/// The longest delay of each of the last intervals; the current interval is last.
pub struct Late(VecDeque<Duration>);

/// A scan in progress.
pub struct Scan {
    late: Duration,
    began: Instant,
    cpu: Duration,
}

impl Late {
    pub fn new() -> Late {
        Late(VecDeque::from([Duration::ZERO]))
    }

    /// Begins a scan that was due at `due`.
    pub fn begin(due: Instant) -> Scan {
        Scan { late: due.elapsed(), began: Instant::now(), cpu: own_cpu() }
    }

    /// Ends the scan. The time that it did not use the processor, it waited.
    pub fn end(&mut self, scan: &Scan) {
        let held_up = scan.began.elapsed().saturating_sub(own_cpu().saturating_sub(scan.cpu));
        self.note(scan.late.max(held_up));
    }

    fn note(&mut self, late: Duration) {
        if let Some(longest) = self.0.back_mut() {
            *longest = late.max(*longest);
        }
    }

    /// Ends an interval. Returns the longest delay of the last ones, in seconds.
    pub fn end_interval(&mut self) -> f64 {
        let longest = self.0.iter().max().copied().unwrap_or_default();
        self.0.push_back(Duration::ZERO);
        if self.0.len() > ROUNDS {
            self.0.pop_front();
        }
        longest.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_scan_counts_for_eight_intervals() {
        let mut late = Late::new();
        late.note(Duration::from_millis(300));
        late.note(Duration::from_millis(700));
        let delays: Vec<f64> = (0..10).map(|_| late.end_interval()).collect();
        assert_eq!(delays, [0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.0, 0.0]);
    }

    #[test]
    fn delay_is_the_late_start_or_the_wait_of_a_scan() {
        let mut late = Late::new();
        late.end(&Late::begin(Instant::now() - Duration::from_secs(2)));
        assert!(late.end_interval() >= 2.0);
        let mut held_up = Late::new();
        held_up.end(&Scan { late: Duration::ZERO, began: Instant::now() - Duration::from_secs(3), cpu: own_cpu() });
        assert!(held_up.end_interval() > 2.0);
    }
}
