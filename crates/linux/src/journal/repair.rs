//! Undoing what those have left that were killed.

use std::fs;
use std::path::Path;

use super::change::{Balloon, Change};
use super::files::{Other, check, directories, lock, paths, read_all};

/// Puts the memory of a virtual machine back; else why not, as a sentence.
pub type PutBack = fn(&Balloon) -> Result<(), String>;

/// Undoes what dead bursars of this user left, in the reverse order. Returns what was done and what could not be done, as
/// sentences; nothing if there was nothing to do. What is not the kernel's is put back by `balloon`.
pub fn repair(balloon: PutBack) -> Vec<String> {
    directories().iter().flat_map(|dir| repair_in(dir, balloon)).collect()
}

pub(super) fn repair_in(dir: &Path, balloon: PutBack) -> Vec<String> {
    if check(dir).is_err() {
        return Vec::new();
    }
    let _lock = lock(dir);
    // Of those that were killed before they had told who they are.
    for path in paths(dir).into_iter().filter(|path| fs::metadata(path).is_ok_and(|found| found.len() == 0)) {
        let _ = fs::remove_file(path);
    }
    let (living, dead): (Vec<_>, Vec<_>) = read_all(dir).into_iter().partition(Other::is_alive);
    let mut told = Vec::new();
    for other in dead {
        let mut failed = false;
        for change in other.open.iter().rev().filter(|change| other.is_of_this_boot() && change.is_made()) {
            if living.iter().flat_map(|other| &other.open).any(|open| open == change || open.same_setting(change)) {
                continue;
            }
            let undone = match change {
                Change::Balloon(before) => balloon(before),
                _ => change.undo_for_dead().map_err(|error| error.to_string()),
            };
            match undone {
                Ok(()) => told.push(change.sentence()),
                Err(why) => {
                    failed = true;
                    told.push(why);
                }
            }
        }
        if !failed {
            let _ = fs::remove_file(&other.path);
        }
    }
    told
}
