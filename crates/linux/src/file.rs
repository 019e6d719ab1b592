//! Kernel files: small, read and written in one system call.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// The whole file. Not `fs::read_to_string`, which asks for the size first: kernel files have none.
pub fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::with_capacity(4096);
    File::open(path)
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(|source| Error::Read { path: path.into(), source })?;
    Ok(text)
}

/// The file, if it exists and is readable.
pub fn read_if_present(path: &Path) -> Option<String> {
    read(path).ok()
}

/// A file with one number; `None` if it does not exist or contains a word such as `max`.
pub fn number(path: &Path) -> Option<u64> {
    read_if_present(path)?.trim().parse().ok()
}

/// One `write` call, as kernel files require. The file must exist.
pub fn write(path: &Path, value: &str) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|source| Error::Write { path: path.into(), value: value.into(), source })
}

/// The same, but a signal interrupts it, unlike `write_all`.
pub fn write_or_give_up(path: &Path, value: &str) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write(value.as_bytes()).map(|_| ()))
        .map_err(|source| Error::Write { path: path.into(), value: value.into(), source })
}

/// Whether this process may write it, considering read-only mounts.
pub fn is_writable(path: &Path) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, rustix::fs::Access::WRITE_OK, rustix::fs::AtFlags::EACCESS).is_ok()
}

/// The file that a shell would execute by this name.
pub fn in_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// The directories directly beneath.
pub fn subdirectories(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Words and numbers, one pair per line, as in `memory.stat`.
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once(' ')?;
        Some((key, value.trim().parse().ok()?))
    })
}
