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
    /// By `SUDO_UID` and `SUDO_GID`, which count only for root. `None`: this process is not run by sudo, or by root for itself.
    pub fn of_sudo() -> Option<Caller> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok().filter(|id| *id != u32::MAX);
        let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
        (geteuid().is_root() && uid != 0).then(|| Caller { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) })
    }

    /// Whether a directory of this owner is the caller's.
    pub fn owns(&self, uid: u32) -> bool {
        self.uid.as_raw() == uid
    }

    /// Gives the caller a file or folder.
    pub(super) fn give(&self, file: impl AsFd) -> rustix::io::Result<()> {
        rustix::fs::fchown(file, Some(self.uid), Some(self.gid))
    }
}

/// Whether what this user owns may be trusted as bursar's own: the user is root, this process's user, or who called sudo.
pub fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw() || Caller::of_sudo().is_some_and(|caller| caller.owns(uid))
}
