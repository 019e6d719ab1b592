//! Processors that have nothing to do.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::file;

/// Looks within one call, at most.
const LOOKS: usize = 5;
/// So many that find the same are the median, whatever the others would find.
const ENOUGH: usize = LOOKS / 2 + 1;
const BETWEEN: Duration = Duration::from_millis(1);

/// Processors that this process may use and that nobody does, beside the caller: the median of a few looks within some
/// milliseconds.
pub fn processors() -> f64 {
    let all = thread::available_parallelism().map_or(1, usize::from) as f64;
    median(|number| {
        if number > 0 {
            thread::sleep(BETWEEN);
        }
        (all - running().unwrap_or(all)).max(0.0)
    })
}

/// Of what looks find, of which there are no more than it takes.
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

/// Threads that run or want to, the caller's own included.
fn running() -> Option<f64> {
    let text = file::read_if_there(Path::new("/proc/stat"))?;
    text.lines().find_map(|line| line.strip_prefix("procs_running "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_looks_are_taken_than_tell_the_median() {
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
    fn whoever_asks_runs() {
        assert!(running().unwrap() >= 1.0);
        let all = thread::available_parallelism().unwrap().get() as f64;
        assert!((0.0..all).contains(&processors()));
    }
}
