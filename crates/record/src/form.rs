//! Which of its two forms a record has.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{Error, Result};
use crate::frame::{HEADER_BYTES, MAGIC, VERSION};

/// How a record is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Appended to, while it is written.
    Framed,
    /// One SQLite file.
    Sealed,
}

const SQLITE: &[u8] = b"SQLite format 3\0";

/// Looks at the first bytes of a file.
pub(crate) fn form_of(path: &Path) -> Result<Form> {
    let io = |cause| Error::Io { path: path.into(), doing: "opened", cause };
    let kind = fs::metadata(path).map_err(io)?.file_type();
    // A pipe or a terminal would be waited for.
    if !kind.is_file() && !kind.is_dir() {
        return Err(Error::NotARecord(path.into()));
    }
    form_of_file(path, &File::open(path).map_err(io)?)
}

/// The same of an open file, whose position is then its start.
pub(crate) fn form_of_file(path: &Path, mut file: &File) -> Result<Form> {
    let io = |cause| Error::Io { path: path.into(), doing: "opened", cause };
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    file.take(SQLITE.len() as u64).read_to_end(&mut start).map_err(io)?;
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    if start.is_empty() {
        return Err(Error::Empty(path.into()));
    }
    if start == SQLITE {
        return Ok(Form::Sealed);
    }
    if !start.starts_with(&MAGIC[..start.len().min(MAGIC.len())]) {
        return Err(Error::NotARecord(path.into()));
    }
    match start.get(MAGIC.len()..HEADER_BYTES as usize) {
        None => Err(Error::NoHeader(path.into())),
        Some(version) => match u32::from_le_bytes([version[0], version[1], version[2], version[3]]) {
            0 => Err(Error::NotARecord(path.into())),
            found if found > VERSION => Err(Error::Newer { path: path.into(), found }),
            _ => Ok(Form::Framed),
        },
    }
}
