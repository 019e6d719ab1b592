//! A file that will replace another.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::folder::Folder;

/// Maximum number of attempts with random names: more collisions are not chance.
pub(super) const MOST_TRIES: u32 = 16;
/// Random bytes in a name: too many to guess.
const RANDOM_BYTES: usize = 16;
/// Prefix and suffix of the random part of a name.
const PREFIX: &str = ".bursar-";
const SUFFIX: &str = ".tmp";

/// A file under a random name until it is [`NewFile::commit`]ted; removed if it is dropped before.
#[derive(Debug)]
pub struct NewFile {
    folder: Folder,
    /// `None` once it has the requested name.
    random: Option<OsString>,
    name: OsString,
    file: File,
}

impl NewFile {
    pub(super) fn begin(folder: Folder, name: &OsStr, mode: u32) -> io::Result<NewFile> {
        let mut made = None;
        let random = by_random_name(PREFIX, SUFFIX, |random| {
            made = Some(folder.create_new(random, mode)?);
            Ok(())
        })?;
        let file = made.ok_or(Errno::AGAIN)?;
        Ok(NewFile { folder, random: Some(random), name: name.into(), file })
    }

    /// Whether a name is one of an uncommitted file, which a killed process leaves behind.
    pub fn is_temporary_name(name: &OsStr) -> bool {
        let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        name.is_some_and(|random| random.len() == 2 * RANDOM_BYTES && random.bytes().all(is_hex))
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the requested name, replacing any file there; returns the file, for further writing.
    ///
    /// # Errors
    /// The system's error: then the new file is removed, and the old one stays.
    pub fn commit(mut self) -> io::Result<File> {
        self.rename()?;
        self.file.try_clone()
    }

    /// The same, after the content is on the disk; afterwards also the name.
    ///
    /// # Errors
    /// Those of [`NewFile::commit`].
    pub fn commit_durably(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        self.rename()?;
        self.folder.sync();
        Ok(())
    }

    fn rename(&mut self) -> io::Result<()> {
        if let Some(random) = &self.random {
            rustix::fs::renameat(self.folder.descriptor(), random, self.folder.descriptor(), &self.name)?;
            self.random = None;
        }
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(random) = &self.random {
            let _ = self.folder.remove(random);
        }
    }
}

/// Creates something under an unused random name; returns the name.
pub(super) fn by_random_name(
    prefix: &str,
    suffix: &str,
    make: impl FnMut(&OsStr) -> io::Result<()>,
) -> io::Result<OsString> {
    by_random_word(prefix, RANDOM_BYTES, suffix, make)
}

/// The same with this many random bytes, at most [`RANDOM_BYTES`].
pub(super) fn by_random_word(
    prefix: &str,
    bytes: usize,
    suffix: &str,
    mut make: impl FnMut(&OsStr) -> io::Result<()>,
) -> io::Result<OsString> {
    for _ in 0..MOST_TRIES {
        let word = random_word()?;
        let name = OsString::from(format!("{prefix}{}{suffix}", &word[..2 * bytes.min(RANDOM_BYTES)]));
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| name),
        }
    }
    Err(Errno::EXIST.into())
}

fn random_word() -> io::Result<String> {
    let mut bytes = [0u8; RANDOM_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Err(Errno::INTR) => {}
            read => filled += read?,
        }
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
