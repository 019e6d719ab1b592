//! What is kept out of records and reports: `--redact PATTERN`.

use std::sync::OnceLock;

use regex::Regex;

/// What stands in place of what was redacted.
const REDACTED: &str = "[redacted]";
/// The option of a record's header that says that something was.
pub const OPTION: &str = "redacted";

static PATTERNS: OnceLock<Vec<Regex>> = OnceLock::new();

/// Sets the patterns for the whole of this process, before anything is recorded.
pub fn set(patterns: &[Regex]) {
    let _ = PATTERNS.set(patterns.to_vec());
}

/// The text without what a pattern matches. Where a pattern has a group, only the first group goes: `--password=(.*)`.
pub fn redacted(text: &str) -> String {
    let patterns = PATTERNS.get().map(Vec::as_slice).unwrap_or_default();
    patterns.iter().fold(text.to_string(), |text, pattern| without(&text, pattern))
}

fn without(text: &str, pattern: &Regex) -> String {
    let mut kept = String::new();
    let mut from = 0;
    for found in pattern.captures_iter(text) {
        let Some(secret) = found.get(1).or_else(|| found.get(0)).filter(|secret| !secret.is_empty()) else { continue };
        kept.push_str(&text[from..secret.start()]);
        kept.push_str(REDACTED);
        from = secret.end();
    }
    kept + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_matches_is_redacted_or_its_first_group() {
        let on = |pattern: &str, text: &str| without(text, &Regex::new(pattern).unwrap());
        assert_eq!(on("hunter2", "--password=hunter2 -v"), "--password=[redacted] -v");
        assert_eq!(on("--password=(.*)", "--password=hunter2"), "--password=[redacted]");
        assert_eq!(on("(?i)token=([^ ]+)", "a TOKEN=x b token=y"), "a TOKEN=[redacted] b token=[redacted]");
        assert_eq!(on("x*", "abc"), "abc", "nothing matches nothing");
        assert_eq!(on("none", "as it was"), "as it was");
    }
}
