//! Whether the runs of a baseline are of the same program, machine and limit as those that are checked.

use std::path::Path;

use model::{Bytes, Header};

use crate::kind::Kind;
use crate::measured::Measured;

/// What is to be compared with a baseline.
pub struct Wanted<'a> {
    /// Of the runs that are checked.
    pub header: &'a Header,
    /// Their limit.
    pub limit_bytes: Option<u64>,
    /// Whether a baseline of another machine is taken, too.
    pub other_machine: bool,
}

impl Wanted<'_> {
    /// # Errors
    /// A clause that says why this record is no baseline of it.
    pub fn takes(&self, baseline: &Measured) -> Result<(), String> {
        let (old, new) = (&baseline.header, self.header);
        if !matches!(old.kind, model::RecordKind::Run | model::RecordKind::Budget) {
            return Err("it is a record of another command than bursar run, check and budget".into());
        }
        let programs = (program(old), program(new));
        if programs.0 != programs.1 {
            return Err(format!("it is of another program ('{}', not '{}')", programs.0, programs.1));
        }
        if old.page_bytes != new.page_bytes {
            return Err(format!(
                "it is of a machine with pages of {}, here they are of {}",
                Bytes(old.page_bytes),
                Bytes(new.page_bytes)
            ));
        }
        if old.host != new.host && !self.other_machine {
            return Err(format!("it is of another machine ('{}', not '{}'); see --other-machine", old.host, new.host));
        }
        if held_by(old) != held_by(new) {
            return Err(format!("it was measured by '{}', this by '{}'", held_by(old), held_by(new)));
        }
        let limit = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_string(), |limit| Bytes(limit).to_string());
        match baseline.runs.iter().find(|(run, _)| run.limit_bytes != self.limit_bytes) {
            Some((run, _)) => Err(format!(
                "it was made under another limit ({}, not {})",
                limit(run.limit_bytes),
                limit(self.limit_bytes)
            )),
            None => Ok(()),
        }
    }
}

/// What differs although the runs can be compared, as sentences.
pub fn differences(old: &Header, new: &Header) -> Vec<String> {
    let mut notes = Vec::new();
    if old.command.get(1..) != new.command.get(1..) {
        notes.push(format!("The baseline's arguments are others: {}", old.command.join(" ")));
    }
    let input = |header: &Header| header.options.get(model::INPUT_BYTES).cloned();
    if let (Some(was), Some(is)) = (input(old), input(new)) {
        let size = |bytes: &str| Bytes(bytes.parse().unwrap_or(0)).to_string();
        if was != is {
            notes.push(format!("The input is of {}, the baseline's of {}.", size(&is), size(&was)));
        }
    }
    if old.cpus != new.cpus {
        notes.push(format!("The baseline's machine has {} processors, this one {}.", old.cpus, new.cpus));
    }
    notes
}

/// The kind of the command, with names of files instead of paths: a program may be built in another folder.
fn program(header: &Header) -> String {
    let kind = Kind::of(&header.command, Path::new(&header.directory)).map(|kind| kind.name).unwrap_or_default();
    let words = kind.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    words.collect::<Vec<_>>().join(" ")
}

/// What counts the memory, without where that is.
fn held_by(header: &Header) -> &str {
    header.placement.split(',').next().unwrap_or_default()
}
