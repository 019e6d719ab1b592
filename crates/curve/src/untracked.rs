//! Memory that was accessed while it was not tracked, and that no tracked interval has shown since.
//!
//! Of a few pages the Accessed bits are read also while memory is not tracked. If they show that more was accessed than the working
//! set that is reported, then that working set is refuted: who touches so much memory in one interval misses most of it with less.
//! How much is needed instead is not known until a tracked interval shows it. A program that touches its memory once in some
//! intervals could otherwise do so each time just when memory is not tracked, and be reported to need nothing.

/// Tracked intervals that may go by without a sign of it, at first, until it is taken to be over: a program that touches its memory once in
/// so many intervals is seen to. If it happens again, twice as many, up to a most.
const FIRST_PATIENCE: u32 = 8;
const MOST_PATIENCE: u32 = 64;

/// The working set may be less than what was accessed by this part: the few pages are a sample.
const MARGIN: f64 = 0.1;

/// What is not explained yet.
#[derive(Clone, Debug)]
pub struct Untracked {
    /// So much was accessed in one interval, in bytes; 0: nothing is left to explain.
    bytes: u64,
    /// Tracked intervals until it is taken to be over.
    left: u32,
    patience: u32,
}

impl Default for Untracked {
    fn default() -> Untracked {
        Untracked { bytes: 0, left: 0, patience: FIRST_PATIENCE }
    }
}

impl Untracked {
    /// An interval without tracking in which at least so many bytes were accessed again, while a working set of `wss` bytes is reported.
    /// `unit`: what may be accessed beside a working set.
    pub fn accessed(&mut self, bytes: u64, wss: u64, unit: u64) {
        if !covers(wss, bytes.saturating_sub(unit)) {
            self.bytes = self.bytes.max(bytes);
            self.left = self.patience;
        }
    }

    /// A tracked interval, after which a working set of `wss` bytes is reported.
    pub fn tracked(&mut self, wss: u64) {
        if self.bytes == 0 {
            return;
        }
        self.left = self.left.saturating_sub(1);
        if covers(wss, self.bytes) {
            *self = Untracked::default();
        } else if self.left == 0 {
            (self.bytes, self.patience) = (0, (2 * self.patience).min(MOST_PATIENCE));
        }
    }

    /// So many bytes were accessed in one interval, and the working set that is reported is less.
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
    fn a_working_set_below_what_was_accessed_is_refuted_until_one_is_seen_that_is_not() {
        let mut untracked = Untracked::default();
        untracked.accessed(100, 10, 1);
        untracked.tracked(10);
        assert_eq!(untracked.bytes(), Some(100));
        untracked.tracked(95);
        assert_eq!(untracked.bytes(), None);
    }

    #[test]
    fn what_a_working_set_explains_is_no_news() {
        let mut untracked = Untracked::default();
        untracked.accessed(100, 95, 0);
        untracked.accessed(3, 0, 3);
        assert_eq!(untracked.bytes(), None);
    }

    #[test]
    fn what_is_not_seen_again_is_over_after_longer_and_longer() {
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
