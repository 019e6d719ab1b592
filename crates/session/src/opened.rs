//! Records as commands read them. One whose writer was killed is sealed first.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::anyhow;
use model::RecordKind;
use record::{Error, Record};

use crate::say::tell;
use history::state::state_path;

/// Reads a record. One that a killed bursar left is sealed, which a sentence on standard error says.
///
/// # Errors
/// That of the record; of one that does not exist, a sentence with the folder in which bursar keeps its records.
pub fn open(path: &Path) -> anyhow::Result<Record> {
    // Where it cannot be sealed, as in a folder that may not be written, it is read as it is.
    let sealed = is_own(path) && Record::seal_if_possible(path).unwrap_or(false);
    let record = Record::open(path).map_err(|error| match &error {
        Error::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound => missing(&error),
        _ => error.into(),
    })?;
    if sealed {
        tell!(
            "bursar: '{}' was cut off: the bursar that wrote it was killed. What it had written by then is sealed now.",
            path.display()
        );
    } else if !record.complete && !shows_it(record.header.kind) {
        tell!("bursar: '{}' has no end: it is still being written, or was cut off.", path.display());
    }
    Ok(record)
}

fn missing(error: &Error) -> anyhow::Error {
    match state_path().ok().filter(|folder| folder.is_dir()) {
        Some(folder) => anyhow!("{error}. bursar keeps its records in {0}; to list them: ls -t {0}", folder.display()),
        None => anyhow!("{error}. `bursar run` and `bursar budget` make records: none is kept here so far"),
    }
}

/// Whether reports of this kind say themselves that a record has no end.
fn shows_it(kind: RecordKind) -> bool {
    match kind {
        RecordKind::Run | RecordKind::Attach | RecordKind::Budget | RecordKind::Watch => true,
        RecordKind::Attribute | RecordKind::Faults | RecordKind::Advise => false,
    }
}

/// Whether the file itself, not one that a link leads to, belongs to this user: the records of others are only read.
fn is_own(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.uid() == own)
}
