//! Errors in a trace.

use std::fmt;
use std::io;

/// Why a trace cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A record does not have the format.
    #[error("{0}; skip such records with --skip-bad, or check --format")]
    Bad(Bad),
    /// More records are malformed than tolerated.
    #[error("{first}; skip such records with --skip-bad, or check --format ({bad} of {all} are malformed)")]
    TooMany {
        /// The first of them.
        first: Bad,
        /// Number of malformed records.
        bad: u64,
        /// Number of records read.
        all: u64,
    },
    /// Compressed data is cut short or broken: the rest is lost.
    #[error("{0}; use what came before with --skip-bad")]
    Cut(Bad),
    /// The requested columns do not exist.
    #[error("{0}")]
    Columns(String),
    /// The file has an unsupported compression, or is an archive or binary data.
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

/// The first characters of the bytes, quoted for an error message.
pub(super) fn shown(bytes: &[u8]) -> String {
    const MAX_CHARS: usize = 40;
    let text: String = String::from_utf8_lossy(bytes).chars().take(MAX_CHARS + 1).collect();
    let safe: String =
        text.chars().take(MAX_CHARS).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    if text.chars().count() > MAX_CHARS { format!("'{safe}…'") } else { format!("'{safe}'") }
}
