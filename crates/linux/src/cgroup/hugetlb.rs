//! How many huge pages the hugetlb controller still allows (Documentation/admin-guide/cgroup-v1/hugetlb.rst).

use std::path::{Path, PathBuf};

use super::Cgroup;
use super::limit::UNLIMITED_V1;
use crate::file;

/// Files of limit and usage by version, for pages in use and for reserved ones.
const FILES: [[&str; 2]; 4] = [
    ["max", "current"],
    ["rsvd.max", "rsvd.current"],
    ["limit_in_bytes", "usage_in_bytes"],
    ["rsvd.limit_in_bytes", "rsvd.usage_in_bytes"],
];

/// The tightest limit on huge pages of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugetlbRoom {
    /// The file with the limit.
    pub file: PathBuf,
    /// Remaining bytes.
    pub bytes: u64,
}

impl Cgroup {
    /// How much processes in this cgroup may still take from hugetlb pools of one page size, by its own limits and its ancestors'; `None`:
    /// no limit.
    pub fn hugetlb_room(&self, page_bytes: u64) -> Option<HugetlbRoom> {
        tightest(self.hugetlb.as_deref()?, page_bytes)
    }
}

fn tightest(dir: &Path, page_bytes: u64) -> Option<HugetlbRoom> {
    let size = size_name(page_bytes);
    let of = |dir: &Path, [limit, usage]: [&str; 2]| {
        let file = dir.join(format!("hugetlb.{size}.{limit}"));
        // `max` is not a number.
        let limit = file::number(&file).filter(|limit| *limit < UNLIMITED_V1)?;
        let used = file::number(&dir.join(format!("hugetlb.{size}.{usage}")))?;
        Some(HugetlbRoom { bytes: limit.saturating_sub(used), file })
    };
    let all = dir.ancestors().flat_map(|dir| FILES.iter().filter_map(move |files| of(dir, *files)));
    all.min_by_key(|room| room.bytes)
}

/// The size in the names of the files: 2MB, 1GB.
fn size_name(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{}GB", bytes >> 30),
        bytes if bytes >= 1 << 20 => format!("{}MB", bytes >> 20),
        bytes => format!("{}KB", bytes >> 10),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_tightest_limit_of_all_ancestors_counts() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        let outer = dir.path().join("outer");
        let write = |dir: &Path, name: &str, value: &str| fs::write(dir.join(name), value).unwrap();
        write(&inner, "hugetlb.2MB.max", "max\n");
        write(&inner, "hugetlb.2MB.current", "0\n");
        assert_eq!(tightest(&inner, 2 << 20), None);
        write(&outer, "hugetlb.2MB.max", "67108864\n");
        write(&outer, "hugetlb.2MB.current", "4194304\n");
        let room = |bytes, file: PathBuf| Some(HugetlbRoom { file, bytes });
        assert_eq!(tightest(&inner, 2 << 20), room(60 << 20, outer.join("hugetlb.2MB.max")));
        assert_eq!(tightest(&inner, 1 << 30), None);
        write(&inner, "hugetlb.2MB.rsvd.max", "2097152\n");
        write(&inner, "hugetlb.2MB.rsvd.current", "4194304\n");
        assert_eq!(tightest(&inner, 2 << 20), room(0, inner.join("hugetlb.2MB.rsvd.max")));
        write(&inner, "hugetlb.1GB.limit_in_bytes", "9223372036854771712\n");
        write(&inner, "hugetlb.1GB.usage_in_bytes", "0\n");
        assert_eq!(tightest(&inner, 1 << 30), None, "v1 has a number for no limit");
    }
}
