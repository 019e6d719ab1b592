//! Idle processors.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::file;

/// Maximum number of samples per call.
const LOOKS: usize = 5;
/// If this many samples are equal, they are the median, whatever the others would be.
const ENOUGH: usize = LOOKS / 2 + 1;
const BETWEEN: Duration = Duration::from_millis(1);

/// Idle processors among those that this process may use, beside the caller: the median of a few samples within some milliseconds.
pub fn processors() -> f64 {
    let all = thread::available_parallelism().map_or(1, usize::from) as f64;
    median(|number| {
        if number > 0 {
            thread::sleep(BETWEEN);
        }
        (all - running().unwrap_or(all)).max(0.0)
    })
}

/// The median of samples, taking no more than needed.
fn median(look: impl FnMut(usize) -> f64) -> f64 {
    let mut found = Vec::with_capacity(LOOKS);
    for new in (0..LOOKS).map(look) {
        found.push(new);
        if found.iter().filter(|one| **one == new).count() == ENOUGH {
            return new;
        }
    }
    found.sort_by(f64::total_cmp);
    found[LOOKS / 2]
}

/// Threads that run or want to, including the caller.
fn running() -> Option<f64> {
    let text = file::read_if_present(Path::new("/proc/stat"))?;
    text.lines().find_map(|line| line.strip_prefix("procs_running "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_samples_are_taken_than_the_median_needs() {
        for (finds, expected, taken) in [
            ([1.0, 1.0, 1.0, 0.0, 0.0], 1.0, 3),
            ([1.0, 0.0, 1.0, 1.0, 0.0], 1.0, 4),
            ([1.0, 0.0, 1.0, 0.0, 0.0], 0.0, 5),
            ([3.0, 0.0, 1.0, 2.0, 4.0], 2.0, 5),
        ] {
            let mut looks = 0;
            let found = median(|number| {
                looks += 1;
                finds[number]
            });
            assert_eq!((found, looks), (expected, taken));
        }
    }

    #[test]
    fn the_caller_counts_as_running() {
        assert!(running().unwrap() >= 1.0);
        let all = thread::available_parallelism().unwrap().get() as f64;
        assert!((0.0..all).contains(&processors()));
    }
}
