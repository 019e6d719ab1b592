//! Writing a record, entry by entry.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use linux::secure_file::{Folder, PRIVATE_FILE};
use model::Header;

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::frame::{Frames, HEADER_BYTES, file_header, frame};
use crate::resumable::Resumable;
use crate::seal::seal;
use crate::session::{Life, Session};

/// A record that is being written.
///
/// Every entry goes to the file with one `write` in append mode: no lock, no mapping, so that NFS, Lustre and GPFS do as
/// well as a local disk, and what was appended survives the death of this process. It is not flushed to the disk
/// before [`Writer::seal`]: flushing would write back the observed job's dirty pages, too.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    folder: Folder,
    name: OsString,
    file: File,
    length: u64,
    /// No entry was refused, so that the end may say that all is there.
    whole: bool,
}

impl Writer {
    /// Begins a record in a new file.
    ///
    /// # Errors
    /// [`Error::Exists`] if there is a file of that name, [`Error::Io`] if it cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Writer> {
        Writer::begin(path, header)
    }

    /// Begins a record in place of whatever is there.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn replace(path: &Path, header: &Header) -> Result<Writer> {
        match Folder::of(path).and_then(|(folder, name)| folder.remove(&name)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::Io { path: path.into(), doing: "replaced", cause })
            }
            _ => Writer::create(path, header),
        }
    }

    /// Goes on with a record, framed or sealed. A sealed one becomes a framed one again, until it is sealed; of a framed
    /// one what is behind its last whole entry is cut off.
    ///
    /// # Errors
    /// Those of [`crate::Record::open`], [`Error::Busy`] while another process writes it, and [`Error::Foreign`] if neither root nor
    /// the caller owns it. A link of that name is not followed.
    pub fn resume(path: &Path) -> Result<Writer> {
        Resumable::open(path)?.resume()
    }

    /// Goes on with an open framed record.
    pub(crate) fn go_on(path: &Path, folder: Folder, name: OsString, file: File) -> Result<Writer> {
        let io = |cause| Error::Io { path: path.into(), doing: "opened to go on with it", cause };
        let survey = survey(&file).map_err(io)?;
        if !survey.header {
            return Err(Error::NoHeader(path.into()));
        }
        let here = Session::current();
        if let Some(other) = survey.session.filter(|session| *session != here && session.life() == Life::Alive) {
            return Err(Error::Busy { path: path.into(), pid: other.pid });
        }
        file.set_len(survey.length).map_err(io)?;
        let mut writer = Writer { path: path.into(), folder, name, file, length: survey.length, whole: true };
        writer.append(&Entry::Session(here))?;
        Ok(writer)
    }

    /// Appends one entry.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot take it (full disk): then the entry is not there, those before are, and the next may
    /// be tried; the record will not pass as complete. [`Error::NotFinite`] if a figure is infinite or not a number.
    pub fn append(&mut self, entry: &Entry) -> Result<()> {
        let bytes = self.encode(entry)?;
        self.write(&bytes)
    }

    /// The file being written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the record: rewrites it into its final form, one SQLite file of the same name. Streams, so that it needs little
    /// memory.
    ///
    /// # Errors
    /// [`Error::Seal`]: the file stays as it was written and can be read as well.
    pub fn seal(mut self) -> Result<PathBuf> {
        if self.whole {
            // without room for it the record says that its end is missing, which is the truth
            let _ = self.append(&Entry::End);
        }
        seal(&self.path, &self.folder, &self.name, &self.file)?;
        Ok(self.path)
    }

    fn begin(path: &Path, header: &Header) -> Result<Writer> {
        let io = |cause| Error::Io { path: path.into(), doing: "created", cause };
        let (folder, name) = Folder::of(path).map_err(io)?;
        let file = folder.create_new(&name, PRIVATE_FILE).map_err(|cause| match cause.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists(path.into()),
            _ => Error::Io { path: path.into(), doing: "created", cause },
        })?;
        let mut writer = Writer { path: path.into(), folder, name, file, length: 0, whole: true };
        let mut bytes = file_header();
        bytes.extend(writer.encode(&Entry::Header(header.clone()))?);
        bytes.extend(writer.encode(&Entry::Session(Session::current()))?);
        writer.write(&bytes)?;
        Ok(writer)
    }

    fn encode(&self, entry: &Entry) -> Result<Vec<u8>> {
        let io = |cause| Error::Io { path: self.path.clone(), doing: "written", cause };
        let json = |entry: &Entry| serde_json::to_vec(entry).map_err(|error| io(error.into()));
        let payload = match entry {
            Entry::Sample { t_ns, values } if values.iter().any(|(_, value)| !value.is_finite()) => {
                let values = values.iter().copied().filter(|(_, value)| value.is_finite()).collect();
                json(&Entry::Sample { t_ns: *t_ns, values })?
            }
            Entry::Sample { .. } => json(entry)?,
            _ => {
                let payload = json(entry)?;
                // JSON knows no infinity and writes null; better to be told now than to miss the rest of the record later
                serde_json::from_slice::<Entry>(&payload).map_err(|_| Error::NotFinite(entry.kind()))?;
                payload
            }
        };
        frame(&payload).map_err(io)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(cause) => {
                // half an entry would hide all that follow
                let _ = self.file.set_len(self.length);
                self.whole = false;
                Err(Error::Io { path: self.path.clone(), doing: "written", cause })
            }
        }
    }
}

/// What is in a framed file, samples aside.
pub(crate) struct Survey {
    header: bool,
    /// Who wrote last.
    pub(crate) session: Option<Session>,
    /// Where the last whole entry ends.
    length: u64,
}

/// Reads a framed file through.
pub(crate) fn survey(file: &File) -> io::Result<Survey> {
    let mut input = io::BufReader::new(file);
    input.read_exact(&mut [0; HEADER_BYTES as usize])?;
    let mut frames = Frames::new(input);
    let (mut header, mut session) = (false, None);
    while let Some(payload) = frames.next()? {
        match serde_json::from_slice(payload) {
            Ok(Entry::Session(latest)) => session = Some(latest),
            Ok(Entry::Header(_)) => header = true,
            _ => {}
        }
    }
    Ok(Survey { header, session, length: frames.good_bytes() })
}
