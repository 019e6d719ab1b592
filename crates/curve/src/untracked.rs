//! Memory that was accessed while tracking was off, and that no tracked interval has shown since.
//!
//! The Accessed bits of a small sample are read also while tracking is off. If they show that more was accessed than
//! the reported working set, that working set is refuted: a program that touches that much memory in one interval would
//! miss most of it with less. The true need is unknown until a tracked interval shows it. Otherwise a program could
//! touch its memory only while tracking is off, and be reported to need nothing.

/// Number of tracked intervals without such accesses after which they count as over, at first: a program that touches
/// its memory once in so many intervals is noticed. Doubled each time it happens again, up to a maximum.
const FIRST_PATIENCE: u32 = 8;
const MAX_PATIENCE: u32 = 64;

/// The working set may be smaller than the accessed memory by this part, because the small sample is imprecise.
const MARGIN: f64 = 0.1;

/// Accesses not explained yet.
#[derive(Clone, Debug)]
pub struct Untracked {
    /// Bytes accessed in one interval; 0: nothing is left to explain.
    bytes: u64,
    /// Tracked intervals until they count as over.
    left: u32,
    patience: u32,
}

impl Default for Untracked {
    fn default() -> Untracked {
        Untracked { bytes: 0, left: 0, patience: FIRST_PATIENCE }
    }
}

impl Untracked {
    /// Notes an interval without tracking in which at least this many known bytes were accessed, while a working set of
    /// `wss` bytes is reported. `unit`: what may be accessed besides a working set.
    pub fn accessed(&mut self, bytes: u64, wss: u64, unit: u64) {
        if !covers(wss, bytes.saturating_sub(unit)) {
            self.bytes = self.bytes.max(bytes);
            self.left = self.patience;
        }
    }

    /// Notes a tracked interval, after which a working set of `wss` bytes is reported.
    pub fn tracked(&mut self, wss: u64) {
        if self.bytes == 0 {
            return;
        }
        self.left = self.left.saturating_sub(1);
        if covers(wss, self.bytes) {
            *self = Untracked::default();
        } else if self.left == 0 {
            (self.bytes, self.patience) = (0, (2 * self.patience).min(MAX_PATIENCE));
        }
    }

    /// Bytes accessed in one interval, if the reported working set is smaller.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.bytes).filter(|bytes| *bytes > 0)
    }
}

fn covers(wss: u64, bytes: u64) -> bool {
    wss as f64 * (1.0 + MARGIN) >= bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_too_small_working_set_is_refuted_until_it_grows() {
        let mut untracked = Untracked::default();
        untracked.accessed(100, 10, 1);
        untracked.tracked(10);
        assert_eq!(untracked.bytes(), Some(100));
        untracked.tracked(95);
        assert_eq!(untracked.bytes(), None);
    }

    #[test]
    fn accesses_within_the_working_set_are_explained() {
        let mut untracked = Untracked::default();
        untracked.accessed(100, 95, 0);
        untracked.accessed(3, 0, 3);
        assert_eq!(untracked.bytes(), None);
    }

    #[test]
    fn unseen_accesses_expire_after_growing_times() {
        let mut untracked = Untracked::default();
        let waits: Vec<usize> = (0..5)
            .map(|_| {
                untracked.accessed(100, 10, 1);
                (1..).find(|_| {
                    untracked.tracked(10);
                    untracked.bytes().is_none()
                })
            })
            .map(Option::unwrap)
            .collect();
        assert_eq!(waits, [8, 16, 32, 64, 64]);
    }
}
