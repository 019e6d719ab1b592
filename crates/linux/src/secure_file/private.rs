//! Private folders for code that opens files by path, such as SQLite and execve(2).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::folder::Folder;
use crate::environment;

/// A folder of mode 0700 with a random name, which no other user can enter, move or replace. Removed when dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    folder: Folder,
    is_kept: bool,
}

/// Random bytes in the name of a folder whose path must be short, such as that of a socket.
const SHORT_RANDOM_BYTES: usize = 4;
/// Random bytes in other names.
const LONG_RANDOM_BYTES: usize = 16;

impl PrivateFolder {
    /// Creates one in this folder if no other user can move its content, else in a folder for temporary files. `note` gets its path before
    /// it is created, and again if that name was taken.
    ///
    /// # Errors
    /// The system's error; no folder is safe from other users.
    pub fn create_near(folder: &Path, note: &mut dyn FnMut(&Path)) -> io::Result<PrivateFolder> {
        let mut create =
            |folder: &Path| PrivateFolder::create_in(folder, (".bursar-", LONG_RANDOM_BYTES, ".tmp"), note);
        match create(folder) {
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
                create(&temporary_base()?)
            }
            made => made,
        }
    }

    /// Creates one with this prefix in a folder for temporary files. `note` is as in [`PrivateFolder::create_near`].
    ///
    /// # Errors
    /// Those of [`temporary_base`] and of the system.
    pub fn create_temporary(prefix: &str, note: &mut dyn FnMut(&Path)) -> io::Result<PrivateFolder> {
        PrivateFolder::create_in(&temporary_base()?, (prefix, SHORT_RANDOM_BYTES, ""), note)
    }

    fn create_in(
        base: &Path,
        (prefix, random, suffix): (&str, usize, &str),
        note: &mut dyn FnMut(&Path),
    ) -> io::Result<PrivateFolder> {
        let base = fs::canonicalize(base)?;
        if !is_ours_alone(&base)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mode = Mode::from_raw_mode(super::PRIVATE_FOLDER);
        let parent = Folder::open(&base)?;
        let make = |name: &OsStr| {
            note(&base.join(name));
            Ok(rustix::fs::mkdirat(parent.descriptor(), name, mode)?)
        };
        let name = super::new_file::by_random_word(prefix, random, suffix, make)?;
        let path = base.join(&name);
        match parent.open_folder(&name) {
            Ok(folder) => Ok(PrivateFolder { path, folder, is_kept: false }),
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Keeps it when this is dropped.
    pub fn keep(mut self) {
        self.is_kept = true;
    }

    /// Its path, which stays its own as long as this lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves a file from here to a folder, replacing any file of the name. The file is then durable, and of mode 0600.
    ///
    /// # Errors
    /// That of the system.
    pub fn move_to(&self, name: &str, folder: &Folder, to: &OsStr) -> io::Result<()> {
        let mut file = self.folder.open_file(OsStr::new(name), OFlags::RDWR)?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(super::PRIVATE_FILE))?;
        folder.give_to_caller(&file)?;
        file.sync_all()?;
        match rustix::fs::renameat(self.folder.descriptor(), name, folder.descriptor(), to) {
            Err(Errno::XDEV) => {
                let mut new = folder.try_clone()?.replace(to, super::PRIVATE_FILE)?;
                io::copy(&mut file, &mut new)?;
                new.commit_durably()
            }
            renamed => {
                renamed?;
                folder.sync();
                Ok(())
            }
        }
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// `TMPDIR`, `/tmp`, `/var/tmp` or, on a read-only root, `/dev/shm`: the first in which no other user can move or replace our files.
///
/// # Errors
/// If there is none.
pub fn temporary_base() -> io::Result<PathBuf> {
    let named = environment::temporary();
    let others = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from).into_iter().filter(|path| *path != named);
    let candidates: Vec<PathBuf> = iter::once(named.clone()).chain(others).collect();
    let is_good = |path: &&PathBuf| {
        let is_safe = fs::canonicalize(path).and_then(|path| is_ours_alone(&path)).unwrap_or(false);
        is_safe && crate::file::is_writable(path)
    };
    let found = candidates.iter().find(is_good).cloned();
    found.ok_or_else(|| {
        let names: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "no folder for temporary files: {} cannot be written to, or other users can replace files in them; set TMPDIR \
                 to a folder of yours that they cannot write to",
                names.join(", ")
            ),
        )
    })
}

/// Whether no other user can move or replace the content of this folder, which need not exist yet.
pub fn is_safe_from_others(path: &Path) -> bool {
    let there = path.ancestors().find_map(|path| fs::canonicalize(path).ok());
    there.is_some_and(|path| is_ours_alone(&path).unwrap_or(false))
}

/// Whether no other user can move or replace the content of this folder or of those above; its path has no links.
fn is_ours_alone(path: &Path) -> io::Result<bool> {
    const STICKY: u32 = 0o1000;
    let own = geteuid().as_raw();
    for folder in path.ancestors() {
        let found = fs::symlink_metadata(folder)?;
        let others_write = found.mode() & 0o022 != 0 && found.mode() & STICKY == 0;
        if !found.is_dir() || !(found.uid() == 0 || found.uid() == own) || others_write {
            return Ok(false);
        }
    }
    Ok(true)
}
