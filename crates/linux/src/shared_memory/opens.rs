//! Which process opens which file in memory (fanotify(7)), and how much of it was charged elsewhere at that time. Needs CAP_SYS_ADMIN and
//! CAP_DAC_READ_SEARCH.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_int};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::Named;

use super::charged::Charges;

/// Maximum number of files followed; beyond it, opens are reported as incomplete.
const MOST_FILES: usize = 20_000;
/// `struct fanotify_event_metadata`.
const METADATA_BYTES: usize = 24;
/// Size of `struct fanotify_event_info_header` and the file system id, before the handle.
const HANDLE_AT: usize = 12;
/// Size of `struct file_handle` without the handle itself.
const HANDLE_HEAD: usize = 8;

/// A file as the kernel identifies it: the id of its file system, and its handle.
type Handle = Vec<u8>;

/// Records each open of a file on file systems in memory.
#[derive(Debug)]
pub struct Opens {
    events: File,
    /// Mount point of each file system, by its id. Not kept open, because that would block unmounting.
    mounts: HashMap<[u8; 8], PathBuf>,
    charges: Charges,
    opened: HashMap<Handle, Opened>,
    /// memfds that existed before, by handle.
    nameless: HashMap<Handle, Named>,
    is_incomplete: bool,
}

#[derive(Debug, Default)]
struct Opened {
    name: String,
    /// Bytes charged elsewhere when a process opened it.
    by: BTreeMap<i32, u64>,
}

impl Opens {
    /// Watches these mount points and memfds (`/proc/PID/fd/N`); `None` if not permitted. `group`: the directory of the job's cgroup.
    pub fn watch(points: &[PathBuf], nameless: &[PathBuf], group: Option<&Path>) -> Option<Opens> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_REPORT_FID | libc::FAN_NONBLOCK | libc::FAN_CLOEXEC;
        // SAFETY: the call takes two numbers.
        let fd = unsafe { libc::fanotify_init(flags, (libc::O_RDONLY | libc::O_CLOEXEC) as u32) };
        if fd < 0 {
            return None;
        }
        // SAFETY: a new descriptor that only this code owns.
        let events = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let mut opens = Opens {
            events,
            mounts: HashMap::new(),
            charges: Charges::of(group),
            opened: HashMap::new(),
            nameless: HashMap::new(),
            is_incomplete: false,
        };
        for point in points {
            let Some(system) = number_of(point) else { continue };
            if opens.mark(point, libc::FAN_MARK_FILESYSTEM) {
                opens.mounts.insert(system, point.clone());
            }
        }
        for path in nameless {
            let Some((system, handle)) = number_of(path).zip(handle_of(path)) else { continue };
            let Ok(facts) = fs::metadata(path) else { continue };
            let name = fs::read_link(path).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if opens.mark(path, 0) {
                let handle = [&system[..], &handle].concat();
                opens.nameless.insert(handle, Named { name, bytes: Some(facts.blocks() * 512) });
            }
        }
        (!opens.mounts.is_empty()).then_some(opens)
    }

    /// Reads the opens so far. Takes some 10 µs for each file and process.
    pub fn drain(&mut self) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read) = self.events.read(&mut buffer) {
            let mut events = &buffer[..read];
            while let Some(length) = number(events, 0).map(|length| length as usize) {
                if length < METADATA_BYTES || length > events.len() {
                    break;
                }
                let (event, rest) = events.split_at(length);
                self.take(event);
                events = rest;
            }
            if read == 0 {
                break;
            }
        }
    }

    /// The files that processes of the job opened and that were charged elsewhere, largest first; and whether there may be more.
    pub fn by(mut self, is_job: &dyn Fn(i32) -> bool) -> (Vec<Named>, bool) {
        self.drain();
        let mut found: Vec<Named> = self
            .opened
            .into_values()
            .filter_map(|opened| {
                let bytes = opened.by.iter().filter(|(pid, _)| is_job(**pid)).map(|(_, bytes)| *bytes).max()?;
                (bytes > 0).then_some(Named { name: opened.name, bytes: Some(bytes) })
            })
            .collect();
        found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        (found, self.is_incomplete)
    }

    fn mark(&self, path: &Path, kind: u32) -> bool {
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
        // SAFETY: the path ends with NUL and lives until the call returns.
        let failed = unsafe {
            libc::fanotify_mark(
                self.events.as_raw_fd(),
                libc::FAN_MARK_ADD | kind,
                libc::FAN_OPEN,
                libc::AT_FDCWD,
                path.as_ptr(),
            )
        };
        failed == 0
    }

    fn take(&mut self, event: &[u8]) {
        let mask = event.get(8..16).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
        if mask & libc::FAN_Q_OVERFLOW != 0 {
            self.is_incomplete = true;
        }
        let pid = number(event, 20).unwrap_or(0) as i32;
        let info = &event[METADATA_BYTES..];
        let is_file = info.first() == Some(&libc::FAN_EVENT_INFO_TYPE_FID);
        if mask & libc::FAN_OPEN == 0 || pid <= 0 || pid == std::process::id() as i32 || !is_file {
            return;
        }
        let Some(bytes) = number(info, HANDLE_AT).map(|bytes| bytes as usize) else { return };
        let Some(handle) = info.get(4..HANDLE_AT + HANDLE_HEAD + bytes) else { return };
        if self.opened.get(handle).is_some_and(|opened| opened.by.contains_key(&pid)) {
            return;
        }
        if self.opened.len() >= MOST_FILES {
            self.is_incomplete = true;
            return;
        }
        let Some(file) = self.charged_elsewhere(handle) else { return };
        let opened = self.opened.entry(handle.to_vec()).or_default();
        opened.name = file.name;
        opened.by.insert(pid, file.bytes.unwrap_or(0));
    }

    /// A file's name and the bytes charged elsewhere; `None` if it is gone, or not a regular file.
    fn charged_elsewhere(&mut self, handle: &[u8]) -> Option<Named> {
        if let Some(known) = self.nameless.get(handle) {
            return Some(known.clone());
        }
        let system: [u8; 8] = handle.get(..8)?.try_into().ok()?;
        let mut words = handle.get(8..)?.to_vec();
        let directory = File::open(self.mounts.get(&system)?).ok()?;
        // Only a path: opening a pipe for reading would wake its writer.
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        // SAFETY: the kernel gave this handle, which begins with its length; it is copied and not kept.
        let fd = unsafe { libc::open_by_handle_at(directory.as_raw_fd(), words.as_mut_ptr().cast(), flags) };
        if fd < 0 {
            return None;
        }
        // SAFETY: a new descriptor that only this code owns.
        let path = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let facts = path.metadata().ok().filter(fs::Metadata::is_file)?;
        let link = format!("/proc/self/fd/{}", path.as_raw_fd());
        let name = fs::read_link(&link).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Some(Named { name, bytes: Some(self.charges.elsewhere(Path::new(&link), &facts)) })
    }
}

/// The id of a path's file system, as in events.
fn number_of(path: &Path) -> Option<[u8; 8]> {
    let found = rustix::fs::statfs(path).ok()?;
    // SAFETY: two numbers of 32 bits, on all architectures.
    Some(unsafe { std::mem::transmute::<rustix::fs::Fsid, [u8; 8]>(found.f_fsid) })
}

/// A file's handle with its header, as in events.
fn handle_of(path: &Path) -> Option<Vec<u8>> {
    const MOST: usize = 128;
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut handle = vec![0u32; (HANDLE_HEAD + MOST) / 4];
    handle[0] = MOST as u32;
    let mut mount: c_int = 0;
    // SAFETY: the buffer has room for as many bytes as its first number states; the path ends with NUL.
    let failed = unsafe {
        libc::name_to_handle_at(
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr().cast(),
            &raw mut mount,
            libc::AT_SYMLINK_FOLLOW,
        )
    };
    let bytes: Vec<u8> = handle.iter().flat_map(|word| word.to_ne_bytes()).collect();
    (failed == 0).then(|| bytes[..HANDLE_HEAD + handle[0] as usize].to_vec())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_system_that_is_watched_can_be_unmounted() {
        let folder = tempfile::tempdir().unwrap();
        let ran = |program: &str, words: &[&str]| Command::new(program).args(words).status().unwrap().success();
        if !rustix::process::geteuid().is_root()
            || !ran("mount", &["-t", "tmpfs", "tmpfs", &folder.path().to_string_lossy()])
        {
            return;
        }
        let path = folder.path().to_string_lossy().into_owned();
        let file = folder.path().join("file");
        fs::write(&file, [1; 8192]).unwrap();
        let mut opens = Opens::watch(&[folder.path().to_path_buf()], &[], None);
        let was_read = ran("cat", &[&file.to_string_lossy()]);
        if let Some(opens) = &mut opens {
            opens.drain();
        }
        assert!(ran("umount", &[&path]) && was_read, "{path} is busy");
    }
}
