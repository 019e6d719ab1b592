//! The user on whose behalf bursar runs.

use std::os::fd::AsFd;

use rustix::fs::{Gid, Uid};
use rustix::process::geteuid;

/// The user who called `sudo bursar`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    uid: Uid,
    gid: Gid,
}

impl Caller {
    /// From `SUDO_UID` and `SUDO_GID`, which count only for root. `None`: not run by sudo, or by root itself.
    pub fn of_sudo() -> Option<Caller> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok().filter(|id| *id != u32::MAX);
        let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
        (geteuid().is_root() && uid != 0).then(|| Caller { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) })
    }

    /// Whether a directory of this owner belongs to the caller.
    pub fn owns(&self, uid: u32) -> bool {
        self.uid.as_raw() == uid
    }

    /// Changes the owner of a file or folder to the caller.
    pub(super) fn give(&self, file: impl AsFd) -> rustix::io::Result<()> {
        rustix::fs::fchown(file, Some(self.uid), Some(self.gid))
    }
}

/// Whether files of this user are trusted like bursar's own: of root, of this process's user, or of the sudo caller.
pub fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw() || Caller::of_sudo().is_some_and(|caller| caller.owns(uid))
}
