//! Who has connected, what they ask, and what they are answered.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::{Broker, client};
use crate::control::{self, Answer, Ask, LeaseStatus, Part, SegmentStatus, Standing};
use crate::ledger::{Client, Decision, Lease, Use};
use crate::protocol::{Lent, Reply, Request, Status};
use crate::{backing, socket};

/// Connections at a time; the oldest that has not asked yet makes room.
const CONNECTIONS: usize = 256;

/// The longest question there is; what is longer is none.
const LONGEST_QUESTION: usize = 4096;

/// A client that has connected and sent nothing is let go after so long.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    since: Instant,
    pub(super) waits_for: Option<Asked>,
}

/// What a connection waits for.
pub(super) enum Asked {
    Memory(Request, Client),
    Growth,
}

impl Connection {
    pub(super) fn may_stay(&self) -> bool {
        self.waits_for.is_some() || self.since.elapsed() < PATIENCE
    }
}

impl Broker<'_> {
    pub(super) fn accept(&mut self) {
        while let Ok(Some(socket)) = socket::accept(&self.listener) {
            if self.connections.len() >= CONNECTIONS {
                let silent = self.connections.iter().find(|(_, one)| one.waits_for.is_none());
                match silent.map(|(number, _)| *number) {
                    Some(oldest) => drop(self.connections.remove(&oldest)),
                    None => continue,
                }
            }
            let connection = Connection { socket, since: Instant::now(), waits_for: None };
            self.connections.insert(self.next, connection);
            self.next += 1;
        }
    }

    /// A client has sent something, or is gone.
    pub(super) fn hear(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let packet = match socket::receive(&connection.socket, LONGEST_QUESTION) {
            Ok(None) => return,
            Ok(Some(packet)) if !packet.is_empty() && connection.waits_for.is_none() => packet,
            // The end, or more than was asked for.
            _ => return drop(self.connections.remove(&number)),
        };
        let Ok((pid, uid)) = socket::peer(&connection.socket) else {
            return drop(self.connections.remove(&number));
        };
        if let Some(question) = packet.strip_prefix(&control::MAGIC) {
            match serde_json::from_slice(question) {
                Ok(ask) => self.hear_control(number, &ask, uid),
                Err(error) => self.answer(number, &Answer::No(format!("the broker does not understand this: {error}"))),
            }
        } else if let Some(request) = Request::decode(&packet) {
            let client = client(pid, uid);
            let full = match self.ledger.decide(&request, &client) {
                Decision::Grant(granted) => granted.iter().map(|n| self.ledger.bytes(*n)).sum::<u64>() >= request.bytes,
                Decision::Wait | Decision::Deny(_) => false,
            };
            connection.waits_for = Some(Asked::Memory(request, client));
            if !full {
                // Perhaps some of what is lent is held no longer, and nobody has looked since.
                self.look(|used| matches!(used, Use::Lent(_)));
            }
        } else {
            self.reply(number, Status::Refused, &[]);
        }
    }

    /// Those that wait for memory, in the order in which they came.
    pub(super) fn answer_waiting(&mut self) {
        for number in self.connections.keys().copied().collect::<Vec<_>>() {
            let waits_for = self.connections.get(&number).and_then(|connection| connection.waits_for.as_ref());
            let Some(Asked::Memory(request, client)) = waits_for else { continue };
            let (request, client) = (*request, client.clone());
            match self.ledger.decide(&request, &client) {
                Decision::Wait => {}
                Decision::Deny(status) => self.reply(number, status, &[]),
                Decision::Grant(granted) => {
                    if !granted.is_empty() {
                        self.lend(client, &granted);
                    }
                    self.reply(number, Status::Granted, &granted);
                }
            }
        }
    }

    /// The last that a client hears. What cannot be delivered comes back at once: who asks next may have it.
    fn reply(&mut self, number: u64, status: Status, granted: &[u32]) {
        let Some(connection) = self.connections.remove(&number) else { return };
        let files: io::Result<Vec<File>> = granted.iter().map(|number| backing::open(&self.path(*number))).collect();
        let (status, files) = match files {
            Ok(files) => (status, files),
            Err(error) => {
                (self.tell)(&format!("a segment cannot be opened: {error}"));
                (Status::Exhausted, Vec::new())
            }
        };
        let lent = |number: &u32| Lent { bytes: self.ledger.bytes(*number), node: self.ledger.node(*number) };
        let reply = Reply {
            status,
            page_bytes: self.pool.page_bytes,
            free_bytes: self.ledger.free_bytes(),
            segments: granted.iter().take(files.len()).map(lent).collect(),
        };
        let descriptors: Vec<_> = files.iter().map(File::as_fd).collect();
        let sent = socket::send(&connection.socket, &reply.encode(), &descriptors);
        drop(files);
        if sent.is_err() {
            self.take_back(granted.to_vec());
        }
    }

    fn hear_control(&mut self, number: u64, ask: &Ask, uid: u32) {
        let answer = match ask {
            Ask::Status => Answer::Status(Box::new(self.standing())),
            _ if uid != 0 => Answer::No("changing a pool needs root".into()),
            Ask::Stop { force } => {
                self.look(|used| matches!(used, Use::Lent(_)));
                self.stopping = *force || self.ledger.leases().is_empty();
                if self.stopping { Answer::Stopping } else { Answer::InUse }
            }
            _ if self.growth.is_some() => Answer::No("the pool is being changed already: try again later".into()),
            Ask::Grow { bytes } => {
                if let Some(connection) = self.connections.get_mut(&number) {
                    connection.waits_for = Some(Asked::Growth);
                }
                return self.grow(*bytes);
            }
            Ask::Shrink { bytes } => match self.shrink(*bytes) {
                Ok(bytes) => Answer::Shrunk { bytes },
                Err(error) => Answer::No(error.to_string()),
            },
        };
        self.answer(number, &answer);
    }

    pub(super) fn answer(&mut self, number: u64, answer: &Answer) {
        let Some(connection) = self.connections.remove(&number) else { return };
        let sent = serde_json::to_vec(answer).map_err(io::Error::other);
        if let Err(error) = sent.and_then(|packet| socket::send(&connection.socket, &packet, &[])) {
            (self.tell)(&format!("an answer cannot be sent: {error}"));
        }
    }

    fn standing(&self) -> Standing {
        let part = |used| match used {
            Use::Clean => Part::Free,
            Use::Lent(_) => Part::Leased,
            Use::New | Use::Returned | Use::Withheld => Part::Zeroing,
        };
        let segments =
            self.ledger.segments().map(|(segment, used)| SegmentStatus { segment: segment.clone(), part: part(used) });
        let lease = |(number, lease): (&u64, &Lease)| {
            let held = self.ledger.of_lease(*number);
            let nodes = held.iter().flat_map(|number| match self.ledger.node(*number) {
                Some(node) => vec![node],
                None => self.pool.nodes.clone(),
            });
            LeaseStatus {
                pid: lease.client.pid,
                uid: lease.client.uid,
                command: lease.client.command.clone(),
                bytes: held.iter().map(|number| self.ledger.bytes(*number)).sum(),
                nodes: nodes.collect::<BTreeSet<_>>().into_iter().collect(),
                lingering: lease.lingering,
            }
        };
        Standing {
            broker_pid: std::process::id(),
            segments: segments.collect(),
            leases: self.ledger.leases().iter().map(lease).collect(),
        }
    }
}
