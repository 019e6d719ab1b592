//! All visible memory cgroups of the machine. Reads only directories, no processes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Cgroup, Version, charges_hugetlb, hugetlb_in, is_memory_v1, version_of};
use crate::mounts::{self, Mount};
use crate::{Error, file};

/// The hierarchy of the memory controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    version: Version,
    point: PathBuf,
    /// The v2 hierarchy, if it is separate.
    unified: Option<PathBuf>,
    /// The v1 hierarchy of hugetlb, if it is separate.
    hugetlb: Option<PathBuf>,
    charges_hugetlb: bool,
}

/// A cgroup found by the walk.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its path from the mount point, without a leading slash.
    pub path: &'a Path,
    /// Its inode number: a new cgroup of the same path has another one.
    pub inode: u64,
    /// Whether it has no children.
    pub is_leaf: bool,
}

impl Tree {
    /// The tree of this machine.
    ///
    /// # Errors
    /// [`Error::NotAMemoryCgroup`] without a visible memory controller.
    pub fn find() -> Result<Tree, Error> {
        Tree::among(&mounts::own()).ok_or_else(|| Error::NotAMemoryCgroup("/sys/fs/cgroup".into()))
    }

    fn among(mounts: &[Mount]) -> Option<Tree> {
        let point = |serves: &dyn Fn(&Mount) -> bool| {
            mounts::best_first(mounts, serves).first().map(|mount| mount.point.clone())
        };
        let unified = point(&|mount| mount.kind == "cgroup2");
        let hugetlb = point(&|mount| mount.kind == "cgroup" && mount.options.iter().any(|option| option == "hugetlb"));
        match point(&is_memory_v1) {
            Some(point) => Some(Tree { version: Version::V1, point, unified, hugetlb, charges_hugetlb: false }),
            None => {
                let point = unified.filter(|point| version_of(point) == Some(Version::V2))?;
                let charges_hugetlb = charges_hugetlb(mounts);
                Some(Tree { version: Version::V2, point, unified: None, hugetlb, charges_hugetlb })
            }
        }
    }

    /// Version of the hierarchy.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its mount point.
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// Passes every cgroup beneath the root to `visit`, parents before children, and descends where `visit` returns true. Cgroups that
    /// vanish meanwhile are skipped.
    pub fn walk(&self, visit: &mut dyn FnMut(Found<'_>) -> bool) {
        let mut waiting = vec![self.point.clone()];
        while let Some(dir) = waiting.pop() {
            let mut beneath = file::subdirectories(&dir).unwrap_or_default();
            beneath.sort_unstable_by(|a, b| b.cmp(a));
            for child in beneath {
                let Ok(metadata) = fs::metadata(&child) else { continue };
                // On v2 the controller ends where it is not enabled for children.
                if self.version == Version::V2 && !child.join("memory.current").exists() {
                    continue;
                }
                let path = child.strip_prefix(&self.point).unwrap_or(&child);
                // cgroupfs counts children in links.
                let is_leaf = metadata.nlink() == 2;
                if visit(Found { path, inode: metadata.ino(), is_leaf }) && !is_leaf {
                    waiting.push(child);
                }
            }
        }
    }

    /// The cgroup of a path that [`Tree::walk`] has found.
    pub fn cgroup(&self, path: &Path) -> Cgroup {
        let dir = self.point.join(path);
        let beside = |point: &Option<PathBuf>| Some(point.as_deref()?.join(path)).filter(|dir| dir.exists());
        let unified = beside(&self.unified);
        let own = beside(&self.hugetlb).or_else(|| hugetlb_in(&dir));
        let hugetlb = own.or_else(|| hugetlb_in(unified.as_deref()?));
        Cgroup { version: self.version, dir, unified, hugetlb, charges_hugetlb: self.charges_hugetlb }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(name: &str) -> Tree {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(name);
        let mut mounts = mounts::parse(&fs::read(root.join("proc/self/mountinfo")).unwrap());
        for mount in &mut mounts {
            mount.point = root.join(mount.point.strip_prefix("/").unwrap());
        }
        Tree::among(&mounts).unwrap()
    }

    fn paths(tree: &Tree, beneath: impl Fn(&Path) -> bool) -> Vec<String> {
        let mut paths = Vec::new();
        tree.walk(&mut |found| {
            paths.push(found.path.display().to_string());
            beneath(found.path)
        });
        paths
    }

    #[test]
    fn both_versions_and_separate_hierarchies_are_walked() {
        let hybrid = recorded("linux-6.18-v1/hybrid");
        assert_eq!(hybrid.version(), Version::V1);
        assert_eq!(paths(&hybrid, |_| true), ["bursar-record", "bursar-record/inner"]);
        let inner = hybrid.cgroup(Path::new("bursar-record/inner"));
        assert!(inner.memory().unwrap().usage.is_some() && inner.pressure().is_some());

        let unified = recorded("debian-6.1-v2/plain");
        assert_eq!(unified.version(), Version::V2);
        assert_eq!(paths(&unified, |_| true), ["jobs", "jobs/job"]);
        assert_eq!(paths(&unified, |_| false), ["jobs"]);
        assert!(unified.cgroup(Path::new("jobs/job")).pressure().is_some());
    }

    #[test]
    fn a_machine_without_a_memory_controller_has_no_tree() {
        assert_eq!(Tree::among(&mounts::parse(b"31 23 0:28 / /no/such/dir rw - cgroup2 cgroup2 rw")), None);
        assert_eq!(Tree::among(&[]), None);
    }
}
