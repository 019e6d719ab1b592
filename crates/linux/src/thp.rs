//! Transparent huge pages, and what this kernel lets programs decide of them.

use std::path::Path;
use std::ptr;

use crate::file;

/// Not in libc yet: with it, [`libc::PR_SET_THP_DISABLE`] leaves ranges alone that were advised (Linux 6.18).
pub const PR_THP_DISABLE_EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

/// The machine's mode: `always`, `madvise` or `never`; `None`: the kernel was built without them.
pub fn mode() -> Option<String> {
    let modes = file::read_if_there(Path::new("/sys/kernel/mm/transparent_hugepage/enabled"))?;
    Some(modes.split_once('[')?.1.split_once(']')?.0.to_string())
}

/// Whether the kernel knows an advice (`madvise`).
pub fn knows(advice: libc::c_int) -> bool {
    // SAFETY: no memory is concerned; what is not known is refused all the same.
    unsafe { libc::madvise(ptr::null_mut(), 0, advice) == 0 }
}

/// Whether a process can be kept from huge pages but for what is advised. Says so to this one for a moment.
pub fn can_except_advised() -> bool {
    // SAFETY: none of these calls has to do with memory of ours.
    unsafe {
        let before = libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0);
        if before < 0 || libc::prctl(libc::PR_SET_THP_DISABLE, 1, PR_THP_DISABLE_EXCEPT_ADVISED, 0, 0) != 0 {
            return false;
        }
        // What it was is told as the flags with 1 for being set.
        let (set, flags) = (libc::c_ulong::from(before & 1 == 1), (before & !1) as libc::c_ulong);
        libc::prctl(libc::PR_SET_THP_DISABLE, set, flags, 0, 0);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_that_there_is_is_known_and_other_is_not() {
        assert!(knows(libc::MADV_DONTNEED));
        assert!(!knows(9999));
    }

    #[test]
    fn asking_changes_nothing() {
        let disabled = || unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
        let before = disabled();
        can_except_advised();
        assert_eq!(disabled(), before);
        if let Some(mode) = mode() {
            assert!(["always", "madvise", "never"].contains(&mode.as_str()), "{mode}");
        }
    }
}
