//! Folders that variables of the environment name.

use std::env;
use std::path::PathBuf;

/// What a variable names, if that is a whole path. An empty one names nothing, and a relative one would mean whatever folder bursar is
/// started in: the XDG specification ignores both.
pub fn folder(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folder for temporary files: by `TMPDIR`, else `/tmp`.
pub fn temporary() -> PathBuf {
    folder("TMPDIR").unwrap_or_else(|| "/tmp".into())
}
