//! Kernel memory of sockets: data sent and not yet read. The kernel reports it to every user, for all sockets of bursar's own network
//! namespace (sock_diag(7)).

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

use crate::netlink::{all_messages, attributes, kind, messages, u32_at};

// <linux/sock_diag.h>, <linux/unix_diag.h>, <linux/inet_diag.h>
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_UNIX: u8 = libc::AF_UNIX as u8;
const AF_INET: u8 = libc::AF_INET as u8;
const AF_INET6: u8 = libc::AF_INET6 as u8;
const TCP: u8 = libc::IPPROTO_TCP as u8;
const UDP: u8 = libc::IPPROTO_UDP as u8;
const UDIAG_SHOW_PEER: u32 = 1 << 2;
const UDIAG_SHOW_RQLEN: u32 = 1 << 4;
const UDIAG_SHOW_MEMINFO: u32 = 1 << 5;
const UNIX_DIAG_PEER: u16 = 2;
const UNIX_DIAG_RQLEN: u16 = 4;
const UNIX_DIAG_MEMINFO: u16 = 5;
const INET_DIAG_SKMEMINFO: u16 = 7;
const ALL_STATES: u32 = u32::MAX;
/// Indexes in the kernel's array of a socket's memory figures, SK_MEMINFO_*.
const RECEIVED: usize = 0;
const SENT: usize = 2;
const QUEUED: usize = 5;
const OPTIONS: usize = 6;
const BACKLOG: usize = 7;

/// Maximum size of a datagram of a dump.
const BUFFER_BYTES: usize = 64 << 10;

/// Memory of sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// Of sockets that the kernel reports, bytes.
    pub bytes: u64,
    /// Other sockets: of another kind, or of another network namespace.
    pub unknown: BTreeSet<u64>,
}

/// A sock_diag socket; `None`: not available.
#[derive(Debug)]
pub struct Diagnosis {
    socket: Option<OwnedFd>,
    buffer: Vec<u8>,
}

impl Diagnosis {
    /// Opens it.
    pub fn open() -> Diagnosis {
        let kind = (AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket = socket_with(kind.0, kind.1, kind.2, Some(netlink::SOCK_DIAG)).ok();
        Diagnosis { socket, buffer: vec![0; BUFFER_BYTES] }
    }

    /// The memory of the sockets with these inodes. Takes a few system calls, and grows with the number of the machine's sockets of these
    /// kinds; other kinds are queried while one is missing.
    pub fn of(&mut self, sockets: &BTreeSet<u64>) -> SocketMemory {
        let mut found = SocketMemory { bytes: 0, unknown: sockets.clone() };
        for (family, protocol) in [(AF_UNIX, 0), (AF_INET, TCP), (AF_INET6, TCP), (AF_INET, UDP), (AF_INET6, UDP)] {
            if found.unknown.is_empty() {
                break;
            }
            let request = if family == AF_UNIX { unix_request() } else { inet_request(family, protocol) };
            let parse = if family == AF_UNIX { unix_socket } else { inet_socket };
            // Sockets that a kernel does not report stay unknown.
            _ = self.dump(&request, &mut |message| {
                let socket = parse(message).filter(|(inode, _)| found.unknown.remove(inode));
                found.bytes += socket.map_or(0, |(_, bytes)| bytes);
            });
        }
        found
    }

    fn dump(&mut self, request: &[u8], take: &mut dyn FnMut(&[u8])) -> rustix::io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        send(socket, request, SendFlags::empty())?;
        loop {
            // A part of the answer is available when the previous call has returned.
            let (_, length) = recv(socket, &mut self.buffer[..], RecvFlags::DONTWAIT)?;
            let answer = self.buffer.get(..length).unwrap_or_default();
            messages(answer).for_each(&mut *take);
            let ends = [libc::NLMSG_DONE as u16, libc::NLMSG_ERROR as u16];
            if all_messages(answer).filter_map(kind).any(|kind| ends.contains(&kind)) {
                return Ok(());
            }
        }
    }
}

fn request(body: &[u8]) -> Vec<u8> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let length = crate::netlink::MESSAGE_HEADER + body.len();
    let mut message = (length as u32).to_ne_bytes().to_vec();
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// `struct unix_diag_req`.
fn unix_request() -> Vec<u8> {
    let mut body = vec![AF_UNIX, 0, 0, 0];
    let show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN | UDIAG_SHOW_MEMINFO;
    [ALL_STATES, 0, show, u32::MAX, u32::MAX].iter().for_each(|word| body.extend(word.to_ne_bytes()));
    request(&body)
}

/// `struct inet_diag_req_v2`, for any address.
fn inet_request(family: u8, protocol: u8) -> Vec<u8> {
    let mut body = vec![family, protocol, 1 << (INET_DIAG_SKMEMINFO - 1), 0];
    body.extend(ALL_STATES.to_ne_bytes());
    body.extend([0; 48]);
    request(&body)
}

/// Inode and memory in a `struct unix_diag_msg`. Sent data counts for the sender until it is read; that of a closed peer is not reported.
fn unix_socket(message: &[u8]) -> Option<(u64, u64)> {
    let inode = u32_at(message, 4)?;
    let attributes: Vec<_> = attributes(message.get(16..)?).collect();
    let value = |wanted: u16| attributes.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value);
    // A closed socket has no inode.
    let has_peer = value(UNIX_DIAG_PEER).and_then(|peer| u32_at(peer, 0)).is_some_and(|inode| inode > 0);
    let waiting = value(UNIX_DIAG_RQLEN).filter(|_| !has_peer).and_then(|lengths| u32_at(lengths, 0)).unwrap_or(0);
    Some((inode.into(), memory(value(UNIX_DIAG_MEMINFO)?).max(waiting.into())))
}

/// The same of a `struct inet_diag_msg`.
fn inet_socket(message: &[u8]) -> Option<(u64, u64)> {
    let inode = u32_at(message, 68)?;
    let (_, figures) = attributes(message.get(72..)?).find(|(kind, _)| *kind == INET_DIAG_SKMEMINFO)?;
    Some((inode.into(), memory(figures)))
}

/// Sent data is both queued and allocated until the other side has it.
fn memory(figures: &[u8]) -> u64 {
    let value = |number: usize| u64::from(u32_at(figures, 4 * number).unwrap_or(0));
    value(RECEIVED) + value(SENT).max(value(QUEUED)) + value(OPTIONS) + value(BACKLOG)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    const KIB: u64 = 1 << 10;

    fn inode(file: &impl AsFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())).unwrap();
        let link = link.to_string_lossy();
        link.trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
    }

    fn of(sockets: &[u64]) -> SocketMemory {
        Diagnosis::open().of(&sockets.iter().copied().collect())
    }

    #[test]
    fn unread_unix_data_counts_for_the_sender() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let sockets = [inode(&one), inode(&other)];
        assert_eq!(of(&sockets), SocketMemory::default());
        one.write_all(&[1; 100 << 10]).unwrap();
        let held = of(&sockets);
        assert!((100 * KIB..200 * KIB).contains(&held.bytes) && held.unknown.is_empty(), "{held:?}");
        drop(one);
        assert!(of(&sockets[1..]).bytes >= 100 * KIB, "the sender is gone");
    }

    #[test]
    fn unread_tcp_data_counts_for_the_receiver() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        one.write_all(&[1; 60 << 10]).unwrap();
        let held = of(&[inode(&one), inode(&other)]);
        assert!((60 * KIB..300 * KIB).contains(&held.bytes) && held.unknown.is_empty(), "{held:?}");
    }

    #[test]
    fn a_socket_of_another_kind_is_unknown() {
        let (datagram, _other) = UnixDatagram::pair().unwrap();
        let asked = Diagnosis::open();
        let own = inode(asked.socket.as_ref().unwrap());
        assert_eq!(of(&[inode(&datagram), own]), SocketMemory { bytes: 0, unknown: BTreeSet::from([own]) });
    }
}
