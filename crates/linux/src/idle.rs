//! Processors that have nothing to do.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::file;

/// Looks within one call.
const LOOKS: usize = 5;
const BETWEEN: Duration = Duration::from_millis(1);

/// Processors that this process may use and that nobody does, beside the caller: the median of a few looks within some
/// milliseconds.
pub fn processors() -> f64 {
    let all = thread::available_parallelism().map_or(1, usize::from) as f64;
    let mut looks = [0.0; LOOKS];
    for (number, look) in looks.iter_mut().enumerate() {
        if number > 0 {
            thread::sleep(BETWEEN);
        }
        *look = (all - running().unwrap_or(all)).max(0.0);
    }
    looks.sort_by(f64::total_cmp);
    looks[LOOKS / 2]
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
    fn whoever_asks_runs() {
        assert!(running().unwrap() >= 1.0);
        let all = thread::available_parallelism().unwrap().get() as f64;
        assert!((0.0..all).contains(&processors()));
    }
}
