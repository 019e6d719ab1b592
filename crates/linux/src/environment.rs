//! Folders named by environment variables.

use std::env;
use std::path::PathBuf;

/// The folder that a variable names, if its path is absolute. Empty and relative paths are ignored, as the XDG specification demands: a
/// relative one would depend on the current folder.
pub fn folder(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folder for temporary files: by `TMPDIR`, else `/tmp`.
pub fn temporary() -> PathBuf {
    folder("TMPDIR").unwrap_or_else(|| "/tmp".into())
}
