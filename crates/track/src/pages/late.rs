//! Scans that come later than they are due, or are held up: other programs have the processors, or the kernel makes us wait.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::own_cpu;

/// The working set is of so many intervals together, and so is this.
const ROUNDS: usize = 8;

/// The longest delays of the last intervals, the interval that goes on last.
pub struct Late(VecDeque<Duration>);

/// A scan that has begun.
pub struct Scan {
    late: Duration,
    began: Instant,
    cpu: Duration,
}

impl Late {
    pub fn new() -> Late {
        Late(VecDeque::from([Duration::ZERO]))
    }

    /// A scan begins that was due then.
    pub fn begin(due: Instant) -> Scan {
        Scan { late: due.elapsed(), began: Instant::now(), cpu: own_cpu() }
    }

    /// It is done: what it did not use of the processor, it waited.
    pub fn end(&mut self, scan: &Scan) {
        let held_up = scan.began.elapsed().saturating_sub(own_cpu().saturating_sub(scan.cpu));
        self.note(scan.late.max(held_up));
    }

    fn note(&mut self, late: Duration) {
        if let Some(longest) = self.0.back_mut() {
            *longest = late.max(*longest);
        }
    }

    /// An interval is over: the longest of the last ones, in seconds.
    pub fn tell(&mut self) -> f64 {
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
        let told: Vec<f64> = (0..10).map(|_| late.tell()).collect();
        assert_eq!(told, [0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.0, 0.0]);
    }

    #[test]
    fn a_scan_is_late_by_the_time_since_it_was_due_or_by_what_held_it_up() {
        let mut late = Late::new();
        late.end(&Late::begin(Instant::now() - Duration::from_secs(2)));
        assert!(late.tell() >= 2.0);
        let mut held_up = Late::new();
        held_up.end(&Scan { late: Duration::ZERO, began: Instant::now() - Duration::from_secs(3), cpu: own_cpu() });
        assert!(held_up.tell() > 2.0);
    }
}
