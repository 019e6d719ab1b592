//! A pool of real huge pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{bursar, huge_pages_alone, is_root, need};

/// A pool of 128 MiB in a folder of its own, and the machine's huge pages as they were at the end.
pub struct Pool {
    base: tempfile::TempDir,
    pages_before: String,
    _alone: std::fs::File,
}

impl Pool {
    /// `None` where there is no right to reserve.
    pub fn create() -> Option<Pool> {
        if !is_root() || !need("hugetlb", Path::new("/sys/kernel/mm/hugepages").exists()) {
            return None;
        }
        let alone = huge_pages_alone();
        let pool = Pool { base: tempfile::tempdir().unwrap(), pages_before: pages(), _alone: alone };
        let made = pool.with(bursar().args(["pool", "create", "128M"])).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(pool)
    }

    /// Where its broker listens.
    pub fn socket(&self) -> PathBuf {
        self.base.path().join("default/socket")
    }

    /// A command that finds it, and no other.
    pub fn with<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("BURSAR_POOLS", self.base.path())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let destroyed = self.with(bursar().args(["pool", "destroy", "--force"])).output().unwrap();
        if !std::thread::panicking() {
            assert!(destroyed.status.success(), "{}", String::from_utf8_lossy(&destroyed.stderr));
            assert_eq!(pages(), self.pages_before, "the machine has the huge pages it had");
        }
    }
}

fn pages() -> String {
    std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap()
}
