//! The libraries of other versions of bursar, which go when this version's is new in their folder.
//!
//! One that is in use stays. A bursar holds a lock on its library as long as it lives, and starts processes with it all that time. A
//! process that outlives its bursar has the library mapped, and what it executes loads it again.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

use linux::pages::mappings;
use linux::procfs;
use linux::secure_file::Folder;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::Library;

/// Keeps a library from being removed as long as this process lives. `false`: it was removed before.
pub fn hold(library: File) -> bool {
    static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());
    // Where the file system has no locks, nobody gets the one to remove it.
    let _ = flock(&library, FlockOperation::LockShared);
    let is_linked = library.metadata().is_ok_and(|found| found.nlink() > 0);
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if is_linked && !held.iter().any(|other| is_same(other, &library)) {
        held.push(library);
    }
    is_linked
}

/// Removes the libraries of other versions that are in no use. What cannot be removed stays.
pub fn remove(folder: &Folder) {
    let current = [Library::Runtime, Library::References].map(Library::name);
    let names = folder.names().unwrap_or_default().into_iter().filter_map(|name| name.into_string().ok());
    let others: Vec<String> = names.filter(|name| is_library(name) && !current.contains(name)).collect();
    if others.is_empty() {
        return;
    }
    let mapped: Vec<String> = procfs::processes()
        .into_iter()
        .filter_map(|pid| mappings(pid).ok())
        .flatten()
        .map(|mapping| mapping.name)
        .filter(|name| name.contains("/libbursar-"))
        .collect();
    for name in others.iter().filter(|name| !mapped.iter().any(|path| path.contains(name.as_str()))) {
        remove_unless_held(folder, name.as_ref());
    }
}

fn remove_unless_held(folder: &Folder, name: &OsStr) {
    let Ok(library) = folder.open_file(name, OFlags::RDONLY) else { return };
    if flock(&library, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    // Its own version may have unpacked it anew since.
    let is_still = folder.open_file(name, OFlags::RDONLY).is_ok_and(|there| is_same(&there, &library));
    if is_still {
        let _ = folder.remove(name);
    }
}

fn is_library(name: &str) -> bool {
    let hash = name.strip_prefix("libbursar-").and_then(|rest| rest.strip_suffix(".so"));
    hash.is_some_and(|hash| hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()))
}

fn is_same(one: &File, other: &File) -> bool {
    let of = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
    of(one).is_some() && of(one) == of(other)
}
