//! Destinations that the user names for output.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Access, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::folder::Folder;
use super::new_file::NewFile;
use super::walk::{End, Last, walk};

/// A destination that the user named. Existing content stays until [`Output::commit`].
#[derive(Debug)]
pub enum Output {
    /// A regular file, or a missing one: it is replaced as a whole.
    File(NewFile),
    /// A device, a pipe or an open file such as `/dev/stdout`: it is written to directly.
    Stream(File),
    /// A regular file that may be written, in a folder that may not: it is overwritten at the commit.
    InPlace {
        /// The file.
        file: File,
        /// Its new content.
        content: Vec<u8>,
    },
}

impl Output {
    /// Inspects the destination and begins to write. Links of the caller and of root are followed; a link of another user is replaced.
    ///
    /// # Errors
    /// The system's error; the path is a directory.
    pub fn create(path: &Path) -> io::Result<Output> {
        let End { folder, name, is_open_file } = walk(path, Last::Followed)?;
        let name = name.ok_or(Errno::ISDIR)?;
        if is_open_file {
            return Ok(Output::Stream(reopened(path)?));
        }
        let folder = Folder::at(folder);
        let there = match rustix::fs::statat(folder.descriptor(), &name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            there => Some(there?),
        };
        let kind = there.as_ref().map(|there| FileType::from_raw_mode(there.st_mode));
        match kind {
            None | Some(FileType::Symlink) => Ok(Output::File(folder.replace(&name, super::ORDINARY_FILE)?)),
            Some(FileType::RegularFile) => {
                let mode = there.map_or(super::ORDINARY_FILE, |there| there.st_mode & 0o777);
                // Checked before the folder is moved.
                let written = folder.open_file(&name, OFlags::WRONLY);
                match folder.replace(&name, mode) {
                    Ok(new) => {
                        // Ignoring the umask.
                        let _ = rustix::fs::fchmod(new.file(), Mode::from_raw_mode(mode));
                        Ok(Output::File(new))
                    }
                    // After any other failure, such as a full disk, overwriting would lose the old file, too.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        Ok(Output::InPlace { file: written.map_err(|_| error)?, content: Vec::new() })
                    }
                    Err(error) => Err(error),
                }
            }
            Some(FileType::Directory) => Err(Errno::ISDIR.into()),
            Some(_) => {
                // Neither created nor truncated: if another file has the name by now, it stays unchanged.
                let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
                let file = File::from(rustix::fs::openat(folder.descriptor(), &name, flags, Mode::empty())?);
                if file.metadata()?.is_file() { Err(Errno::AGAIN.into()) } else { Ok(Output::Stream(file)) }
            }
        }
    }

    /// Checks whether [`Output::create`] would succeed. Writes nothing, and keeps existing content.
    ///
    /// # Errors
    /// Those of [`Output::create`].
    pub fn check(path: &Path) -> io::Result<()> {
        // A pipe is not opened: its reader would take the closing for the end of the data.
        let is_pipe = std::fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo());
        match is_pipe {
            true => Ok(rustix::fs::access(path, Access::WRITE_OK)?),
            false => Output::create(path).map(drop),
        }
    }

    /// For output that is read while it is written: the new file has the name from now on.
    ///
    /// # Errors
    /// Those of [`Output::create`].
    pub fn stream(path: &Path) -> io::Result<File> {
        match Output::create(path)? {
            Output::File(new) => new.commit(),
            Output::Stream(file) => Ok(file),
            Output::InPlace { file, .. } => file.set_len(0).map(|()| file),
        }
    }

    /// Completes the output.
    ///
    /// # Errors
    /// That of the system.
    pub fn commit(self) -> io::Result<()> {
        match self {
            Output::File(new) => new.commit().map(drop),
            Output::Stream(mut file) => file.flush(),
            Output::InPlace { mut file, content } => {
                file.set_len(0)?;
                file.write_all(&content)
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::File(new) => new.write(bytes),
            Output::Stream(file) => file.write(bytes),
            Output::InPlace { content, .. } => content.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File(new) => new.flush(),
            Output::Stream(file) => file.flush(),
            Output::InPlace { .. } => Ok(()),
        }
    }
}

/// Opens a file through its link in procfs. A descriptor of this process is duplicated, and keeps its position.
fn reopened(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = || Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?));
    let Some(descriptor) = own_descriptor(path) else { return opened() };
    // SAFETY: the descriptor is only duplicated at once; if it is not open, that fails.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    match rustix::io::fcntl_dupfd_cloexec(borrowed, 3) {
        Ok(copy) => Ok(File::from(copy)),
        Err(_) => opened(),
    }
}

/// `/dev/stdout`, `/dev/fd/N`, `/proc/self/fd/N`.
fn own_descriptor(path: &Path) -> Option<i32> {
    match path.to_str()? {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        text => {
            let number = text.strip_prefix("/dev/fd/").or_else(|| text.strip_prefix("/proc/self/fd/"))?;
            number.parse().ok().filter(|number: &i32| *number >= 0)
        }
    }
}
