//! A record that somebody wants to go on with: whose it is matters, for its command is run again.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linux::secure_file::{Folder, is_trusted};
use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::form::{Form, form_of_file};
use crate::read::Record;
use crate::unseal::unseal;
use crate::writer::Writer;

/// An open record of root or the caller. What is read from it and what is written to it are the same file.
#[derive(Debug)]
pub struct Resumable {
    path: PathBuf,
    folder: Folder,
    name: OsString,
    file: File,
}

impl Resumable {
    /// Opens a record, framed or sealed. A link of that name is not followed.
    ///
    /// # Errors
    /// [`Error::Foreign`] if neither root nor the caller owns it; [`Error::Io`] if it cannot be read and written.
    pub fn open(path: &Path) -> Result<Resumable> {
        let io = |cause| Error::Io { path: path.into(), doing: "opened", cause };
        let (folder, name) = Folder::of(path).map_err(io)?;
        let file = open_own(path, &folder, &name)?;
        Ok(Resumable { path: path.into(), folder, name, file })
    }

    /// All that was recorded.
    ///
    /// # Errors
    /// Those of [`Record::open`].
    pub fn record(&self) -> Result<Record> {
        Record::of_file(&self.path, &self.file)
    }

    /// Goes on with it. A sealed one becomes a framed one again, until it is sealed; of a framed one what is behind its last whole
    /// entry is cut off.
    ///
    /// # Errors
    /// Those of [`Record::open`], and [`Error::Busy`] while another process writes it.
    pub fn resume(self) -> Result<Writer> {
        let Resumable { path, folder, name, mut file } = self;
        if form_of_file(&path, &file)? == Form::Sealed {
            let io = |cause| Error::Io { path: path.clone(), doing: "opened to go on with it", cause };
            unseal(&path, folder.try_clone().map_err(io)?, &name, &file)?;
            file = open_own(&path, &folder, &name)?;
        }
        Writer::go_on(&path, folder, name, file)
    }
}

fn open_own(path: &Path, folder: &Folder, name: &OsStr) -> Result<File> {
    let io = |cause| Error::Io { path: path.into(), doing: "opened", cause };
    let file = folder.open_file(name, OFlags::RDWR | OFlags::APPEND).map_err(io)?;
    let owner = file.metadata().map_err(io)?.uid();
    if is_trusted(owner) { Ok(file) } else { Err(Error::Foreign { path: path.into(), owner }) }
}
