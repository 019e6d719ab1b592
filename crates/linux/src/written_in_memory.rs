//! Files in memory that a job wrote: tmpfs, ramfs and files without a name (memfds). What a process writes there by calls is in no
//! RSS; without a cgroup, the descriptors of the job's processes are the only place that shows it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::Named;

use crate::holders::{self, FileId};
use crate::shared_memory::is_in_memory;

/// Less than this of all files together is not looked into, bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// Files that are followed, at most.
const MOST_FILES: usize = 1_000;

/// The files in memory that processes of a job have, or had, open.
#[derive(Debug, Default)]
pub struct WrittenInMemory {
    /// By device (`st_dev`): whether its file system holds its files in memory.
    devices: HashMap<u64, bool>,
    /// The name of each file, as the process that opened it sees it, and that process.
    files: BTreeMap<FileId, (i32, PathBuf)>,
}

impl WrittenInMemory {
    /// What these files occupy now, by the name of the largest. `mapped_bytes`: the most shared memory that one process has mapped,
    /// which its RSS holds already; it is taken off the files that a process maps. `None`: less than 1 MiB. Costs a few system
    /// calls per descriptor.
    pub fn look(&mut self, pids: &[i32], mapped_bytes: u64) -> Option<Named> {
        let mut found: BTreeMap<FileId, u64> = BTreeMap::new();
        for pid in pids {
            for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
                let path = entry.path();
                let Some((id, bytes)) = self.occupied(&path) else { continue };
                found.insert(id, bytes);
                if self.files.len() < MOST_FILES && !self.files.contains_key(&id) {
                    self.files.insert(id, (*pid, fs::read_link(&path).unwrap_or_default()));
                }
            }
        }
        // A file that was closed stays in memory for as long as it has a name.
        let mut closed = self.files.clone();
        closed.retain(|id, _| !found.contains_key(id));
        for (id, (pid, name)) in &closed {
            let inside = PathBuf::from(format!("/proc/{pid}/root{}", name.display()));
            let same = [inside, name.clone()].iter().find_map(|path| self.occupied(path).filter(|(now, _)| now == id));
            match same {
                Some((_, bytes)) => _ = found.insert(*id, bytes),
                None => _ = self.files.remove(id),
            }
        }
        if found.values().sum::<u64>() < LEAST_BYTES {
            return None;
        }
        let mapped: BTreeSet<FileId> = pids.iter().flat_map(|pid| holders::mapped_files(*pid)).collect();
        let (mapped, unmapped): (Vec<_>, Vec<_>) = found.iter().partition(|(id, _)| mapped.contains(id));
        let sum = |files: &[(&FileId, &u64)]| files.iter().map(|(_, bytes)| **bytes).sum::<u64>();
        let bytes = sum(&unmapped) + sum(&mapped).saturating_sub(mapped_bytes);
        let largest = unmapped.iter().chain(&mapped).max_by_key(|(_, bytes)| **bytes)?.0;
        let name = self.files.get(largest).map(|(_, name)| name.to_string_lossy().into_owned()).unwrap_or_default();
        (bytes >= LEAST_BYTES).then_some(Named { name, bytes: Some(bytes) })
    }

    /// The memory of a regular file in memory, bytes.
    fn occupied(&mut self, path: &Path) -> Option<(FileId, u64)> {
        let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let is_in_memory = *self.devices.entry(facts.dev()).or_insert_with(|| is_in_memory(path));
        let id = FileId { device: facts.dev(), inode: facts.ino() };
        is_in_memory.then(|| (id, facts.blocks() * 512))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_written_file_counts_until_it_is_removed() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = folder.path().join("written");
        let mut file = fs::File::create(&path).unwrap();
        let own = [std::process::id() as i32];
        let mut files = WrittenInMemory::default();
        let bytes = |files: &mut WrittenInMemory, name: &Path| {
            let found = files.look(&own, 0);
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
}
