//! The state of a pool as stored in its directory: reserved pages, segments, owner.
//!
//! The broker writes it before and after each change that outlives the broker. After a kill, the next start or `bursar pool destroy` then
//! knows what to release.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use linux::pools;
use linux::secure_file::Folder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Minimum size of a segment, because leases are of whole segments and each segment needs a descriptor.
const LEAST_SEGMENT: u64 = 64 << 20;

/// Approximate number of segments of a pool.
const SEGMENTS: u64 = 256;

/// Mode of a pool's state and log: every user may list pools.
pub(crate) const READABLE: u32 = 0o644;

/// The directory of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    name: String,
    path: PathBuf,
}

/// The kind of a pool's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Files of hugetlbfs.
    Hugetlb,
    /// Devices of device-dax.
    Dax,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Pool {
    /// The kind of memory.
    pub backend: Backend,
    /// Size of its pages.
    pub page_bytes: u64,
    /// Size of its segments: a power of two; for a dax device that cannot be divided, the device's size.
    pub segment_bytes: u64,
    /// The nodes of its memory, ascending.
    pub nodes: Vec<u32>,
    /// Whether each segment is interleaved over all nodes, instead of on one.
    pub interleaved: bool,
    /// Owner of the socket.
    pub owner: u32,
    /// Group of the socket.
    pub group: u32,
    /// Mode of the socket.
    pub mode: u32,
    /// Cap for all processes of one user together, bytes.
    pub per_user_bytes: Option<u64>,
    /// Persistent huge pages that were added for this pool, by node.
    pub reserved: BTreeMap<u32, u64>,
    /// Regions of dax devices that are divided for this pool: the first device of each, with its original bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub regions: BTreeMap<String, u64>,
    /// Pages that are being added.
    pub adding: Option<Adding>,
    /// Its segments, by number.
    pub segments: BTreeMap<u32, Segment>,
}

/// Huge pages that are being added to a node: after a kill, they may or may not have been added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Adding {
    /// The node.
    pub node: u32,
    /// Persistent pages before.
    pub before: u64,
    /// How many are needed.
    pub pages: u64,
}

/// The unit of leases.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Segment {
    /// Its size.
    pub bytes: u64,
    /// Its node; `None`: interleaved over the pool's nodes.
    pub node: Option<u32>,
    /// The name of its dax device, once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The first device of the dax region in which its device is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl Directory {
    /// The directory of the pool of this name beneath [`pools::folder`]; it need not exist.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Long`].
    pub fn of(name: &str) -> Result<Directory, Error> {
        Directory::beneath(&pools::folder(), name)
    }

    fn beneath(base: &Path, name: &str) -> Result<Directory, Error> {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || name.starts_with(['.', '-']) || !name.chars().all(known) {
            return Err(Error::Name(name.into()));
        }
        let directory = Directory { name: name.into(), path: base.join(name) };
        let socket = directory.socket();
        if socket.as_os_str().len() > 107 { Err(Error::Long(socket)) } else { Ok(directory) }
    }

    /// All existing pools, by name.
    pub fn all() -> Vec<Directory> {
        pools::names().iter().filter_map(|name| Directory::of(name).ok()).collect()
    }

    /// Creates the directory.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::File`].
    pub(crate) fn create(&self) -> Result<(), Error> {
        let base = self.path.parent().unwrap_or(Path::new("/"));
        let make = |mode, dir: &Path| {
            let made = fs::DirBuilder::new().recursive(true).mode(mode).create(dir);
            made.map_err(Error::file("cannot make", dir))
        };
        if base == Path::new(pools::FOLDER) {
            // The folder above also has bursar's journal of changes: other users may pass through it, but not list it.
            let above = base.parent().unwrap_or(base);
            make(0o711, above)?;
            let passable = fs::Permissions::from_mode(0o711);
            fs::set_permissions(above, passable).map_err(Error::file("cannot change the mode of", above))?;
        }
        make(0o755, base)?;
        match fs::DirBuilder::new().mode(0o755).create(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::Exists(self.name.clone())),
            made => made.map_err(Error::file("cannot make", &self.path)),
        }
    }

    /// Removes the directory; with the last pool, also the folder that [`Directory::create`] created. A folder that `BURSAR_POOLS` names is
    /// kept.
    ///
    /// # Errors
    /// [`Error::File`].
    pub(crate) fn remove(&self) -> Result<(), Error> {
        fs::remove_dir_all(&self.path).map_err(Error::file("cannot remove", &self.path))?;
        if self.path.parent() == Some(Path::new(pools::FOLDER)) {
            let _ = fs::remove_dir(pools::FOLDER);
        }
        Ok(())
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The broker's socket; the runtime gets its path in BURSAR_POOL.
    pub fn socket(&self) -> PathBuf {
        self.path.join(pools::SOCKET)
    }

    /// The output of a detached broker.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The process that holds this lock serves the pool.
    pub(crate) fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path.join(pools::STATE)
    }

    pub(crate) fn huge(&self) -> PathBuf {
        self.path.join("huge")
    }

    /// The file or device of a segment.
    pub(crate) fn segment(&self, number: u32, segment: &Segment) -> PathBuf {
        match &segment.device {
            Some(device) => Path::new("/dev").join(device),
            None => self.huge().join(format!("{}.{number}", self.name)),
        }
    }
}

impl Pool {
    /// Loads the pool of this directory.
    ///
    /// # Errors
    /// [`Error::None`], [`Error::File`], [`Error::State`].
    pub fn load(directory: &Directory) -> Result<Pool, Error> {
        let path = directory.state();
        let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::None(directory.name.clone()),
            _ => Error::File { what: "cannot read", path: path.clone(), source },
        })?;
        let wrong = |why: String| Error::State { path: path.clone(), why };
        let pool: Pool = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        pool.check().map_err(|why| wrong(why.into()))?;
        Ok(pool)
    }

    /// Writes the state atomically.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn save(&self, directory: &Directory) -> Result<(), Error> {
        let path = directory.state();
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other);
        let written = text.and_then(|text| {
            let (folder, name) = Folder::of(&path)?;
            let mut file = folder.replace(&name, READABLE)?;
            file.write_all(text.as_bytes())?;
            file.commit_durably()
        });
        written.map_err(Error::file("cannot write", path))
    }

    /// Checks that segments consist of whole pages.
    fn check(&self) -> Result<(), &'static str> {
        let whole = |bytes: u64| bytes > 0 && self.page_bytes > 0 && bytes % self.page_bytes == 0;
        match () {
            _ if !self.page_bytes.is_power_of_two() => Err("page_bytes is no power of two"),
            _ if !whole(self.segment_bytes) => Err("segment_bytes is not in whole pages"),
            _ if self.nodes.is_empty() => Err("nodes is empty"),
            _ if self.segments.values().any(|segment| !whole(segment.bytes)) => Err("a segment is not in whole pages"),
            _ => Ok(()),
        }
    }

    /// The node of one page of a segment.
    pub(crate) fn node_of(&self, number: u32, segment: &Segment, page: u64) -> u32 {
        let turn = (u64::from(number) * (segment.bytes / self.page_bytes) + page) % self.nodes.len() as u64;
        segment.node.unwrap_or(self.nodes[turn as usize])
    }

    /// Pages that these segments need, by node.
    pub(crate) fn pages_of<'a>(
        &self,
        segments: impl IntoIterator<Item = (&'a u32, &'a Segment)>,
    ) -> BTreeMap<u32, u64> {
        let mut pages = BTreeMap::new();
        for (number, segment) in segments {
            for page in 0..segment.bytes / self.page_bytes {
                *pages.entry(self.node_of(*number, segment, page)).or_default() += 1;
            }
        }
        pages
    }

    /// Plans new hugetlbfs segments for at least so many bytes, each on the node with the fewest segments so far.
    pub(crate) fn plan_segments(&self, bytes: u64) -> BTreeMap<u32, Segment> {
        let mut on: BTreeMap<u32, u64> = self.nodes.iter().map(|node| (*node, 0)).collect();
        for node in self.segments.values().filter_map(|segment| segment.node) {
            *on.entry(node).or_default() += 1;
        }
        let first = self.segments.keys().last().map_or(0, |last| last + 1);
        let place = |number| {
            let node = self.nodes.iter().copied().min_by_key(|node| on[node]).filter(|_| !self.interleaved);
            if let Some(node) = node {
                *on.entry(node).or_default() += 1;
            }
            (number, Segment { bytes: self.segment_bytes, node, device: None, region: None })
        };
        let count = bytes.div_ceil(self.segment_bytes).min(u64::from(u32::MAX - first)) as u32;
        (first..first + count).map(place).collect()
    }
}

/// The size of the segments of a pool.
pub fn segment_bytes(pool_bytes: u64, page_bytes: u64) -> u64 {
    // No machine has more memory; a larger value would overflow the power of two.
    pool_bytes.min(1 << 60).div_ceil(SEGMENTS).next_power_of_two().max(LEAST_SEGMENT).max(page_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn pool(nodes: &[u32], interleaved: bool) -> Pool {
        Pool {
            backend: Backend::Hugetlb,
            page_bytes: 2 << 20,
            segment_bytes: 64 << 20,
            nodes: nodes.into(),
            interleaved,
            owner: 0,
            group: 0,
            mode: 0o660,
            per_user_bytes: None,
            reserved: BTreeMap::new(),
            regions: BTreeMap::new(),
            adding: None,
            segments: BTreeMap::new(),
        }
    }

    #[test]
    fn a_segment_is_a_power_of_two_and_about_a_256th_of_the_pool() {
        for (pool, page, segment) in [
            (1, 2 << 20, 64 << 20),
            (16 << 30, 2 << 20, 64 << 20),
            ((16 << 30) + 1, 2 << 20, 128 << 20),
            (100 << 30, 2 << 20, 512 << 20),
            (3 << 30, 1 << 30, 1 << 30),
            (u64::MAX, 2 << 20, 1 << 52),
        ] {
            assert_eq!(segment_bytes(pool, page), segment, "{pool} in pages of {page}");
        }
    }

    #[test]
    fn new_segments_go_to_the_node_with_the_fewest() {
        let mut pool = pool(&[0, 1], false);
        let nodes = |segments: &BTreeMap<u32, Segment>| segments.values().map(|s| s.node.unwrap()).collect::<Vec<_>>();
        pool.segments = pool.plan_segments(192 << 20);
        assert_eq!(nodes(&pool.segments), [0, 1, 0]);
        let more = pool.plan_segments(64 << 20);
        assert_eq!((more.keys().copied().collect::<Vec<_>>(), nodes(&more)), (vec![3], vec![1]));
        assert_eq!(pool.pages_of(&pool.segments), BTreeMap::from([(0, 64), (1, 32)]));
        assert!(pool.plan_segments(0).is_empty());
    }

    #[test]
    fn an_interleaved_segment_is_spread_over_all_nodes() {
        let mut pool = pool(&[0, 2], true);
        pool.segments = pool.plan_segments(64 << 20);
        assert_eq!(pool.segments[&0].node, None);
        assert_eq!(pool.pages_of(&pool.segments), BTreeMap::from([(0, 16), (2, 16)]));
        // With pages as large as segments, the segments alternate between nodes.
        pool.page_bytes = 64 << 20;
        pool.segments = pool.plan_segments(128 << 20);
        assert_eq!(pool.pages_of(&pool.segments), BTreeMap::from([(0, 1), (2, 1)]));
    }

    #[test]
    fn saved_state_is_loaded_unchanged() {
        let base = tempfile::tempdir().unwrap();
        let directory = Directory::beneath(base.path(), "p").unwrap();
        directory.create().unwrap();
        assert!(matches!(directory.create(), Err(Error::Exists(name)) if name == "p"));
        assert!(matches!(Pool::load(&directory), Err(Error::None(_))));
        let mut pool = pool(&[0], false);
        pool.segments = pool.plan_segments(200 << 20);
        pool.reserved = BTreeMap::from([(0, 128)]);
        pool.adding = Some(Adding { node: 0, before: 3, pages: 32 });
        pool.save(&directory).unwrap();
        assert_eq!(Pool::load(&directory).unwrap(), pool);
        let text = fs::read_to_string(directory.state()).unwrap();
        for wrong in [text[..text.len() / 2].to_string(), text.replace("67108864", "67108865"), "[]".into()] {
            fs::write(directory.state(), wrong).unwrap();
            assert!(matches!(Pool::load(&directory), Err(Error::State { .. })));
        }
    }

    #[test]
    fn pool_names_are_valid_directory_names() {
        let base = Path::new("/run/x");
        for name in ["default", "job-1.a_B"] {
            assert_eq!(Directory::beneath(base, name).unwrap().path(), base.join(name));
        }
        for name in ["", ".", "..", ".x", "-x", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(matches!(Directory::beneath(base, name), Err(Error::Name(_))), "{name}");
        }
        assert!(matches!(Directory::beneath(&base.join("x".repeat(99)), "p"), Err(Error::Long(_))));
    }
}
