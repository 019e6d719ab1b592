//! Characters that steer a terminal or turn the order of what is read, and how they are shown.
//!
//! Names of processes, files and cgroups, records and messages of other programs may hold them. Everything that is printed
//! passes one of these functions last.

use std::fmt::Write;

/// Whether a character does something beside being shown: control characters (ESC, CR, BEL, C1), changes of the direction
/// of writing, and the separators of lines and paragraphs.
pub fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> String {
    text.chars().map(|c| if steers(c) && !stays(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Text of one line with nothing in it that could steer a terminal.
pub fn printable(text: &str) -> String {
    shown(text, |_| false)
}

/// Text of several lines with nothing in it that could steer a terminal: line feeds and tabs stay.
pub fn printable_lines(text: &str) -> String {
    shown(text, |c| c == '\n' || c == '\t')
}

/// JSON with nothing in it that could steer a terminal: such characters, which stand in strings only, are written `\uXXXX`.
pub fn printable_json(json: &str) -> String {
    let mut printable = String::with_capacity(json.len());
    for c in json.chars() {
        if steers(c) && c != '\n' {
            // none of them is beyond the first plane
            let _ = write!(printable, "\\u{:04x}", u32::from(c));
        } else {
            printable.push(c);
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: &str = "a\u{1b}]0;title\u{7}b\r\u{9b}31m\u{202e}c\u{2028}";

    #[test]
    fn characters_that_steer_a_terminal_are_replaced() {
        assert_eq!(printable(TITLE), "a\u{fffd}]0;title\u{fffd}b\u{fffd}\u{fffd}31m\u{fffd}c\u{fffd}");
        assert_eq!(printable("größer\tals\n"), "größer\u{fffd}als\u{fffd}");
        assert_eq!(printable_lines("größer\tals\n\u{1b}[2J"), "größer\tals\n\u{fffd}[2J");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let json = serde_json::to_string_pretty(&[TITLE, "größer"]).unwrap();
        let printable = printable_json(&json);
        assert!(!printable.chars().any(|c| steers(c) && c != '\n'), "{printable:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&printable).unwrap(), [TITLE, "größer"]);
    }
}
