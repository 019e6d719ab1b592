//! How often to scan, so that scanning uses a bounded share of a processor.

use std::time::Duration;

/// Scanning uses at most this share of one processor. Where `--interval` would need more, the interval is longer.
const MAX_PROCESSOR_SHARE: f64 = 0.2;
/// A message follows only where the interval has changed by more than this factor since the last message.
const MESSAGE_FACTOR: f64 = 2.0;
/// Longer intervals than this share beyond the wanted one are worth a message.
const SLACK: f64 = 1.5;

/// The interval between the begins of two scans.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    wanted: Duration,
    now: Duration,
    /// The interval in the last message to the operator.
    reported: Duration,
}

impl Pace {
    /// Starts with the interval that the user set.
    pub fn new(wanted: Duration) -> Pace {
        Pace { wanted, now: wanted, reported: wanted }
    }

    /// The interval now.
    pub fn interval(&self) -> Duration {
        self.now
    }

    /// Adapts the interval to a scan of `cgroups` cgroups that used `cpu` of CPU time. Returns a message if the interval has changed.
    pub fn after(&mut self, cpu: Duration, cgroups: usize) -> Option<String> {
        self.now = self.wanted.max(cpu.div_f64(MAX_PROCESSOR_SHARE));
        let (now, reported, wanted) = (self.now.as_secs_f64(), self.reported.as_secs_f64(), self.wanted.as_secs_f64());
        let is_another =
            now > reported * MESSAGE_FACTOR || now * MESSAGE_FACTOR < reported || (now == wanted && reported != wanted);
        if !is_another || (now > wanted && now < wanted * SLACK) {
            return None;
        }
        self.reported = self.now;
        Some(match now > wanted {
            true => format!(
                "a scan of {cgroups} cgroups uses {:.1} s of a processor: the interval is {now:.1} s instead of {wanted:.1} s, \
                 so that scans use at most {:.0} % of it",
                cpu.as_secs_f64(),
                100.0 * MAX_PROCESSOR_SHARE
            ),
            false => format!("the interval is {wanted:.1} s again"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn scans_that_are_cheap_keep_the_interval() {
        let mut pace = Pace::new(SECOND);
        assert_eq!(pace.after(Duration::from_millis(190), 100), None);
        assert_eq!(pace.interval(), SECOND);
    }

    #[test]
    fn dear_scans_lengthen_the_interval_with_one_message() {
        let mut pace = Pace::new(SECOND);
        let message = pace.after(3 * SECOND, 10_000).unwrap();
        assert!(
            message.contains("a scan of 10000 cgroups uses 3.0 s") && message.contains("15.0 s instead of 1.0 s"),
            "{message}"
        );
        assert_eq!(pace.interval(), 15 * SECOND);
        assert_eq!(pace.after(4 * SECOND, 10_000), None);
        assert_eq!(pace.interval(), 20 * SECOND);
        assert_eq!(pace.after(Duration::ZERO, 1).unwrap(), "the interval is 1.0 s again");
        assert_eq!(pace.after(Duration::ZERO, 1), None);
    }
}
