//! Requirements of a test.

/// Returns whether the requirement is met. If not, prints what is missing, or fails with BURSAR_NO_SKIP=1.
pub fn need(what: &str, is_met: bool) -> bool {
    if !is_met {
        assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "this test needs {what}, and may not be skipped");
        eprintln!("skipped: needs {what}");
    }
    is_met
}
