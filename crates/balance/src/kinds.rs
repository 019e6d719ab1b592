//! Which memory LRU of all kinds would hold.

use model::AgeBytes;

/// The few pages that are neither active nor idle do not tell the one from the other.
const NEARLY_ALL: f64 = 0.98;

/// What a program uses of late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Active {
    /// All that was accessed within so many seconds: an LRU of all kinds of pages holds that and hardly more.
    pub seconds: f64,
    /// So much.
    pub bytes: u64,
}

impl Active {
    /// What leaves first when there is so much memory, by the ages of all that the program has accessed: what was not accessed for so many seconds.
    pub fn oldest(limit: u64, ages: &[AgeBytes]) -> f64 {
        let mut bytes = 0;
        let mut younger = 0.0;
        for age in ages {
            bytes += age.bytes;
            match age.below.filter(|_| bytes <= limit) {
                Some(below) => younger = below,
                None => break,
            }
        }
        younger
    }

    /// With so much memory, by the ages of all that the program has accessed; `None`: all of it fits.
    ///
    /// The kernel has a list for each kind, and takes from that of files first (the budgeting paper, 3.2 and 4.8): what is idle longer than
    /// this is then held while what is active is read again and again.
    pub fn within(limit: u64, ages: &[AgeBytes]) -> Option<Active> {
        let sums = ages.iter().scan(0, |sum, age| {
            *sum += age.bytes;
            Some((age.below, *sum))
        });
        let sums: Vec<(Option<f64>, u64)> = sums.filter(|(_, sum)| *sum > 0).collect();
        let beyond = sums.iter().position(|(_, sum)| *sum > limit)?;
        // Even if the youngest alone are too many, those that are older are not held.
        let (_, bytes) = sums[beyond.saturating_sub(1)];
        let nearly = (bytes as f64 * NEARLY_ALL) as u64;
        let seconds = sums.iter().find(|(_, sum)| *sum >= nearly)?.0?;
        Some(Active { seconds, bytes })
    }

    /// How much that is idle for longer has to leave.
    pub fn excess(&self, limit: u64, idle: u64) -> u64 {
        (self.bytes + idle).saturating_sub(limit).min(idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn ages(classes: &[(f64, u64)], never: u64) -> Vec<AgeBytes> {
        let known = classes.iter().map(|(below, mib)| AgeBytes { below: Some(*below), bytes: mib * MIB });
        known.chain([AgeBytes { below: None, bytes: never * MIB }]).collect()
    }

    #[test]
    fn an_idle_heap_leaves_as_much_as_the_looped_file_needs() {
        let active = Active::within(500 * MIB, &ages(&[(0.5, 399), (1.0, 0), (8.0, 1), (16.0, 300)], 100)).unwrap();
        assert_eq!(active, Active { seconds: 0.5, bytes: 400 * MIB });
        assert_eq!(active.excess(500 * MIB, 400 * MIB), 300 * MIB);
        assert_eq!(active.excess(500 * MIB, 100 * MIB), 0, "what is left fits");
    }

    #[test]
    fn what_is_oldest_leaves_first() {
        let ages = ages(&[(0.5, 400), (1.0, 100), (2.0, 300)], 100);
        let oldest = |mib| Active::oldest(mib * MIB, &ages);
        assert_eq!((oldest(300), oldest(450), oldest(600), oldest(850), oldest(1000)), (0.0, 0.5, 1.0, 2.0, 2.0));
        assert_eq!(Active::oldest(MIB, &[]), 0.0);
    }

    #[test]
    fn where_all_fits_nothing_leaves() {
        assert_eq!(Active::within(800 * MIB, &ages(&[(0.5, 400)], 400)), None);
        assert_eq!(Active::within(0, &[]), None);
    }

    #[test]
    fn where_what_is_active_alone_does_not_fit_all_that_is_idle_leaves() {
        let active = Active::within(300 * MIB, &ages(&[(4.0, 400)], 200)).unwrap();
        assert_eq!((active.seconds, active.excess(300 * MIB, 200 * MIB)), (4.0, 200 * MIB));
    }
}
