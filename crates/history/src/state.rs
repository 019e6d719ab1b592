//! The folder in which bursar keeps its records.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use linux::environment;
use linux::secure_file::Folder;

/// Root's state where `HOME` and `XDG_STATE_HOME` are another user's than whoever called sudo.
const OF_ROOT: &str = "/var/lib/bursar";

/// Whether what is made there belongs to this user, or to whoever called sudo.
fn may_use(folder: &Path) -> bool {
    let there = folder.ancestors().find_map(|folder| std::fs::metadata(folder).ok());
    !rustix::process::geteuid().is_root() || there.is_some_and(|there| linux::secure_file::is_trusted(there.uid()))
}

/// `~/.local/state/bursar`, by XDG_STATE_HOME where set.
pub fn state_path() -> anyhow::Result<PathBuf> {
    let home = || environment::folder("HOME").map(|home| home.join(".local/state"));
    let state = environment::folder("XDG_STATE_HOME").or_else(home);
    let folder = state.context("neither HOME nor XDG_STATE_HOME is the full path of a folder")?.join("bursar");
    Ok(if may_use(&folder) { folder } else { PathBuf::from(OF_ROOT) })
}

/// The folder of [`state_path`], made if it is not there. Under sudo, what is made in a folder of the calling user is that user's.
pub fn state_folder() -> anyhow::Result<PathBuf> {
    let folder = state_path()?;
    Folder::create_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}
