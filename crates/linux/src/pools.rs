//! Pools of memory that brokers keep (`bursar pool`): where they are, and which of them answer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

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
    // Without blocking: a broker whose queue is full for now is there all the same.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let line = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    match rustix::net::connect(&line, &SocketAddrUnix::new(socket)?) {
        Ok(()) | Err(Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
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
