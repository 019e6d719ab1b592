//! The files of the journals: their place, owner and content.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use super::change::Change;
use crate::secure_file::{Folder, PRIVATE_FILE, PRIVATE_FOLDER, temporary_base};
use crate::{Error, environment, procfs};

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

/// Another journal, as read from its file.
pub struct Other {
    pub name: OsString,
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
    /// Whether its owner lives, as far as known: PIDs of another namespace mean nothing here.
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
    let temporary =
        temporary_base().unwrap_or_else(|_| environment::temporary()).join(format!("bursar-{}", uid.as_raw()));
    // For root only directories that no other user controls: variables preserved by sudo name the caller's folders.
    let first = match uid.is_root() {
        true => Some(PathBuf::from("/run/bursar")),
        false => environment::folder("XDG_RUNTIME_DIR").map(|dir| dir.join("bursar")),
    };
    first.into_iter().chain([temporary]).collect()
}

/// The directory, opened, and the file of a new journal in it.
pub struct Begun {
    pub dir: Folder,
    pub path: PathBuf,
    pub file: Mutex<File>,
}

/// Creates the directory and the file in it; on failure returns the reason as a clause.
pub fn create(dir: &Path, owner: &Owner) -> Result<Begun, String> {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let failed = |error: std::io::Error| format!("{} cannot be made ({error})", dir.display());
    let (above, name) = Folder::of(dir).map_err(failed)?;
    let folder = above.create_folder(&name, PRIVATE_FOLDER).map_err(failed)?;
    check(&folder).map_err(|reason| format!("{} {reason}", dir.display()))?;
    // Under the lock, no living owner's file is without a line.
    let _lock = lock(&folder);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{}-{number}.journal", owner.pid, owner.start_ticks);
    let path = dir.join(&name);
    let file = folder.create_new(name.as_ref(), PRIVATE_FILE).and_then(|mut file| {
        append(&mut file, &Line::Owner(owner.clone()))?;
        Ok(file)
    });
    match file {
        Ok(file) => Ok(Begun { dir: folder, path, file: Mutex::new(file) }),
        Err(error) => {
            let _ = folder.remove(name.as_ref());
            Err(format!("{} cannot be written ({error})", path.display()))
        }
    }
}

/// Opens the directory of journals, unless it is a link or others can list or change it, because repair acts on its content. Others may
/// pass through to a directory beneath whose name they know, such as a pool's.
pub fn open(dir: &Path) -> Option<Folder> {
    let (above, name) = Folder::of(dir).ok()?;
    let folder = above.open_folder(&name).ok()?;
    check(&folder).ok().map(|()| folder)
}

fn check(folder: &Folder) -> Result<(), &'static str> {
    match folder.is_own() {
        Ok(true) => Ok(()),
        _ => Err("is not a directory of this user alone (mode 0700)"),
    }
}

pub fn lock(dir: &Folder) -> Option<File> {
    let file = dir.create_or_open("lock".as_ref()).ok()?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive).ok()?;
    Some(file)
}

/// One `write` per line: after a kill the file ends with a complete line, or with one whose change was not made yet.
pub fn append(file: &mut File, line: &Line) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

pub fn read_all(dir: &Folder) -> Vec<Other> {
    names(dir).into_iter().filter_map(|name| read_one(dir, name)).collect()
}

/// The names of the journals in it.
pub fn names(dir: &Folder) -> Vec<OsString> {
    let is_journal = |name: &OsString| Path::new(name).extension().is_some_and(|kind| kind == "journal");
    dir.names().unwrap_or_default().into_iter().filter(is_journal).collect()
}

fn read_one(dir: &Folder, name: OsString) -> Option<Other> {
    let mut text = String::new();
    dir.open_file(&name, OFlags::RDONLY).ok()?.read_to_string(&mut text).ok()?;
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
    Some(Other { name, owner, open: open.into_iter().map(|(_, change)| change).collect() })
}

fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}
