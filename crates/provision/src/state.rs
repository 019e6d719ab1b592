//! A pool as it is kept in its directory: what was reserved, where, for whom.
//!
//! The broker writes it, before and after each change that outlives it, so that whatever kills the broker, the next start or
//! `bursar pool destroy` knows what to give back.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use linux::pools;
use linux::secure_file::Folder;
use serde::{Deserialize, Serialize};

use crate::Error;

/// A segment is at least so large, for a lease is of whole segments and each has a descriptor.
const LEAST_SEGMENT: u64 = 64 << 20;

/// A pool is divided into about so many segments.
const SEGMENTS: u64 = 256;

/// Mode of a pool's state and log: every user may see what pools there are.
pub(crate) const READABLE: u32 = 0o644;

/// Where a pool lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    name: String,
    path: PathBuf,
}

/// What a pool's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Files of hugetlbfs.
    Hugetlb,
    /// Devices of device-dax.
    Dax,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// What its memory is.
    pub backend: Backend,
    /// Size of its pages.
    pub page_bytes: u64,
    /// Size of its segments, a power of two; of a dax device that cannot be divided, the device's.
    pub segment_bytes: u64,
    /// The nodes its memory is spread over, ascending.
    pub nodes: Vec<u32>,
    /// Whether each segment is on all nodes, page by page, rather than on one.
    pub interleaved: bool,
    /// Owner of the socket.
    pub owner: u32,
    /// Group of the socket.
    pub group: u32,
    /// Mode of the socket.
    pub mode: u32,
    /// What the processes of one user may have together.
    pub per_user_bytes: Option<u64>,
    /// Persistent huge pages that were added for this pool, by node.
    pub reserved: BTreeMap<u32, u64>,
    /// Regions of dax devices that are divided for this pool, by their first device, with the bytes that this had.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub regions: BTreeMap<String, u64>,
    /// Some that are just being added.
    pub adding: Option<Adding>,
    /// Its segments, by number.
    pub segments: BTreeMap<u32, Segment>,
}

/// Huge pages that may or may not have been added to a node when this is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adding {
    /// Where.
    pub node: u32,
    /// Persistent pages before.
    pub before: u64,
    /// How many are needed.
    pub pages: u64,
}

/// A part of a pool that is lent as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its size.
    pub bytes: u64,
    /// Where its memory is; `None`: on the pool's nodes in turn.
    pub node: Option<u32>,
    /// The name of the dax device, if it has one by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The first device of the dax region that devices for it are made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl Directory {
    /// Of the pool of a name, whether it is there or not, beneath [`pools::folder`].
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

    /// All pools that there are, by name.
    pub fn all() -> Vec<Directory> {
        pools::names().iter().filter_map(|name| Directory::of(name).ok()).collect()
    }

    /// Makes it.
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
            // The journal of what bursar changes is there, too: others may pass through, and not look.
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

    /// Removes it, and what [`Directory::create`] made for it once it is the last. A folder that `BURSAR_POOLS` names is
    /// somebody else's.
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

    /// Where the broker answers: what the runtime is given as BURSAR_POOL.
    pub fn socket(&self) -> PathBuf {
        self.path.join(pools::SOCKET)
    }

    /// What a detached broker prints.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Whoever has it locked serves the pool.
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
    /// The pool that lives there.
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

    /// Writes it, whole or not at all.
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

    /// What is lent as a whole and what pages are made of must fit together; the rest of a file is as good as its numbers.
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

    /// New segments of hugetlbfs for at least so many bytes, each on the node that has the fewest until then.
    pub(crate) fn more(&self, bytes: u64) -> BTreeMap<u32, Segment> {
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
    // Beyond this no machine has memory; without it the power of two would overflow.
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
    fn new_segments_go_where_there_are_fewest() {
        let mut pool = pool(&[0, 1], false);
        let nodes = |segments: &BTreeMap<u32, Segment>| segments.values().map(|s| s.node.unwrap()).collect::<Vec<_>>();
        pool.segments = pool.more(192 << 20);
        assert_eq!(nodes(&pool.segments), [0, 1, 0]);
        let more = pool.more(64 << 20);
        assert_eq!((more.keys().copied().collect::<Vec<_>>(), nodes(&more)), (vec![3], vec![1]));
        assert_eq!(pool.pages_of(&pool.segments), BTreeMap::from([(0, 64), (1, 32)]));
        assert!(pool.more(0).is_empty());
    }

    #[test]
    fn an_interleaved_segment_is_on_all_nodes_in_turn() {
        let mut pool = pool(&[0, 2], true);
        pool.segments = pool.more(64 << 20);
        assert_eq!(pool.segments[&0].node, None);
        assert_eq!(pool.pages_of(&pool.segments), BTreeMap::from([(0, 16), (2, 16)]));
        // With pages as large as segments, the segments take turns.
        pool.page_bytes = 64 << 20;
        pool.segments = pool.more(128 << 20);
        assert_eq!(pool.pages_of(&pool.segments), BTreeMap::from([(0, 1), (2, 1)]));
    }

    #[test]
    fn the_state_reads_as_it_was_written() {
        let base = tempfile::tempdir().unwrap();
        let directory = Directory::beneath(base.path(), "p").unwrap();
        directory.create().unwrap();
        assert!(matches!(directory.create(), Err(Error::Exists(name)) if name == "p"));
        assert!(matches!(Pool::load(&directory), Err(Error::None(_))));
        let mut pool = pool(&[0], false);
        pool.segments = pool.more(200 << 20);
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
    fn a_name_is_that_of_a_directory_and_of_nothing_above_it() {
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
