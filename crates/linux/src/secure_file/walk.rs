//! Walks to a directory, component by component.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat, readlinkat};
use rustix::io::Errno;

use super::caller::is_trusted;

/// Maximum number of links, as in the kernel.
const MOST_LINKS: u32 = 40;
/// Flags for a directory that may be passed through but not listed.
const PASS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The end of a path.
pub struct End {
    /// The last directory.
    pub folder: OwnedFd,
    /// The name in it; `None`: the path is the directory itself.
    pub name: Option<OsString>,
    /// The name is a procfs link to an open file, as `/dev/stdout` is in the end.
    pub is_open_file: bool,
}

/// How the last component is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// It is a directory to enter.
    Folder,
    /// It is a name, whatever it refers to.
    Name,
    /// It is a name; if it is a trusted link, the walk follows it.
    Followed,
}

/// Walks a path. Links that neither root nor the caller owns are refused: their owner controls the target, now and later.
pub fn walk(path: &Path, last: Last) -> io::Result<End> {
    let mut folder = openat(CWD, if path.is_absolute() { "/" } else { "." }, PASS, Mode::empty())?;
    let mut left = parts(path);
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        let is_last = left.is_empty();
        if part == ".." {
            folder = openat(&folder, "..", PASS, Mode::empty())?;
            continue;
        }
        if is_last && last == Last::Name {
            return Ok(End { folder, name: Some(part), is_open_file: false });
        }
        let found = match openat(&folder, &part, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) if is_last && last == Last::Followed => {
                return Ok(End { folder, name: Some(part), is_open_file: false });
            }
            found => found?,
        };
        let status = fstat(&found)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => folder = found,
            FileType::Symlink if !is_trusted(status.st_uid) => {
                // Renaming over the link does not affect its target.
                if is_last && last == Last::Followed {
                    return Ok(End { folder, name: Some(part), is_open_file: false });
                }
                return Err(refused(&part, status.st_uid));
            }
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                if fstatfs(&found)?.f_type == PROC_SUPER_MAGIC && leads_to_open_file(found.as_fd())? {
                    if is_last && last == Last::Followed {
                        return Ok(End { folder, name: Some(part), is_open_file: true });
                    }
                    folder = openat(&folder, &part, PASS, Mode::empty())?;
                    continue;
                }
                let target = OsString::from_vec(readlinkat(&found, "", Vec::new())?.into_bytes());
                let target = Path::new(&target);
                if target.is_absolute() {
                    folder = openat(CWD, "/", PASS, Mode::empty())?;
                }
                parts(target).into_iter().rev().for_each(|part| left.push_front(part));
            }
            _ if is_last && last == Last::Followed => {
                return Ok(End { folder, name: Some(part), is_open_file: false });
            }
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    match last {
        Last::Folder => Ok(End { folder, name: None, is_open_file: false }),
        _ => Err(Errno::ISDIR.into()),
    }
}

/// Whether a link is like `/proc/PID/fd/N` or `/proc/PID/cwd`, whose text is not a reliable path. `/proc/self` and similar are plain links.
fn leads_to_open_file(link: impl AsFd) -> io::Result<bool> {
    let text = readlinkat(link, "", Vec::new())?.into_bytes();
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let is_plain =
        text.split(|byte| *byte == b'/').next().is_some_and(is_number) || text == b"self/net" || text == b"self/mounts";
    Ok(!is_plain)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(part).collect()
}

fn refused(link: &OsStr, owner: u32) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} is a symbolic link of user {owner}, who decides where it leads; name the place itself",
            Path::new(link).display()
        ),
    )
}
