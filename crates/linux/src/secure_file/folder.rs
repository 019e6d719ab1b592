//! A directory, opened once.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::caller::{Caller, is_trusted};
use super::new_file::NewFile;
use super::walk::{End, Last, walk};

/// A directory, opened once. Later changes of its name have no effect.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
}

impl Folder {
    /// The directory of this path.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::PermissionDenied`] if a link on the way belongs to another user.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder { descriptor: walk(path, Last::Folder)?.folder })
    }

    /// The directory of a file with this path, and the file's name there. A link of that name is not followed.
    ///
    /// # Errors
    /// Those of [`Folder::open`]; the path ends in `..` or has no name.
    pub fn of(file: &Path) -> io::Result<(Folder, OsString)> {
        let End { folder, name, .. } = walk(file, Last::Name)?;
        Ok((Folder { descriptor: folder }, name.ok_or(Errno::ISDIR)?))
    }

    /// The same directory by a second descriptor.
    ///
    /// # Errors
    /// That of the system.
    pub fn try_clone(&self) -> io::Result<Folder> {
        Ok(Folder { descriptor: self.descriptor.try_clone()? })
    }

    pub(super) fn at(descriptor: OwnedFd) -> Folder {
        Folder { descriptor }
    }

    /// Opens the directory of this path, and creates it and its missing parents: with mode 0700, and owned by the calling user if the
    /// existing parent is.
    ///
    /// # Errors
    /// That of the system.
    pub fn create_all(path: &Path) -> io::Result<Folder> {
        match Folder::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let parent = path.parent().ok_or(Errno::NOENT)?;
        let name = path.file_name().ok_or(Errno::NOENT)?;
        let parent =
            if parent.as_os_str().is_empty() { Folder::open(Path::new("."))? } else { Folder::create_all(parent)? };
        parent.create_folder(name, super::PRIVATE_FOLDER)
    }

    /// Creates a directory in this one, unless it exists, and opens it.
    ///
    /// # Errors
    /// The system's error, and [`io::ErrorKind::PermissionDenied`] if an existing directory belongs to another user.
    pub fn create_folder(&self, name: &OsStr, mode: u32) -> io::Result<Folder> {
        let is_new = match rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(mode)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let folder = self.open_folder(name)?;
        let status = folder.status()?;
        if !is_trusted(status.st_uid) {
            return Err(foreign(name, status.st_uid));
        }
        if is_new {
            self.give_to_caller(&folder.readable()?)?;
        }
        Ok(folder)
    }

    /// Opens the directory of this name; links are refused.
    ///
    /// # Errors
    /// That of the system.
    pub fn open_folder(&self, name: &OsStr) -> io::Result<Folder> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Folder { descriptor: rustix::fs::openat(&self.descriptor, name, flags, Mode::empty())? })
    }

    /// Creates a file of this name, for reading and appending.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::AlreadyExists`] also for a link.
    pub fn create_new(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.created(name, flags, mode)
    }

    /// Opens the file of this name for writing, and creates it with mode 0600 if missing; for locks and marks, which have no content.
    ///
    /// # Errors
    /// The system's error; the name is a link, not a regular file, or has further hard links.
    pub fn create_or_open(&self, name: &OsStr) -> io::Result<File> {
        for _ in 0..super::new_file::MOST_TRIES {
            match self.create_new(name, super::PRIVATE_FILE) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
            match self.open_file(name, OFlags::WRONLY) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens the regular file of this name, without following links or blocking on pipes.
    ///
    /// # Errors
    /// The system's error; the name is a link or not a regular file; for writing also if it has further hard links.
    pub fn open_file(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let flags_all = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.descriptor, name, flags_all, Mode::empty()) {
            Err(Errno::LOOP) => return Err(wrong(name, "is a symbolic link; name the file itself")),
            file => file?,
        };
        let status = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR.into()),
            _ => return Err(wrong(name, "is not a regular file")),
        }
        let is_written = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        if is_written && status.st_nlink > 1 {
            return Err(wrong(name, "has further names (hard links) and is not written to"));
        }
        Ok(File::from(file))
    }

    /// Begins a file that will replace any file of this name.
    ///
    /// # Errors
    /// That of the system.
    pub fn replace(self, name: &OsStr, mode: u32) -> io::Result<NewFile> {
        NewFile::begin(self, name, mode)
    }

    /// Creates a symbolic link with a random name after the prefix; returns its name.
    ///
    /// # Errors
    /// That of the system.
    pub fn link_to(&self, target: &Path, prefix: &str, suffix: &str) -> io::Result<OsString> {
        super::new_file::by_random_name(prefix, suffix, |name| {
            Ok(rustix::fs::symlinkat(target, &self.descriptor, name)?)
        })
    }

    /// Creates a directory with a random name after the prefix, of mode 0700; returns its name and the directory.
    ///
    /// # Errors
    /// That of the system.
    pub fn new_folder(&self, prefix: &str, suffix: &str) -> io::Result<(OsString, Folder)> {
        let mode = Mode::from_raw_mode(super::PRIVATE_FOLDER);
        let make = |name: &OsStr| Ok(rustix::fs::mkdirat(&self.descriptor, name, mode)?);
        let name = super::new_file::by_random_name(prefix, suffix, make)?;
        let folder = self.open_folder(&name)?;
        self.give_to_caller(&folder.readable()?)?;
        Ok((name, folder))
    }

    /// Removes the file of this name.
    ///
    /// # Errors
    /// That of the system.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Removes the empty folder of this name.
    ///
    /// # Errors
    /// That of the system.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR)?)
    }

    /// The names in it, in order.
    ///
    /// # Errors
    /// That of the system.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(self.readable()?)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether only this process's user can list and change it.
    ///
    /// # Errors
    /// That of the system.
    pub fn is_own(&self) -> io::Result<bool> {
        let status = self.status()?;
        Ok(status.st_uid == geteuid().as_raw() && status.st_mode & 0o066 == 0)
    }

    /// Sets its mode, ignoring the umask.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(self.readable()?, Mode::from_raw_mode(mode))?)
    }

    /// Owner, mode and the like.
    ///
    /// # Errors
    /// That of the system.
    pub fn status(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.descriptor)?)
    }

    /// A path to it through the descriptor, for calls that require a path, such as bind(2). The kernel resolves it by the descriptor if it
    /// is passed unchanged.
    pub fn by_descriptor(&self, name: &OsStr) -> PathBuf {
        Path::new("/proc/self/fd").join(self.descriptor.as_raw_fd().to_string()).join(name)
    }

    /// Makes its entries durable. Not every file system can; the files are complete in either case.
    pub fn sync(&self) {
        let _ = self.readable().and_then(|folder| Ok(rustix::fs::fsync(folder)?));
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Under sudo, gives a new file to the calling user if this directory is that user's.
    pub(super) fn give_to_caller(&self, made: impl AsFd) -> io::Result<()> {
        let Some(caller) = Caller::of_sudo() else { return Ok(()) };
        if caller.owns(self.status()?.st_uid) {
            caller.give(made)?;
        }
        Ok(())
    }

    fn created(&self, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
        let file = File::from(rustix::fs::openat(&self.descriptor, name, flags, Mode::from_raw_mode(mode))?);
        self.give_to_caller(&file)?;
        Ok(file)
    }

    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.descriptor, ".", flags, Mode::empty())?)
    }
}

fn foreign(name: &OsStr, owner: u32) -> io::Error {
    wrong(name, &format!("belongs to user {owner}"))
}

fn wrong(name: &OsStr, what: &str) -> io::Error {
    let text = String::from_utf8_lossy(name.as_bytes()).escape_debug().to_string();
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{text} {what}"))
}
