//! Errors in a text, with their place.

use std::fmt;

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line, from 1.
    pub line: usize,
    /// The character within it, from 1.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// All errors in a text, by line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Malformed(pub Vec<Wrong>);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

fn lines(wrong: &[Wrong]) -> String {
    wrong.iter().map(Wrong::to_string).collect::<Vec<_>>().join("\n")
}

/// The first characters of the text, quoted for an error message.
pub(crate) fn shown(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let safe = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let more = if text.chars().count() > MAX_CHARS { "…" } else { "" };
    format!("'{}{more}'", text.chars().take(MAX_CHARS).map(safe).collect::<String>())
}

/// The words of a line, each with its column.
pub(crate) fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let column = move |word: &str| line[..word.as_ptr() as usize - line.as_ptr() as usize].chars().count() + 1;
    line.split_whitespace().map(move |word| (column(word), word))
}
