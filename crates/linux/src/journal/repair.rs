//! Undoes the changes of killed bursars.

use std::path::Path;

use rustix::fs::OFlags;

use super::change::{Balloon, Change};
use super::files::{Other, directories, lock, names, open, read_all};

/// Restores the memory of a virtual machine; else returns the reason as a sentence.
pub type PutBack = fn(&Balloon) -> Result<(), String>;

/// Undoes the changes of dead bursars of this user, in reverse order. Returns what was done and what failed, as sentences; empty if there
/// was nothing to do. `balloon` restores virtual machines. Before each write, `announce` gets it as a clause, such as `writes 0 to
/// /proc/sys/kernel/task_delayacct`.
pub fn repair(balloon: PutBack, announce: &mut dyn FnMut(&str)) -> Vec<String> {
    directories().iter().flat_map(|dir| repair_in(dir, balloon, announce)).collect()
}

pub(super) fn repair_in(dir: &Path, balloon: PutBack, announce: &mut dyn FnMut(&str)) -> Vec<String> {
    let Some(dir) = open(dir) else { return Vec::new() };
    let _lock = lock(&dir);
    // Files of bursars that were killed before they had written their first line.
    for name in names(&dir) {
        let is_empty = dir.open_file(&name, OFlags::RDONLY).and_then(|file| file.metadata());
        if is_empty.is_ok_and(|found| found.len() == 0) {
            let _ = dir.remove(&name);
        }
    }
    let (living, dead): (Vec<_>, Vec<_>) = read_all(&dir).into_iter().partition(Other::is_alive);
    let mut sentences = Vec::new();
    for other in dead {
        let mut failed = false;
        for change in other.open.iter().rev().filter(|_| other.is_of_this_boot()) {
            if let Err(why) = change.check() {
                sentences.push(why);
                continue;
            }
            if !change.is_made() {
                continue;
            }
            if living.iter().flat_map(|other| &other.open).any(|open| open == change || open.same_setting(change)) {
                continue;
            }
            announce(&change.intention());
            let undone = match change {
                Change::Balloon(before) => balloon(before),
                _ => change.undo_for_dead().map_err(|error| error.to_string()),
            };
            match undone {
                Ok(()) => sentences.push(change.sentence()),
                Err(why) => {
                    failed = true;
                    sentences.push(why);
                }
            }
        }
        if !failed {
            let _ = dir.remove(&other.name);
        }
    }
    sentences
}
