//! What a test cannot do without.

/// Says what is missing where that may be skipped, and fails where not.
pub fn need(what: &str, there: bool) -> bool {
    if !there {
        assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "this test needs {what}, and may not be skipped");
        eprintln!("skipped: needs {what}");
    }
    there
}
