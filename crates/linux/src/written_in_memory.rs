//! Files in memory that a job wrote: tmpfs, ramfs, memfds and System V segments. Data that a process writes there by calls, or has
//! detached, is in no RSS; without a cgroup, only the descriptors of the job's processes and the list of segments show it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use model::Named;

use crate::holders::{FileId, mapped_files};
use crate::open_in_memory::{OpenFile, OpenInMemory};
use crate::shared_memory::{segment_ids, segments_made};

/// If all files together are smaller than this, they are not reported, bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// Maximum number of files followed after they were closed.
const MOST_FILES: usize = 1_000;

/// What is in memory, and in no figure that is summed over processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InMemory {
    /// All that is known, by the name of the largest; `None`: less than 1 MiB.
    pub known: Option<Named>,
    /// All that these files and segments take, mapped or not, bytes.
    pub known_bytes: u64,
    /// So much more may be in shared memory that processes have mapped: they need not have its pages in their page tables, bytes.
    pub perhaps_bytes: u64,
}

/// The files in memory that processes of a job have, or had, open.
#[derive(Debug)]
pub struct WrittenInMemory {
    files: BTreeMap<FileId, OpenFile>,
    /// Segments from before the job.
    segments_before: BTreeSet<u64>,
    /// Processes of the job, including ended ones.
    pids: BTreeSet<i32>,
}

impl WrittenInMemory {
    /// For a job about to begin, or for running processes: what exists by now is not counted as the job's.
    pub fn begin() -> WrittenInMemory {
        WrittenInMemory { files: BTreeMap::new(), segments_before: segment_ids(), pids: BTreeSet::new() }
    }

    /// Adds a file that a process reported to have opened, because it may be closed before the next sample.
    pub fn tell(&mut self, id: FileId, file: OpenFile) {
        if self.files.len() < MOST_FILES {
            self.files.entry(id).or_insert(file);
        }
    }

    /// What the files that are `open` now, those that were found or reported before, and mapped shared memory occupy. `shown_bytes`: the shared
    /// memory that figures summed over processes hold already; it is taken off what a process maps. Costs a few system calls per file.
    pub fn look(&mut self, open: OpenInMemory, pids: &[i32], shown_bytes: u64) -> InMemory {
        let (found, shared) = (open.files, open.mapped_shared);
        // A file that was closed stays in memory for as long as it has a name.
        let is_closed = |id: &FileId| !found.contains_key(id);
        let mapped: BTreeSet<FileId> = match shown_bytes > 0 && self.files.keys().any(is_closed) {
            true => pids.iter().flat_map(|pid| mapped_files(*pid)).collect(),
            false => BTreeSet::new(),
        };
        self.files.retain(|id, file| {
            let bytes = if is_closed(id) { bytes_if_there(*id, file) } else { Some(0) };
            file.bytes = bytes.unwrap_or(0);
            file.mapped_bytes = if mapped.contains(id) { file.bytes } else { 0 };
            bytes.is_some()
        });
        // A file that was closed and has its name is known.
        let shared = shared.into_iter().filter(|(id, _)| !self.files.contains_key(id)).map(|(_, shared)| shared);
        let (known, at_most): (Vec<_>, Vec<_>) = shared.partition(|shared| shared.is_known);
        for (id, file) in found {
            if self.files.len() < MOST_FILES || self.files.contains_key(&id) {
                self.files.insert(id, file);
            }
        }
        self.pids.extend(pids);
        let segments = segments_made(&self.pids, &self.segments_before);
        let segments: Vec<OpenFile> = segments.into_iter().map(of_segment).collect();
        let known = known.into_iter().map(|shared| of_segment((shared.name, shared.bytes, true)));
        let known: Vec<OpenFile> = known.collect();
        let all = self.files.values().chain(&segments).chain(&known);
        let (mapped, unmapped): (Vec<_>, Vec<_>) = all.partition(|file| file.mapped_bytes > 0);
        let sum = |files: &[&OpenFile]| files.iter().map(|file| file.bytes).sum::<u64>();
        let beyond = sum(&mapped).saturating_sub(shown_bytes);
        let bytes = sum(&unmapped) + beyond;
        let largest = unmapped.iter().chain(&mapped).max_by_key(|file| file.bytes);
        let largest = largest.filter(|_| bytes >= LEAST_BYTES);
        let at_most = sum(&mapped) + at_most.iter().map(|shared| shared.bytes).sum::<u64>();
        InMemory {
            known: largest.map(|largest| Named { name: largest.name.clone(), bytes: Some(bytes) }),
            known_bytes: sum(&unmapped) + sum(&mapped),
            perhaps_bytes: at_most.saturating_sub(shown_bytes) - beyond,
        }
    }
}

/// A segment stays in memory until it is removed, attached or not.
fn of_segment((name, bytes, is_attached): (String, u64, bool)) -> OpenFile {
    OpenFile { name, bytes, mapped_bytes: if is_attached { bytes } else { 0 }, pid: 0 }
}

/// The memory of a file that is no longer open, bytes, if it still has its name: from the view of the process that opened it, or from ours.
fn bytes_if_there(id: FileId, file: &OpenFile) -> Option<u64> {
    let paths = [PathBuf::from(format!("/proc/{}/root{}", file.pid, file.name)), PathBuf::from(&file.name)];
    let mut found = paths.iter().filter_map(|path| fs::metadata(path).ok());
    found.find(|facts| FileId { device: facts.dev(), inode: facts.ino() } == id).map(|facts| facts.blocks() * 512)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use super::*;
    use crate::open_in_memory::open_in_memory;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_written_file_counts_until_it_is_removed() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = folder.path().join("written");
        let mut file = fs::File::create(&path).unwrap();
        let own = [std::process::id() as i32];
        let mut files = WrittenInMemory::begin();
        let bytes = |files: &mut WrittenInMemory, name: &Path| {
            let found = files.look(open_in_memory(own.into_iter()), &own, 0).known;
            found.filter(|found| found.name == name.to_string_lossy()).and_then(|found| found.bytes).unwrap_or(0)
        };
        assert_eq!(bytes(&mut files, &path), 0);
        file.write_all(&vec![1; 64 * MIB as usize]).unwrap();
        // Other tests of this process have files open, too.
        assert!((64 * MIB..96 * MIB).contains(&bytes(&mut files, &path)));
        drop(file);
        assert!((64 * MIB..96 * MIB).contains(&bytes(&mut files, &path)), "closed, and still there");
        fs::remove_file(&path).unwrap();
        assert_eq!(bytes(&mut files, &path), 0);
    }

    #[test]
    fn a_segment_that_a_process_has_detached_counts_until_it_is_removed() {
        let perl = |script: &str| {
            let perl = std::process::Command::new("perl").args(["-e", script]).output().unwrap();
            String::from_utf8(perl.stdout).unwrap()
        };
        // Larger than segments that other tests of this process create meanwhile.
        let make = r#"$id = shmget(0, 64 << 20, 0600); shmwrite($id, "x" x (64 << 20), 0, 64 << 20); print $id"#;
        let mut files = WrittenInMemory::begin();
        let id = perl(make);
        let segment = format!("System V segment {id}");
        let mut is_told =
            || files.look(OpenInMemory::default(), &[], 0).known.is_some_and(|found| found.name == segment);
        assert!(is_told(), "nobody saw the process that made it");
        let later = WrittenInMemory::begin().look(OpenInMemory::default(), &[], 0).known;
        assert!(later.is_none_or(|found| found.name != segment));
        perl(&format!("shmctl({id}, 0, 0)"));
        assert!(!is_told());
    }
}
