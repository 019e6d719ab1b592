//! Transparent huge pages, and what this kernel lets programs control.

use std::io;
use std::path::{Path, PathBuf};
use std::ptr;

use crate::file;

/// Not in libc yet: with this flag, [`libc::PR_SET_THP_DISABLE`] exempts advised ranges (Linux 6.18).
pub const PR_THP_DISABLE_EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

/// The folder of the machine's settings.
pub(crate) const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
/// The file of a setting.
pub(crate) const FILE: &str = "enabled";

/// The machine's mode: `always`, `madvise` or `never`; `None`: the kernel was built without them.
pub fn mode() -> Option<String> {
    mode_of(None)
}

/// The mode of pages of this size (`inherit`: the machine's), or the machine's own; `None`: the kernel has none.
pub fn mode_of(bytes: Option<u64>) -> Option<String> {
    chosen(&file::read_if_present(&setting(bytes))?).map(String::from)
}

/// Huge pages of which programs of this machine have freed a part since boot, in bytes, each counted whole. `None`: the kernel does not
/// count them.
pub fn parted_bytes() -> Option<u64> {
    let folder = Path::new(FOLDER);
    let of_size = |folder: &PathBuf| {
        let kib: u64 = folder.file_name()?.to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some(file::number(&folder.join("stats/split_deferred"))? * (kib << 10))
    };
    let of_all_sizes = || {
        let sizes = file::subdirectories(folder).unwrap_or_default();
        sizes.iter().filter_map(of_size).reduce(|a, b| a + b)
    };
    // Before Linux 6.10 there is one sum, for the largest size.
    let of_largest = || {
        let counts = file::read_if_present(Path::new("/proc/vmstat"))?;
        let (_, count) = file::pairs(&counts).find(|(key, _)| *key == "thp_deferred_split_page")?;
        Some(count * file::number(&folder.join("hpage_pmd_size"))?)
    };
    of_all_sizes().or_else(of_largest)
}

/// Whether a page fault may bring a huge page of shared anonymous memory.
pub fn shared_may_be_huge() -> bool {
    let folder = Path::new(FOLDER);
    let sizes = file::subdirectories(folder).unwrap_or_default();
    let settings = std::iter::once(folder).chain(sizes.iter().map(PathBuf::as_path));
    let mut texts = settings.filter_map(|folder| file::read_if_present(&folder.join("shmem_enabled")));
    texts.any(|text| !matches!(chosen(&text), Some("never" | "deny" | "inherit")))
}

/// The file that sets the mode of pages of this size, or the machine's own.
pub fn setting(bytes: Option<u64>) -> PathBuf {
    let folder = Path::new(FOLDER);
    bytes.map_or_else(|| folder.to_path_buf(), |bytes| folder.join(format!("hugepages-{}kB", bytes >> 10))).join(FILE)
}

/// The bracketed choice in a list.
pub(crate) fn chosen(choices: &str) -> Option<&str> {
    Some(choices.split_once('[')?.1.split_once(']')?.0)
}

/// While this lives, this process and its children have no huge pages, advised or not.
#[derive(Debug)]
pub struct Disabled {
    before: libc::c_int,
}

impl Disabled {
    /// Disables them.
    ///
    /// # Errors
    /// `prctl`'s error.
    pub fn for_children() -> io::Result<Disabled> {
        // SAFETY: neither call accesses memory of ours.
        let (before, set) = unsafe {
            (libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0), libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0))
        };
        if before < 0 || set != 0 { Err(io::Error::last_os_error()) } else { Ok(Disabled { before }) }
    }
}

impl Drop for Disabled {
    fn drop(&mut self) {
        set_disabled(self.before);
    }
}

/// Restores the result of `PR_GET_THP_DISABLE`: the flags, with 1 for disabled.
fn set_disabled(state: libc::c_int) {
    let (set, flags) = (libc::c_ulong::from(state & 1 == 1), (state & !1) as libc::c_ulong);
    // SAFETY: the call accesses no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, set, flags, 0, 0) };
}

/// Whether the kernel knows an advice (`madvise`).
pub fn knows(advice: libc::c_int) -> bool {
    // SAFETY: an empty range; unknown advice is refused all the same.
    unsafe { libc::madvise(ptr::null_mut(), 0, advice) == 0 }
}

/// Whether a process can make a huge page of populated memory whatever the machine's mode is (Linux 6.1).
pub fn can_collapse() -> bool {
    knows(libc::MADV_COLLAPSE)
}

/// Whether a process can disable huge pages except advised ones. Tries it on this process for a moment.
pub fn can_except_advised() -> bool {
    // SAFETY: none of these calls accesses memory of ours.
    unsafe {
        let before = libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0);
        if before < 0 || libc::prctl(libc::PR_SET_THP_DISABLE, 1, PR_THP_DISABLE_EXCEPT_ADVISED, 0, 0) != 0 {
            return false;
        }
        set_disabled(before);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_advice_is_recognised_and_other_is_not() {
        assert!(knows(libc::MADV_DONTNEED));
        assert!(!knows(9999));
    }

    #[test]
    fn a_setting_is_named_by_its_size_and_read_from_its_choices() {
        assert!(setting(None).ends_with("transparent_hugepage/enabled"));
        assert!(setting(Some(64 << 10)).ends_with("hugepages-64kB/enabled"));
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("always"), None);
    }

    #[test]
    fn a_partly_freed_huge_page_is_counted() {
        const HUGE: usize = 2 << 20;
        let Some(before) = parted_bytes() else { return };
        // SAFETY: the test's own mapping, which contains the huge page.
        let was_huge = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let memory = libc::mmap(ptr::null_mut(), 2 * HUGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            let page = memory.byte_add(memory.align_offset(HUGE));
            libc::madvise(page, HUGE, libc::MADV_HUGEPAGE);
            ptr::write_bytes(page.cast::<u8>(), 1, HUGE);
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            libc::madvise(page, HUGE / 2, libc::MADV_DONTNEED);
            libc::munmap(memory, 2 * HUGE);
            smaps.lines().any(|line| line.starts_with("AnonHugePages:") && !line.ends_with(" 0 kB"))
        };
        assert!(!was_huge || parted_bytes() >= Some(before + HUGE as u64));
    }

    #[test]
    fn the_check_changes_nothing() {
        let disabled = || unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
        let before = disabled();
        can_except_advised();
        assert_eq!(disabled(), before);
        let off = Disabled::for_children().unwrap();
        assert_eq!(disabled() & 1, 1);
        drop(off);
        assert_eq!(disabled(), before);
        if let Some(mode) = mode() {
            assert!(["always", "madvise", "never"].contains(&mode.as_str()), "{mode}");
        }
    }
}
