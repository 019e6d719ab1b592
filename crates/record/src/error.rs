//! What can go wrong with a record, as sentences.

use std::io;
use std::path::PathBuf;

use crate::frame::VERSION;

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is there already.
    #[error("'{}' is there already and is left as it is; name another file, or remove it first", .0.display())]
    Exists(PathBuf),
    /// The system refused.
    #[error("'{}' could not be {doing}: {cause}", .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What was tried: `opened`, `written` …
        doing: &'static str,
        /// What the system said; in the sentence, so no source to be said again.
        cause: io::Error,
    },
    /// The file has no content.
    #[error("'{}' is empty: nothing was recorded in it", .0.display())]
    Empty(PathBuf),
    /// The file is something else.
    #[error("'{}' is not a bursar record; records are what `bursar run`, `bursar budget`, `bursar attribute` and `bursar watch --record` write (*.bursar)", .0.display())]
    NotARecord(PathBuf),
    /// The file was written by a later bursar.
    #[error(
        "'{}' has record version {found}, and this bursar reads up to version {VERSION}; use the bursar that wrote it, or a later one",
        .path.display()
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The file was cut before even its header was complete.
    #[error("'{}' is cut short before its header: nothing in it can be read", .0.display())]
    NoHeader(PathBuf),
    /// The file is a record, but something in it cannot be understood.
    #[error("'{}' is damaged: {what}; restore it from a copy", .path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// An entry holds a figure that is infinite or not a number.
    #[error("a figure that is infinite or not a number cannot be recorded (in {0})")]
    NotFinite(&'static str),
    /// The record could not be made into its final form, but it is all there.
    #[error(
        "'{}' could not be sealed: {cause}; what was measured is kept in it and can be read as it is; once the cause is gone, `bursar report` seals it",
        .path.display()
    )]
    Seal {
        /// Which file.
        path: PathBuf,
        /// What SQLite or the system said.
        cause: String,
    },
    /// The record belongs to a user whose commands are not run here.
    #[error(
        "'{}' belongs to user {owner}: to resume it runs the command in it with your rights; copy it to a file of yours once you have seen \
         its command with `bursar report`",
        .path.display()
    )]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// The component of the function.
        owner: u32,
    },
    /// Another process is still writing the record.
    #[error("'{}' is still being written by process {pid}; wait for its end, or end it", .path.display())]
    Busy {
        /// Which file.
        path: PathBuf,
        /// Who writes.
        pid: i32,
    },
}

/// What the functions of this crate give.
pub type Result<T, E = Error> = std::result::Result<T, E>;
