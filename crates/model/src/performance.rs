//! The paper's measures of a memory budget (MEMSYS 2020, equations 1 and 3).

/// Equation 1: the least run time over this one, at most 1 where the least is the least. `None` for a run of no time.
pub fn performance(min_run_seconds: f64, run_seconds: f64) -> Option<f64> {
    (run_seconds > 0.0).then(|| min_run_seconds / run_seconds)
}

/// Equation 3: performance, weighed by how much more memory was used than the least. `None` for no memory or no time.
pub fn performance_per_gb(min_bytes: u64, min_run_seconds: f64, bytes: u64, run_seconds: f64) -> Option<f64> {
    let performance = performance(min_run_seconds, run_seconds)?;
    (bytes > 0).then(|| min_bytes as f64 / bytes as f64 * performance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_time_and_twice_the_memory_is_a_quarter_per_gigabyte() {
        assert_eq!(performance(10.0, 20.0), Some(0.5));
        assert_eq!(performance_per_gb(100, 10.0, 200, 20.0), Some(0.25));
    }

    #[test]
    fn nothing_divided_by_nothing_is_unknown() {
        assert_eq!(performance(1.0, 0.0), None);
        assert_eq!(performance_per_gb(1, 1.0, 0, 1.0), None);
    }
}
