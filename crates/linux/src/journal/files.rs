//! The files that journals are kept in: where, whose, and what stands in them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::change::Change;
use crate::{Error, procfs};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pid: i32,
    start_ticks: u64,
    boot_id: String,
    pid_namespace: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    Owner(Owner),
    Change { id: u32, change: Change },
    Undone(u32),
}

/// Another journal as read from its file.
pub struct Other {
    pub path: PathBuf,
    owner: Owner,
    /// Changes not undone yet.
    pub open: Vec<Change>,
}

impl Owner {
    pub fn this_process() -> Result<Owner, Error> {
        let pid = std::process::id() as i32;
        Ok(Owner {
            pid,
            start_ticks: procfs::stat(pid)?.starttime,
            boot_id: procfs::boot_id()?,
            pid_namespace: pid_namespace(),
        })
    }
}

impl Other {
    /// Whether its owner lives, as far as can be told: PIDs of another namespace mean nothing here.
    pub fn is_alive(&self) -> bool {
        let owner = &self.owner;
        let runs = || {
            procfs::stat(owner.pid)
                .is_ok_and(|stat| stat.starttime == owner.start_ticks && !matches!(stat.state, 'Z' | 'X'))
        };
        self.is_of_this_boot() && (owner.pid_namespace != pid_namespace() || runs())
    }

    /// A reboot undoes everything that is journaled.
    pub fn is_of_this_boot(&self) -> bool {
        procfs::boot_id().is_ok_and(|boot_id| boot_id == self.owner.boot_id)
    }
}

pub fn directories() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid();
    let run = uid.is_root().then(|| PathBuf::from("/run/bursar"));
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = variable("XDG_RUNTIME_DIR").map(|dir| dir.join("bursar"));
    let temporary = std::env::temp_dir().join(format!("bursar-{}", uid.as_raw()));
    run.into_iter().chain(runtime).chain([temporary]).collect()
}

/// Makes the directory and the file in it; on failure the reason as a clause.
pub fn create(dir: &Path, owner: &Owner) -> Result<(PathBuf, Mutex<File>), String> {
    static FILES: AtomicU32 = AtomicU32::new(0);
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(format!("{} cannot be made ({error})", dir.display()));
        }
        _ => check(dir)?,
    }
    // Whoever has the lock sees no living owner's file without a line.
    let _lock = lock(dir);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = dir.join(format!("{}-{}-{number}.journal", owner.pid, owner.start_ticks));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path).and_then(|mut file| {
        append(&mut file, &Line::Owner(owner.clone()))?;
        Ok(file)
    });
    match file {
        Ok(file) => Ok((path, Mutex::new(file))),
        Err(error) => {
            let _ = fs::remove_file(&path);
            Err(format!("{} cannot be written ({error})", path.display()))
        }
    }
}

/// Nobody else may have prepared the directory: repair acts on what it finds there. Others may pass through to a directory
/// beneath whose name they know, such as that of a pool.
pub fn check(dir: &Path) -> Result<(), String> {
    let found = fs::symlink_metadata(dir).map_err(|error| format!("{} cannot be read ({error})", dir.display()))?;
    let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o066 == 0;
    own.then_some(()).ok_or_else(|| format!("{} is not a directory of this user alone (mode 0700)", dir.display()))
}

pub fn lock(dir: &Path) -> Option<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(dir.join("lock")).ok()?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive).ok()?;
    Some(file)
}

/// One `write` per line: after a kill the file ends with a whole line, or with one whose change was not yet made.
pub fn append(file: &mut File, line: &Line) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

pub fn read_all(dir: &Path) -> Vec<Other> {
    paths(dir).into_iter().filter_map(read_one).collect()
}

pub fn paths(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "journal")).collect();
    paths.sort();
    paths
}

fn read_one(path: PathBuf) -> Option<Other> {
    let text = fs::read_to_string(&path).ok()?;
    let mut lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let Some(Line::Owner(owner)) = lines.next() else { return None };
    let mut open: Vec<(u32, Change)> = Vec::new();
    for line in lines {
        match line {
            Line::Change { id, change } => open.push((id, change)),
            Line::Undone(undone) => open.retain(|(id, _)| *id != undone),
            Line::Owner(_) => {}
        }
    }
    Some(Other { path, owner, open: open.into_iter().map(|(_, change)| change).collect() })
}

fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}
