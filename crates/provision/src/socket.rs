//! The broker's socket: packets, the credentials of their senders, and descriptors in replies.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use linux::secure_file::Folder;
use rustix::fs::{Gid, Mode, Uid};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, sockopt,
};

use crate::protocol::MOST_SEGMENTS;

/// The longest packet that is read; longer ones are malformed.
pub const LONGEST: usize = 8 << 20;

/// Connections waiting to be accepted; the kernel refuses more.
const BACKLOG: i32 = 256;

/// Listens at the path, replacing a leftover socket. Owner and mode are set before clients can connect.
pub fn listen(path: &Path, owner: u32, group: u32, mode: u32) -> io::Result<OwnedFd> {
    let (folder, name) = Folder::of(path)?;
    match folder.remove(&name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = new(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    // By descriptor, so that the path of the folder may change meanwhile.
    let by_descriptor = folder.by_descriptor(&name);
    rustix::net::bind(&socket, &SocketAddrUnix::new(&by_descriptor)?)?;
    rustix::fs::chmod(&by_descriptor, Mode::from_raw_mode(mode))?;
    rustix::fs::chown(&by_descriptor, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// The next client; `None`: none is waiting.
pub fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(client) => Ok(Some(client)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Connects to a broker.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = new(SocketFlags::CLOEXEC)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// PID (0 if the process is not visible from here) and UID of the other side when it connected.
pub fn peer(socket: &OwnedFd) -> io::Result<(i32, u32)> {
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the structure and its length live through the call, which writes no more than the length.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    if status == 0 { Ok((found.pid, found.uid)) } else { Err(io::Error::last_os_error()) }
}

/// One packet; empty at the end of the connection. `None`: nothing has arrived, or not before the timeout.
pub fn receive(socket: &OwnedFd, longest: usize) -> io::Result<Option<Vec<u8>>> {
    let mut packet = Vec::with_capacity(longest);
    match rustix::net::recv(socket, rustix::buffer::spare_capacity(&mut packet), RecvFlags::empty()) {
        Ok(_) => Ok(Some(packet)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sets the receive timeout.
pub fn set_timeout(socket: &OwnedFd, timeout: std::time::Duration) -> io::Result<()> {
    Ok(sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(timeout))?)
}

/// Sends one packet with descriptors. Not blocking: the packet is sent whole or not at all.
pub fn send(socket: &OwnedFd, packet: &[u8], descriptors: &[BorrowedFd]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_SEGMENTS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    if packet.len() > 64 << 10 {
        // The default suffices for a few hundred KiB.
        sockopt::set_socket_send_buffer_size_force(socket, packet.len() * 2)?;
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(packet)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn new(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}
