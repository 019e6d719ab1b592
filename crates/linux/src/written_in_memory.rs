//! Files in memory that a job wrote: tmpfs, ramfs, memfds and System V segments. Data that a process writes there by calls, or has
//! detached, is in no RSS; without a cgroup, only the descriptors of the job's processes and the list of segments show it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use model::Named;

use crate::holders::{FileId, mapped_files};
use crate::open_in_memory::OpenFile;
use crate::shared_memory::{segment_ids, segments_made};

/// If all files together are smaller than this, they are not reported, bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// Maximum number of files followed after they were closed.
const MOST_FILES: usize = 1_000;

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

    /// Memory of the files in `found`, which are open now, and of those found or reported before, with the name of the largest.
    /// `mapped_bytes`: the most shared memory that one process has mapped; its RSS includes it already, so it is subtracted from mapped
    /// files. `None`: less than 1 MiB. Takes a few system calls per file.
    pub fn look(&mut self, found: BTreeMap<FileId, OpenFile>, pids: &[i32], mapped_bytes: u64) -> Option<Named> {
        // A closed file stays in memory as long as it has a name.
        let is_closed = |id: &FileId| !found.contains_key(id);
        let mapped: BTreeSet<FileId> = match mapped_bytes > 0 && self.files.keys().any(is_closed) {
            true => pids.iter().flat_map(|pid| mapped_files(*pid)).collect(),
            false => BTreeSet::new(),
        };
        self.files.retain(|id, file| {
            let bytes = if is_closed(id) { bytes_if_there(*id, file) } else { Some(0) };
            file.bytes = bytes.unwrap_or(0);
            file.mapped_bytes = if mapped.contains(id) { file.bytes } else { 0 };
            bytes.is_some()
        });
        for (id, file) in found {
            if self.files.len() < MOST_FILES || self.files.contains_key(&id) {
                self.files.insert(id, file);
            }
        }
        self.pids.extend(pids);
        let segments = segments_made(&self.pids, &self.segments_before);
        let segments: Vec<OpenFile> = segments.into_iter().map(of_segment).collect();
        let all = self.files.values().chain(&segments);
        let (mapped, unmapped): (Vec<_>, Vec<_>) = all.partition(|file| file.mapped_bytes > 0);
        let sum = |files: &[&OpenFile]| files.iter().map(|file| file.bytes).sum::<u64>();
        let bytes = sum(&unmapped) + sum(&mapped).saturating_sub(mapped_bytes);
        let largest = unmapped.iter().chain(&mapped).max_by_key(|file| file.bytes)?;
        (bytes >= LEAST_BYTES).then(|| Named { name: largest.name.clone(), bytes: Some(bytes) })
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
            let found = files.look(open_in_memory(own.into_iter()).files, &own, 0);
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
        let mut is_told = || files.look(BTreeMap::new(), &[], 0).is_some_and(|found| found.name == segment);
        assert!(is_told(), "nobody saw the process that made it");
        assert!(WrittenInMemory::begin().look(BTreeMap::new(), &[], 0).is_none_or(|found| found.name != segment));
        perl(&format!("shmctl({id}, 0, 0)"));
        assert!(!is_told());
    }
}
