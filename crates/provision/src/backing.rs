//! The file of one segment: whether it is held, populating and zeroing it, removing it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::FallocateFlags;

/// Opens a segment; the descriptor is passed to a client.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Whether any process has the file open or mapped. The kernel grants a write lease only if none has. A holder cannot hide, and a
/// descriptor in flight through a socket counts.
pub fn is_held(path: &Path) -> io::Result<bool> {
    let file = open(path)?;
    // SAFETY: fcntl(2) on our own descriptor; it accesses no memory.
    let lease = |kind: i32| match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    };
    match lease(libc::F_WRLCK) {
        Ok(()) => lease(libc::F_UNLCK).map(|()| false),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Populates and zeroes a hugetlbfs file, each page on its node. Every page is freed and allocated anew, so that a page pinned by a process
/// (by vmsplice into a pipe, or for a device) stays with the pin and never shows data of the next client. Also restores the length, which a
/// client may have changed.
pub fn renew(path: &Path, bytes: u64, page_bytes: u64, node_of: impl Fn(u64) -> u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(path)?;
    file.set_len(bytes)?;
    let mut bound = None;
    for page in 0..bytes / page_bytes {
        let node = node_of(page);
        if bound.replace(node) != Some(node) {
            linux::numa::bind_thread(node).map_err(io::Error::other)?;
        }
        let allocate = |flags| loop {
            match rustix::fs::fallocate(&file, flags, page * page_bytes, page_bytes) {
                Err(rustix::io::Errno::INTR) => continue,
                done => break done,
            }
        };
        allocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE)?;
        allocate(FallocateFlags::empty())?;
    }
    Ok(())
}

/// Removes the file. Processes that hold it keep it until their last mapping is gone.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leases work on every file system; huge pages are tested end to end.
    #[test]
    fn a_file_is_held_while_a_descriptor_or_mapping_exists() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        fs::write(&path, [1; 4096]).unwrap();
        assert!(!is_held(&path).unwrap());
        let file = open(&path).unwrap();
        assert!(is_held(&path).unwrap());
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let clone = file.try_clone().unwrap();
        drop(file);
        assert!(is_held(&path).unwrap(), "a duplicate");
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        let fds = [std::os::fd::AsFd::as_fd(&clone)];
        assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&fds)));
        let flags = rustix::net::SendFlags::empty();
        rustix::net::sendmsg(&one, &[io::IoSlice::new(b"x")], &mut control, flags).unwrap();
        drop(clone);
        assert!(is_held(&path).unwrap(), "in flight through a socket");
        drop((one, other));
        assert!(!is_held(&path).unwrap());
    }
}
