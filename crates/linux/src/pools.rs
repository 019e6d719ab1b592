//! Memory pools served by brokers (`bursar pool`): their folders, and which brokers answer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// The folder of all pools by default; `BURSAR_POOLS` overrides it.
pub const FOLDER: &str = "/run/bursar/pools";

/// The default name of a pool.
pub const DEFAULT: &str = "default";

/// The file in a pool's folder that describes the pool.
pub const STATE: &str = "pool.json";

/// The broker's socket in a pool's folder.
pub const SOCKET: &str = "socket";

/// The folder of all pools.
pub fn folder() -> PathBuf {
    let set = std::env::var_os("BURSAR_POOLS").filter(|set| !set.is_empty());
    set.map_or_else(|| FOLDER.into(), PathBuf::from)
}

/// The names of the existing pools, with and without running brokers.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    let pools = entries.filter(|entry| entry.path().join(STATE).exists());
    let mut names: Vec<String> = pools.map(|pool| pool.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The socket of a pool's broker.
pub fn socket(name: &str) -> PathBuf {
    folder().join(name).join(SOCKET)
}

/// Connects to a broker without sending a request.
///
/// # Errors
/// The reason: no such socket, no listener, or no permission.
pub fn answers(socket: &Path) -> io::Result<()> {
    // Without blocking: a broker with a full queue still runs.
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
    fn missing_sockets_and_sockets_without_listener_fail() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("socket");
        assert_eq!(answers(&socket).unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        assert!(answers(&socket).is_err());
        assert!(answers(&place.path().join("long".repeat(100))).is_err());
    }
}
