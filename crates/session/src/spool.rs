//! The folder in which the processes of a command leave what they tell, until it is collected.
//!
//! Started by root, a command may go on as another user: `runuser`, a container's entry point, a daemon that drops what
//! it may. So every user may write there, but find it only by a name that the command alone knows.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use linux::secure_file::Folder;
use linux::temporary::TemporaryFolder;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

/// Nobody may list it.
const TO_PASS: u32 = 0o711;
/// Everybody may create files in it, and remove only their own.
const TO_WRITE: u32 = 0o1733;
/// Characters, of 62: more than can be guessed.
const SECRET: usize = 22;

/// A folder on this node; it is gone when it is dropped, and by the next repair if bursar is killed.
#[derive(Debug)]
pub struct Spool {
    whole: TemporaryFolder,
    path: PathBuf,
}

/// A folder, or why there is none, as on a read-only root: then the command runs without the library.
#[derive(Debug)]
pub struct PerhapsSpool(Result<Spool, String>);

impl PerhapsSpool {
    /// [`Spool::create`]
    pub fn create(prefix: &str) -> PerhapsSpool {
        PerhapsSpool(Spool::create(prefix).map_err(|error| without_library(&format!("{error:#}"))))
    }

    /// Where processes write to; without a folder a path that there is not.
    pub fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), Spool::path)
    }

    /// [`Spool::give`]; nothing without a folder.
    pub fn give(&self, name: &str, text: &str) -> anyhow::Result<()> {
        self.0.as_ref().map_or(Ok(()), |spool| spool.give(name, text))
    }

    /// Why there is none, as a sentence on the command.
    pub fn trouble(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }
}

/// The sentence of a command that the library could not be put into.
pub fn without_library(why: &str) -> String {
    format!("the command ran without bursar's library, and nothing is known of it: {why}")
}

impl Spool {
    /// A new one, whose name begins so.
    pub fn create(prefix: &str) -> anyhow::Result<Spool> {
        Spool::make(prefix)
            .context("cannot create a folder for the reports of the processes; set TMPDIR to a folder of yours")
    }

    fn make(prefix: &str) -> io::Result<Spool> {
        let whole = TemporaryFolder::create(prefix)?;
        if !geteuid().is_root() {
            return Ok(Spool { path: whole.path().into(), whole });
        }
        let path = tempfile::Builder::new().prefix("").rand_bytes(SECRET).tempdir_in(whole.path())?.keep();
        fs::set_permissions(&path, Permissions::from_mode(TO_WRITE))?;
        fs::set_permissions(whole.path(), Permissions::from_mode(TO_PASS))?;
        Ok(Spool { whole, path })
    }

    /// Where processes write to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the processes something to read.
    pub fn give(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let write = || -> io::Result<()> {
            let mut file = Folder::open(&self.path)?.create_new(name.as_ref(), 0o644)?;
            file.write_all(text.as_bytes())?;
            file.set_permissions(Permissions::from_mode(0o644))
        };
        let written = write();
        written.with_context(|| format!("the {name} could not be written to {}", self.path.display()))
    }

    /// It stays: all that is to be removed one day, and the folder.
    pub fn keep(self) -> (PathBuf, PathBuf) {
        (self.whole.keep(), self.path)
    }
}

/// Opens what a process has left, who may be another user's: no link to what is ours, and no pipe to wait at.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn it_is_gone_when_it_is_dropped() {
        let spool = Spool::create("bursar-test-").unwrap();
        let whole = spool.whole.path().to_path_buf();
        spool.give("plan", "text").unwrap();
        assert_eq!(fs::read_to_string(spool.path().join("plan")).unwrap(), "text");
        drop(spool);
        assert!(!whole.exists());
    }

    #[test]
    fn links_pipes_and_folders_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "text").unwrap();
        symlink(path("file"), path("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(open(&path("file")).is_ok());
        for name in ["link", "pipe", "."] {
            assert!(open(&path(name)).is_err(), "{name}");
        }
    }
}
