//! Containers of Docker and Podman, and options that would give their root more rights.

use std::path::Path;

use rustix::process::geteuid;

use crate::becoming_root;

/// Files that these two create in every container.
const MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Whether this process is in such a container.
pub(crate) fn is_here() -> bool {
    MARKS.iter().any(|mark| Path::new(mark).exists())
}

/// The option that makes a read-only mount writable for a container's root: `--privileged` mounts `/proc/sys` and the cgroups writable.
pub(crate) fn to_write(path: &Path) -> Option<&'static str> {
    let is_root = geteuid().is_root() && becoming_root::is_in_initial_namespace();
    (is_here() && is_root && becoming_root::is_read_only(path)).then_some("start the container with --privileged")
}
