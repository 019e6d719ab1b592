//! How much of a file in memory is charged to other cgroups: `/proc/kpagecgroup` names the cgroup of each page
//! (Documentation/admin-guide/mm/pagemap.rst).

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{SeekFrom, seek};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::{file, procfs};

/// Number of pages of a file that are sampled.
const LOOKED_AT: u64 = 64;
const FRAME: u64 = (1 << 55) - 1;
const PRESENT: u64 = 1 << 63;

/// Finds the cgroups that pages are charged to.
#[derive(Debug)]
pub struct Charges {
    group: Option<PathBuf>,
    /// The directories of the cgroup and its descendants.
    inodes: HashSet<u64>,
    charged: Option<File>,
    frames: Option<File>,
    began_seconds: i64,
}

impl Charges {
    /// `group`: the directory of the job's cgroup.
    pub fn of(group: Option<&Path>) -> Charges {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
        let mut charges = Charges {
            group: group.map(Path::to_path_buf),
            inodes: HashSet::new(),
            charged: group.and_then(|_| File::open("/proc/kpagecgroup").ok()),
            frames: File::open("/proc/self/pagemap").ok(),
            began_seconds: now,
        };
        charges.find_groups();
        charges
    }

    /// Bytes of a file charged elsewhere, estimated from a sample of its pages. Without page cgroups: all of a file that did not change
    /// since the begin.
    pub fn elsewhere(&mut self, path: &Path, facts: &Metadata) -> u64 {
        let bytes = facts.blocks() * 512;
        if bytes == 0 {
            return 0;
        }
        let part = self.part_elsewhere(path, facts.len());
        let unchanged = if facts.ctime() < self.began_seconds { 1.0 } else { 0.0 };
        (bytes as f64 * part.unwrap_or(unchanged)) as u64
    }

    fn part_elsewhere(&mut self, path: &Path, length: u64) -> Option<f64> {
        self.charged.as_ref()?;
        let file = File::open(path).ok()?;
        let page = procfs::page_bytes();
        let pages = length.div_ceil(page);
        let (protection, flags) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a mapping of its own, unmapped below. No page beyond the file's end is touched, unless it is truncated meanwhile: see
        // `touch`.
        let memory =
            unsafe { mmap(std::ptr::null_mut(), (pages * page) as usize, protection, flags, &file, 0) }.ok()?;
        let step = pages.div_ceil(LOOKED_AT).max(1);
        let mut groups = Vec::new();
        for number in (0..pages).step_by(step as usize) {
            let at = number * page;
            // Touching a hole would allocate a page charged to us.
            if seek(&file, SeekFrom::Data(at)).ok() != Some(at) {
                continue;
            }
            let address = memory as u64 + at;
            groups.extend(self.group_of(address, page));
        }
        // SAFETY: unmaps the mapping above.
        let _ = unsafe { munmap(memory, (pages * page) as usize) };
        if groups.iter().any(|group| !self.inodes.contains(group)) {
            self.find_groups();
        }
        let elsewhere = groups.iter().filter(|group| !self.inodes.contains(group)).count();
        (!groups.is_empty()).then(|| elsewhere as f64 / groups.len() as f64)
    }

    fn group_of(&self, address: u64, page: u64) -> Option<u64> {
        touch(address, page)?;
        let entry = number(self.frames.as_ref()?, address / page).filter(|entry| entry & PRESENT != 0)?;
        number(self.charged.as_ref()?, entry & FRAME)
    }

    fn find_groups(&mut self) {
        let mut folders: Vec<PathBuf> = self.group.iter().cloned().collect();
        while let Some(folder) = folders.pop() {
            self.inodes.extend(std::fs::metadata(&folder).map(|facts| facts.ino()).ok());
            folders.extend(file::subdirectories(&folder).unwrap_or_default());
        }
    }
}

/// Has the kernel map a page; it refuses if the file was truncated (MADV_POPULATE_READ, Linux 5.14).
fn touch(address: u64, page: u64) -> Option<()> {
    // SAFETY: within our own mapping; the call copies nothing into this process.
    let failed = unsafe { libc::madvise(address as *mut libc::c_void, page as usize, libc::MADV_POPULATE_READ) };
    (failed == 0).then_some(())
}

fn number(file: &File, index: u64) -> Option<u64> {
    let mut bytes = [0u8; 8];
    file.read_exact_at(&mut bytes, 8 * index).ok()?;
    Some(u64::from_ne_bytes(bytes))
}
