//! The libraries that run inside observed processes: embedded in bursar, unpacked when a command needs one.

mod others;

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use linux::environment::folder;
use linux::secure_file::{Folder, is_safe_from_others, temporary_base};
use rustix::fs::{Access, MemfdFlags, OFlags, SealFlags, StatVfsMountFlags, fcntl_add_seals, memfd_create};
use rustix::process::geteuid;

use crate::Error;

/// A library that is embedded here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// For `attribute`, `provision` and `advise`.
    Runtime,
    /// Notes references to files, and nothing else: it costs a process little.
    References,
}

impl Library {
    fn image(self) -> &'static [u8] {
        match self {
            Library::Runtime => include_bytes!(concat!(env!("OUT_DIR"), "/libbursar.so")),
            Library::References => include_bytes!(concat!(env!("OUT_DIR"), "/libbursar-references.so")),
        }
    }

    /// Its file name, by which it is known in processes.
    pub fn name(self) -> String {
        let mut hasher = DefaultHasher::new();
        self.image().hash(&mut hasher);
        format!("libbursar-{:016x}.so", hasher.finish())
    }
}

/// Root's copy: what root starts may go on as any user, who must be able to read it.
const OF_ROOT: &str = "/var/cache/bursar";

/// Times that the library is unpacked where others remove it meanwhile.
const UNPACK_ATTEMPTS: usize = 4;

/// Puts the library into a folder that nobody else can write to, if it is not there yet; its path, for `LD_PRELOAD`. Where
/// there is no such folder, as on a read-only root, it is in memory: then it is there for this user's processes that see
/// this process in `/proc`, and as long as this process lives.
///
/// # Errors
/// [`Error::Preload`] if there is no folder for it, and no memory that may be executed.
pub fn unpack(library: Library) -> Result<PathBuf, Error> {
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    let of_root = geteuid().is_root().then(|| PathBuf::from(OF_ROOT));
    for folder in of_root.into_iter().chain(folders()) {
        match unpack_into(library, &folder, mode_of(&folder)) {
            Ok(path) => return Ok(path),
            Err(error) => refused = error,
        }
    }
    in_memory(library).map_err(|_| Error::Preload(refused))
}

/// An anonymous file that nobody can change any more, by the name that it has for other processes.
fn in_memory(library: Library) -> io::Result<PathBuf> {
    static HELD: [OnceLock<OwnedFd>; 2] = [OnceLock::new(), OnceLock::new()];
    let held = &HELD[library as usize];
    if held.get().is_none() {
        let mut file = File::from(memfd_create(library.name(), MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.write_all(library.image())?;
        file.set_permissions(Permissions::from_mode(0o555))?;
        fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
        let _ = held.set(file.into());
    }
    let held = held.get().ok_or(io::ErrorKind::NotFound)?;
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), held.as_raw_fd()));
    // Without /proc there is no such name.
    rustix::fs::access(&path, Access::READ_OK | Access::EXEC_OK)?;
    Ok(path)
}

/// A folder of this user's own, for what can be made again.
///
/// # Errors
/// Why the last of those that there could be will not do.
pub fn cache_folder() -> io::Result<PathBuf> {
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    for folder in folders() {
        match make_ours(&folder, mode_of(&folder)) {
            Ok(_) => return Ok(folder),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Where it may go, the best first.
fn folders() -> Vec<PathBuf> {
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    // Root's may not be where another user decides: what sudo passes on of the environment names the caller's folders.
    let named =
        cache.map(|cache| cache.join("bursar")).filter(|cache| !geteuid().is_root() || is_safe_from_others(cache));
    let of_root = geteuid().is_root().then(|| PathBuf::from(OF_ROOT));
    let own = format!("bursar-{}", geteuid().as_raw());
    named.into_iter().chain(of_root).chain(temporary_base().ok().map(|base| base.join(own))).collect()
}

/// Who may enter it.
fn mode_of(folder: &Path) -> u32 {
    if folder == Path::new(OF_ROOT) { 0o755 } else { 0o700 }
}

/// Under a name that tells its content: versions in use stand side by side, and none is ever written to.
fn unpack_into(library: Library, folder: &Path, mode: u32) -> io::Result<PathBuf> {
    // These part the names in LD_PRELOAD.
    if folder.as_os_str().as_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
        return Err(io::Error::other(format!("{} has a space or a colon in its name", folder.display())));
    }
    let is_new = Folder::open(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let path = fill(library, folder, &make_ours(folder, mode)?);
    if let (Err(_), true, Ok((above, name))) = (&path, is_new, Folder::of(folder)) {
        // It would be left behind empty. Another bursar may have filled it meanwhile; then it stays.
        let _ = above.remove_folder(&name);
    }
    path
}

fn fill(library: Library, folder: &Path, opened: &Folder) -> io::Result<PathBuf> {
    if rustix::fs::statvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(io::Error::other(format!("{} is on a file system with noexec", folder.display())));
    }
    let name = library.name();
    // Another version, new here, may remove it before it is held.
    for _ in 0..UNPACK_ATTEMPTS {
        if ours(library, opened, name.as_ref()).is_some_and(others::hold) {
            return Ok(folder.join(name));
        }
        let mut file = opened.try_clone()?.replace(name.as_ref(), 0o700)?;
        file.write_all(library.image())?;
        file.file().set_permissions(Permissions::from_mode(0o755))?;
        file.commit()?;
        others::remove(opened);
    }
    Err(io::Error::other(format!("{} is removed from {} again and again", name, folder.display())))
}

/// Makes it if it is not there; an error if others may write to it.
fn make_ours(folder: &Path, mode: u32) -> io::Result<Folder> {
    let (above, name) = match Folder::of(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = folder.parent().unwrap_or(Path::new("/"));
            (Folder::create_all(above)?, folder.file_name().unwrap_or_default().to_os_string())
        }
        found => found?,
    };
    let is_new = above.open_folder(&name).is_err();
    let made = above.create_folder(&name, mode)?;
    let found = made.status()?;
    if found.st_uid != geteuid().as_raw() || found.st_mode & 0o022 != 0 {
        return Err(io::Error::other(format!("{} is not a folder that is ours alone to write to", folder.display())));
    }
    // Whatever the umask says, or said when it was made.
    if is_new || found.st_mode & mode != mode {
        made.set_mode(mode)?;
    }
    Ok(made)
}

/// The library, if it is there as it should be.
fn ours(library: Library, folder: &Folder, name: &OsStr) -> Option<File> {
    let mut file = folder.open_file(name, OFlags::RDONLY).ok()?;
    let mut image = Vec::new();
    let owned = file.metadata().is_ok_and(|found| found.uid() == geteuid().as_raw());
    (owned && file.read_to_end(&mut image).is_ok() && image == library.image()).then_some(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIBRARY: Library = Library::Runtime;

    #[test]
    fn it_is_unpacked_once_and_again_when_it_was_changed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("bursar");
        let path = unpack_into(LIBRARY, &folder, 0o700).unwrap();
        assert_eq!(fs::read(&path).unwrap(), LIBRARY.image());
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o755);
        let inode = fs::metadata(&path).unwrap().ino();
        assert_eq!(unpack_into(LIBRARY, &folder, 0o700).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
        fs::write(&path, "cut short").unwrap();
        assert_eq!(fs::read(unpack_into(LIBRARY, &folder, 0o700).unwrap()).unwrap(), LIBRARY.image());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_newer_version_removes_the_older_ones_that_nothing_uses() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("bursar");
        make_ours(&folder, 0o700).unwrap();
        let older = |name: &str| {
            let path = folder.join(name);
            fs::write(&path, LIBRARY.image()).unwrap();
            path
        };
        let unused = older("libbursar-0000000000000000.so");
        let held = older("libbursar-0000000000000001.so");
        let mapped = older("libbursar-0000000000000002.so");
        let foreign = older("libbursar-notes.so");
        let other_bursar = File::open(&held).unwrap();
        rustix::fs::flock(&other_bursar, rustix::fs::FlockOperation::LockShared).unwrap();
        let mut outlives = std::process::Command::new("sleep").arg("60").env("LD_PRELOAD", &mapped).spawn().unwrap();
        let maps = format!("/proc/{}/maps", outlives.id());
        while !fs::read_to_string(&maps).unwrap().contains("libbursar-0000000000000002.so") {
            std::thread::yield_now();
        }

        let path = unpack_into(LIBRARY, &folder, 0o700).unwrap();
        let stays = [&unused, &held, &mapped, &foreign, &path].map(|path| path.exists());
        outlives.kill().unwrap();
        outlives.wait().unwrap();
        assert_eq!(stays, [false, true, true, true, true]);
    }

    #[test]
    fn what_this_process_unpacked_is_removed_by_no_other_version() {
        let place = tempfile::tempdir().unwrap();
        let path = unpack_into(LIBRARY, place.path(), 0o700).unwrap();
        let other_version = File::open(&path).unwrap();
        let locked = rustix::fs::flock(&other_version, rustix::fs::FlockOperation::NonBlockingLockExclusive);
        assert_eq!(locked, Err(rustix::io::Errno::WOULDBLOCK));
    }

    #[test]
    fn a_folder_that_others_may_write_to_or_that_ld_preload_cannot_name_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let open = place.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        assert!(unpack_into(LIBRARY, &open, 0o700).unwrap_err().to_string().contains("ours alone"));
        std::os::unix::fs::symlink(place.path(), place.path().join("link")).unwrap();
        assert!(unpack_into(LIBRARY, &place.path().join("link"), 0o700).is_err());
        assert!(
            unpack_into(LIBRARY, &place.path().join("a b"), 0o700)
                .unwrap_err()
                .to_string()
                .contains("a space or a colon")
        );
    }

    #[test]
    fn in_memory_it_is_loaded_by_children_and_cannot_be_changed() {
        let path = in_memory(LIBRARY).unwrap();
        assert_eq!(in_memory(LIBRARY).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), LIBRARY.image());
        assert!(fs::OpenOptions::new().write(true).open(&path).and_then(|mut file| file.write_all(b"x")).is_err());
        let maps = std::process::Command::new("cat").arg("/proc/self/maps").env("LD_PRELOAD", &path).output().unwrap();
        assert!(
            String::from_utf8_lossy(&maps.stdout).contains(&format!("/memfd:{} (deleted)", LIBRARY.name())),
            "{maps:?}"
        );
    }

    #[test]
    fn it_needs_no_libc_newer_than_glibc_2_17() {
        let text = |library: Library| String::from_utf8_lossy(library.image());
        let text = text(Library::Runtime) + text(Library::References);
        let versions = text.split('\0').filter_map(|name| name.strip_prefix("GLIBC_"));
        let versions: Vec<Vec<u32>> = versions
            .map(|version| version.split('.').map(|number| number.parse().unwrap_or(u32::MAX)).collect())
            .collect();
        assert!(!versions.is_empty(), "it uses libc");
        let newer: Vec<_> = versions.iter().filter(|version| **version > vec![2, 17]).collect();
        assert!(newer.is_empty(), "{newer:?}");
    }
}
