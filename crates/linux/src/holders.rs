//! Which processes have a file open or mapped.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{file, procfs};

/// A file, independent of its path: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

/// A process, and which of the requested files it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its PID.
    pub pid: i32,
    /// The user it runs as.
    pub uid: u32,
    /// Its command name.
    pub command: String,
    /// The files it holds.
    pub files: BTreeSet<FileId>,
}

impl FileId {
    /// The file at a path; `None` if there is none.
    pub fn of(path: &Path) -> Option<FileId> {
        let found = fs::metadata(path).ok()?;
        Some(FileId { device: found.dev(), inode: found.ino() })
    }
}

/// All other processes that have one of these files open or mapped, as far as this user may read them (root: all). Takes milliseconds for
/// hundreds of processes.
pub fn holders(files: &BTreeSet<FileId>) -> Vec<Holder> {
    let own = std::process::id() as i32;
    procfs::processes().into_iter().filter(|pid| *pid != own).filter_map(|pid| holder(pid, files)).collect()
}

fn holder(pid: i32, files: &BTreeSet<FileId>) -> Option<Holder> {
    let dir = format!("/proc/{pid}");
    let mut found: BTreeSet<FileId> = mapped_files(pid).into_iter().filter(|id| files.contains(id)).collect();
    let open = fs::read_dir(format!("{dir}/fd")).into_iter().flatten().flatten();
    found.extend(open.filter_map(|entry| FileId::of(&entry.path())).filter(|id| files.contains(id)));
    if found.is_empty() {
        return None;
    }
    // Not the owner of the directory, which is root where a process may not be traced.
    let status = file::read_if_present(Path::new(&format!("{dir}/status")))?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()?;
    Some(Holder { pid, uid, command: procfs::stat(pid).ok()?.comm, files: found })
}

/// The files that a process has mapped; none if it may not be read.
pub(crate) fn mapped_files(pid: i32) -> BTreeSet<FileId> {
    let maps = file::read_if_present(Path::new(&format!("/proc/{pid}/maps"))).unwrap_or_default();
    maps.lines().filter_map(mapped).collect()
}

/// Parses `7f…-7f… rw-s 00000000 00:2f 1234   /path`, with the device's major and minor number in hexadecimal.
fn mapped(line: &str) -> Option<FileId> {
    let mut fields = line.split_ascii_whitespace();
    let (major, minor) = fields.nth(3)?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some(FileId { device: rustix::fs::makedev(number(major)?, number(minor)?), inode: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_its_open_and_mapped_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let wanted = BTreeSet::from([FileId::of(file.path()).unwrap()]);
        let mut child =
            std::process::Command::new("sleep").arg("20").stdin(fs::File::open(file.path()).unwrap()).spawn().unwrap();
        let pid = child.id() as i32;
        let found = holders(&wanted);
        let program = fs::canonicalize(format!("/proc/{pid}/exe")).unwrap();
        let of_program = holders(&BTreeSet::from([FileId::of(&program).unwrap()]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.iter().map(|holder| holder.pid).collect::<Vec<_>>(), [pid]);
        assert_eq!(found[0].files, wanted);
        assert!(of_program.iter().any(|holder| holder.pid == pid), "its code is mapped: {of_program:?}");
        assert_eq!(holders(&wanted), []);
    }
}
