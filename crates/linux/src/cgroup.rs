//! Memory cgroups of both versions behind one type.
//!
//! v2: Documentation/admin-guide/cgroup-v2.rst. v1: Documentation/admin-guide/cgroup-v1/memory.rst. On a hybrid system memory is on a v1
//! hierarchy, and a v2 hierarchy is mounted beside it, which has pressure, `cgroup.kill` and perhaps hugetlb.

mod allotment;
mod hugetlb;
mod limit;
mod members;
mod memory;
mod reclaim;
mod slurm;
#[cfg(test)]
mod tests;
mod threaded;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::journal::{Guard, Journal};
use crate::mounts::{self, Membership, Mount};
use crate::psi::{self, Psi};
use crate::{Error, file};

pub use allotment::Allotment;
pub(crate) use allotment::put_back;
pub use hugetlb::HugetlbRoom;
pub(crate) use members::{kill_all, own_processes, remove_tree};
pub use memory::MemoryState;
pub use threaded::ThreadedCgroup;
pub(crate) use threaded::is_threaded_domain;
pub use tree::{Found, Tree};

/// Version of the hierarchy of the memory controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// The unified hierarchy.
    V2,
}

/// Whether a limited job may swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The limit is on memory, and no swap may be used.
    Forbidden,
    /// The limit is only on memory; swap is limited by the system alone.
    Allowed,
}

/// A cgroup with a memory controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    version: Version,
    dir: PathBuf,
    /// Its directory on a separate v2 hierarchy.
    unified: Option<PathBuf>,
    /// The directory whose `hugetlb.*` files apply to these processes.
    hugetlb: Option<PathBuf>,
    /// Whether hugetlb pages are part of the charge.
    charges_hugetlb: bool,
}

impl Cgroup {
    /// The cgroup that a process's memory is charged to; `None` without a visible memory controller. If the v2 controller is not enabled
    /// for the process's own cgroup, this is the nearest ancestor where it is, as in the kernel.
    ///
    /// # Errors
    /// [`Error::Gone`] if the process ended.
    pub fn of(pid: i32) -> Result<Option<Cgroup>, Error> {
        let path = PathBuf::from(format!("/proc/{pid}/cgroup"));
        let text = fs::read(&path).map_err(|source| match source.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => Error::Gone(pid),
            _ => Error::Read { path, source },
        })?;
        Ok(Cgroup::find(&mounts::own(), &mounts::parse_memberships(&text)))
    }

    /// The cgroup of a directory, or of a path as in `/proc/PID/cgroup`.
    ///
    /// # Errors
    /// [`Error::NotAMemoryCgroup`], [`Error::Threaded`].
    pub fn at(dir: &Path) -> Result<Cgroup, Error> {
        let mounts = mounts::own();
        let beneath_mounts = mounts.iter().filter(|mount| is_memory_v1(mount) || mount.kind == "cgroup2");
        let candidates =
            std::iter::once(dir.to_path_buf()).chain(beneath_mounts.filter_map(|mount| mount.resolve(dir)));
        let found = candidates
            .filter_map(|dir| {
                Some(Cgroup {
                    version: version_of(&dir)?,
                    unified: None,
                    hugetlb: None,
                    charges_hugetlb: charges_hugetlb(&mounts),
                    dir,
                })
            })
            .next()
            .ok_or_else(|| match ThreadedCgroup::at(dir) {
                Some(threaded) => Error::Threaded { path: dir.into(), domain: threaded.domain().into() },
                None => Error::NotAMemoryCgroup(dir.into()),
            })?;
        // Other hierarchies need not mirror this one: use the paths of a process in it.
        let pid = found.processes().unwrap_or_default().into_iter().next();
        let same = pid.and_then(|pid| Cgroup::of(pid).ok()?).filter(|whole| whole.dir == found.dir);
        Ok(same.unwrap_or_else(|| Cgroup { hugetlb: hugetlb_in(&found.dir), ..found }))
    }

    /// Whether a process's memory is charged here or beneath; `None` if it has ended.
    pub fn holds(&self, pid: i32) -> Option<bool> {
        match Cgroup::of(pid) {
            Ok(Some(of)) => Some(of.dir.starts_with(&self.dir)),
            Ok(None) => Some(false),
            Err(_) => None,
        }
    }

    /// Whether it has processes that are not visible in this PID namespace. v1 does not list them at all.
    pub fn has_hidden_processes(&self) -> bool {
        own_processes(&self.dir).is_ok_and(|pids| pids.contains(&0))
    }

    /// Version of the memory controller's hierarchy.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The directory of the memory controller.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it is the root of a hierarchy: this stands for the machine, has no limit and cannot be left.
    pub fn is_root(&self) -> bool {
        match self.version {
            Version::V1 => self.dir.join("cgroup.sane_behavior").exists(),
            Version::V2 => !self.dir.join("cgroup.type").exists() && !self.dir.join("memory.current").exists(),
        }
    }

    /// Whether child cgroups can be created and processes moved there.
    pub fn is_writable(&self) -> bool {
        file::is_writable(&self.dir) && file::is_writable(&self.dir.join("cgroup.procs"))
    }

    /// Creates a child, on every hierarchy that this cgroup is on. On v2 the memory controller must be enabled for children
    /// ([`crate::place`] does so).
    ///
    /// # Errors
    /// [`Error::Create`]; [`Error::NotAMemoryCgroup`] if the controller is not enabled for children.
    pub fn create_child(&self, name: &str) -> Result<Cgroup, Error> {
        let child = self.child(name);
        let mut made = Vec::new();
        for dir in child.directories() {
            if let Err(source) = fs::create_dir(dir) {
                for dir in made {
                    let _ = fs::remove_dir(dir);
                }
                return Err(Error::Create { path: dir.into(), source });
            }
            made.push(dir);
        }
        child.adopt()
    }

    /// The child that [`Cgroup::create_child`] would create. Other hierarchies take part only if they are writable.
    pub(crate) fn child(&self, name: &str) -> Cgroup {
        let beside =
            |dir: &Option<PathBuf>| dir.as_deref().filter(|dir| file::is_writable(dir)).map(|dir| dir.join(name));
        Cgroup {
            version: self.version,
            dir: self.dir.join(name),
            unified: beside(&self.unified),
            hugetlb: beside(&self.hugetlb),
            charges_hugetlb: self.charges_hugetlb,
        }
    }

    /// Completes a cgroup whose directories were just created.
    pub(crate) fn adopt(mut self) -> Result<Cgroup, Error> {
        if version_of(&self.dir) != Some(self.version) {
            let _ = self.remove();
            return Err(Error::NotAMemoryCgroup(self.dir));
        }
        // Before Linux 5.11 sums over descendants had to be enabled.
        let hierarchy = self.dir.join("memory.use_hierarchy");
        if file::number(&hierarchy) == Some(0) {
            file::write(&hierarchy, "1")?;
        }
        if self.hugetlb.is_none() {
            self.hugetlb = hugetlb_in(&self.dir).or_else(|| hugetlb_in(self.unified.as_deref()?));
        }
        Ok(self)
    }

    /// Its directories on all hierarchies, each once.
    pub(crate) fn directories(&self) -> Vec<&Path> {
        let mut dirs = vec![self.dir.as_path()];
        for dir in [&self.unified, &self.hugetlb].into_iter().flatten() {
            if !dirs.contains(&dir.as_path()) {
                dirs.push(dir);
            }
        }
        dirs
    }

    /// Pressure of its processes; `None` on a pure v1 system, or if the kernel has none.
    pub fn pressure(&self) -> Option<Psi> {
        let dir = self.pressure_dir()?;
        psi::read(&dir.join("memory.pressure"), &dir.join("io.pressure"))
    }

    /// The directory on the v2 hierarchy, unless that is the root, whose pressure is the machine's.
    pub(crate) fn pressure_dir(&self) -> Option<&Path> {
        let dir = match self.version {
            Version::V1 => self.unified.as_deref()?,
            Version::V2 => &self.dir,
        };
        dir.join("cgroup.type").exists().then_some(dir)
    }

    /// The topmost visible cgroup in this one's hierarchies (v1).
    pub(crate) fn top(&self, mounts: &[Mount]) -> Cgroup {
        let top = |dir: &Path| {
            let above = mounts.iter().rev().map(|mount| &mount.point).find(|point| dir.starts_with(point));
            above.cloned().unwrap_or_else(|| dir.into())
        };
        Cgroup {
            version: self.version,
            dir: top(&self.dir),
            unified: self.unified.as_deref().map(top),
            hugetlb: self.hugetlb.as_deref().map(top),
            charges_hugetlb: self.charges_hugetlb,
        }
    }

    /// On a hybrid system hugetlb may be on the v2 hierarchy, where it must be enabled for children.
    pub(crate) fn enable_hugetlb(&self, journal: &Journal) -> Vec<Guard> {
        let unified = self.unified.as_deref().filter(|_| self.hugetlb.is_none());
        unified.and_then(|dir| journal.controller(dir, "hugetlb").ok().flatten()).into_iter().collect()
    }

    /// Whether bursar created it or an ancestor.
    pub(crate) fn is_ours(&self) -> bool {
        self.dir.components().any(|part| part.as_os_str().to_string_lossy().starts_with(crate::place::PREFIX))
    }

    fn find(mounts: &[Mount], memberships: &[Membership]) -> Option<Cgroup> {
        let unified = memberships.iter().find(|line| line.controllers.is_empty());
        let unified = unified.and_then(|line| resolve(mounts, |mount| mount.kind == "cgroup2", &line.path));
        let v1 = |name: &'static str| {
            let line = memberships.iter().find(|line| line.controllers.iter().any(|controller| controller == name))?;
            let serves = |mount: &Mount| mount.kind == "cgroup" && mount.options.iter().any(|option| option == name);
            resolve(mounts, serves, &line.path)
        };
        if let Some(dir) = v1("memory").filter(|dir| version_of(dir) == Some(Version::V1)) {
            let hugetlb = v1("hugetlb").or_else(|| hugetlb_in(unified.as_deref()?));
            return Some(Cgroup { version: Version::V1, dir, unified, hugetlb, charges_hugetlb: false });
        }
        let unified = unified?;
        let dir = unified.ancestors().take_while(|dir| dir.join("cgroup.procs").exists());
        let dir = dir.into_iter().find(|dir| version_of(dir) == Some(Version::V2))?;
        Some(Cgroup {
            version: Version::V2,
            dir: dir.into(),
            unified: None,
            hugetlb: v1("hugetlb").or_else(|| hugetlb_in(dir)),
            charges_hugetlb: charges_hugetlb(mounts),
        })
    }
}

pub(crate) fn is_memory_v1(mount: &Mount) -> bool {
    mount.kind == "cgroup" && mount.options.iter().any(|option| option == "memory")
}

/// Since Linux 6.6 an option of the v2 hierarchy (Documentation/admin-guide/cgroup-v2.rst).
fn charges_hugetlb(mounts: &[Mount]) -> bool {
    let has = |mount: &Mount| mount.options.iter().any(|option| option == "memory_hugetlb_accounting");
    mounts.iter().any(|mount| mount.kind == "cgroup2" && has(mount))
}

/// The directory of the cgroup `path` in a mount of its hierarchy that shows it.
fn resolve(mounts: &[Mount], serves: impl Fn(&Mount) -> bool, path: &Path) -> Option<PathBuf> {
    let is_cgroup = |dir: &PathBuf| dir.join("cgroup.procs").exists();
    let serving = mounts::best_first(mounts, serves);
    serving.iter().filter_map(|mount| mount.resolve(path)).find(is_cgroup).or_else(|| {
        // The mount was made in another cgroup namespace, so its root does not apply here (cgroup_namespaces(7)). A container's own cgroup
        // is then the mount point itself.
        serving
            .iter()
            .filter(|mount| mount.root.starts_with("/.."))
            .map(|mount| mount.point.clone())
            .filter(|_| path == Path::new("/"))
            .find(is_cgroup)
    })
}

/// The version of a directory with a memory controller, by its files.
fn version_of(dir: &Path) -> Option<Version> {
    if dir.join("memory.limit_in_bytes").exists() {
        return Some(Version::V1);
    }
    let enabled = || file::read_if_present(&dir.join("cgroup.controllers"));
    let has_memory = |text: String| text.split_whitespace().any(|name| name == "memory");
    let v2 = dir.join("memory.current").exists() || enabled().is_some_and(has_memory);
    v2.then_some(Version::V2)
}

fn hugetlb_in(dir: &Path) -> Option<PathBuf> {
    let has =
        fs::read_dir(dir).ok()?.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("hugetlb."));
    has.then(|| dir.into())
}
