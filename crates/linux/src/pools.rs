//! Pools of memory that brokers keep (`bursar pool`): where they are, and which of them answer.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The folder of all pools, unless `BURSAR_POOLS` names another.
pub const FOLDER: &str = "/run/bursar/pools";

/// The name of a pool that is given no other.
pub const DEFAULT: &str = "default";

/// In a pool's folder, the file that says what the pool is.
pub const STATE: &str = "pool.json";

/// In a pool's folder, where its broker listens.
pub const SOCKET: &str = "socket";

/// The folder of all pools.
pub fn folder() -> PathBuf {
    let set = std::env::var_os("BURSAR_POOLS").filter(|set| !set.is_empty());
    set.map_or_else(|| FOLDER.into(), PathBuf::from)
}

/// The names of the pools there are, whether their brokers run or not.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    let pools = entries.filter(|entry| entry.path().join(STATE).exists());
    let mut names: Vec<String> = pools.map(|pool| pool.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Where a pool's broker listens.
pub fn socket(name: &str) -> PathBuf {
    folder().join(name).join(SOCKET)
}

/// Whether a broker answers there. It is asked for nothing.
///
/// # Errors
/// Why not: no such socket, nobody listens, this user may not.
pub fn answers(socket: &Path) -> io::Result<()> {
    let path = socket.as_os_str().as_bytes();
    // SAFETY: all zeroes is a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    // Without blocking: a broker whose queue is full for now is there all the same.
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes and gives plain numbers.
    let descriptor = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    let _closed_at_the_end = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address lives through the call, and its length is its own.
    let connected = unsafe { libc::connect(descriptor, (&raw const address).cast(), length) };
    match io::Error::last_os_error() {
        _ if connected == 0 => Ok(()),
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_answers_where_nothing_is_and_where_nobody_listens() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("socket");
        assert_eq!(answers(&socket).unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        assert!(answers(&socket).is_err());
        assert!(answers(&place.path().join("long".repeat(100))).is_err());
    }
}
