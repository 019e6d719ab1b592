//! Containers of Docker and Podman, and what would give their root more rights.

use std::path::Path;

use rustix::process::geteuid;

use crate::becoming_root;

/// The files that the two leave in every container.
const MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Whether this is one.
pub(crate) fn is_here() -> bool {
    MARKS.iter().any(|mark| Path::new(mark).exists())
}

/// What lets a container's root write there, where a read-only mount is what forbids it: `--privileged` mounts `/proc/sys` and the cgroups
/// for writing.
pub(crate) fn to_write(path: &Path) -> Option<&'static str> {
    let is_root = geteuid().is_root() && becoming_root::is_in_initial_namespace();
    (is_here() && is_root && becoming_root::is_read_only(path)).then_some("start the container with --privileged")
}
