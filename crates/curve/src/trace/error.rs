//! What can be wrong with a trace.

use std::fmt;
use std::io;

/// A trace that cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A record is not what the format says it is.
    #[error("{0}; skip such records with --skip-bad, or check --format")]
    Bad(Bad),
    /// More records are malformed than are passed over.
    #[error("{first}; skip such records with --skip-bad, or check --format ({bad} of {all} are malformed)")]
    TooMany {
        /// The first of them.
        first: Bad,
        /// How many are.
        bad: u64,
        /// Of so many that were read.
        all: u64,
    },
    /// Compressed data is cut short or broken: what follows is lost.
    #[error("{0}; use what came before with --skip-bad")]
    Cut(Bad),
    /// The columns asked for are not there.
    #[error("{0}")]
    Columns(String),
    /// The file is of another kind: compressed in a way that is not read, an archive, or binary data.
    #[error("{0}")]
    OtherFile(String),
    /// The input could not be read.
    #[error("it could not be read: {0}")]
    Read(#[from] io::Error),
}

/// A malformed record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Where it begins.
    pub place: Place,
    /// What is wrong with it.
    pub what: String,
}

/// A place in a trace, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// An offset in bytes, from 0.
    Byte(u64),
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Line(line) => write!(f, "line {line}: {}", self.what),
            Place::Byte(offset) => write!(f, "byte {offset}: {}", self.what),
        }
    }
}

impl Bad {
    pub(super) fn at_line(line: u64, what: impl Into<String>) -> TraceError {
        TraceError::Bad(Bad { place: Place::Line(line), what: what.into() })
    }

    pub(super) fn at_byte(offset: u64, what: impl Into<String>) -> TraceError {
        TraceError::Bad(Bad { place: Place::Byte(offset), what: what.into() })
    }
}

/// A few characters of what was found, for a sentence.
pub(super) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let text: String = String::from_utf8_lossy(bytes).chars().take(MOST + 1).collect();
    let safe: String =
        text.chars().take(MOST).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    if text.chars().count() > MOST { format!("'{safe}…'") } else { format!("'{safe}'") }
}
