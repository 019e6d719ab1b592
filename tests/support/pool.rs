//! A pool of real huge pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{bursar, huge_pages_alone, is_root, need};

/// A pool of 128 MiB in a folder of its own; dropping it destroys the pool and asserts that the machine has as many huge pages as before.
pub struct Pool {
    base: tempfile::TempDir,
    pages_before: String,
    _alone: std::fs::File,
}

impl Pool {
    /// `None` without the right to reserve huge pages.
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

    /// The socket of its broker.
    pub fn socket(&self) -> PathBuf {
        self.base.path().join("default/socket")
    }

    /// Makes a command find this pool and no other.
    pub fn with<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("BURSAR_POOLS", self.base.path())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let destroyed = self.with(bursar().args(["pool", "destroy", "--force"])).output().unwrap();
        if !std::thread::panicking() {
            assert!(destroyed.status.success(), "{}", String::from_utf8_lossy(&destroyed.stderr));
            assert_eq!(pages(), self.pages_before, "the machine has as many huge pages as before");
        }
    }
}

fn pages() -> String {
    std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap()
}
