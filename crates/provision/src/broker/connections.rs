//! Connections, their requests and the answers.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::{Broker, client};
use crate::control::{self, Answer, Ask, BrokerStatus, LeaseStatus, Part, SegmentStatus};
use crate::ledger::{Client, Decision, Lease, Use};
use crate::protocol::{LeasedSegment, Reply, Request, Status};
use crate::{backing, socket};

/// Maximum number of connections; beyond it the oldest without a request is closed.
const CONNECTIONS: usize = 256;

/// Maximum size of a request in bytes; longer ones are malformed.
const MAX_REQUEST_BYTES: usize = 4096;

/// A connection without a request is closed after this time.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    since: Instant,
    pub(super) pending: Option<Pending>,
}

/// The request whose answer is pending.
pub(super) enum Pending {
    Memory(Request, Client),
    Growth,
}

impl Connection {
    pub(super) fn may_stay(&self) -> bool {
        self.pending.is_some() || self.since.elapsed() < PATIENCE
    }
}

impl Broker<'_> {
    pub(super) fn accept(&mut self) {
        while let Ok(Some(socket)) = socket::accept(&self.listener) {
            if self.connections.len() >= CONNECTIONS {
                let idle = self.connections.iter().find(|(_, one)| one.pending.is_none());
                match idle.map(|(number, _)| *number) {
                    Some(oldest) => drop(self.connections.remove(&oldest)),
                    None => continue,
                }
            }
            let connection = Connection { socket, since: Instant::now(), pending: None };
            self.connections.insert(self.next, connection);
            self.next += 1;
        }
    }

    /// Handles readable data on a connection.
    pub(super) fn receive(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let packet = match socket::receive(&connection.socket, MAX_REQUEST_BYTES) {
            Ok(None) => return,
            Ok(Some(packet)) if !packet.is_empty() && connection.pending.is_none() => packet,
            // The connection was closed, or sent a second request.
            _ => return drop(self.connections.remove(&number)),
        };
        let Ok((pid, uid)) = socket::peer(&connection.socket) else {
            return drop(self.connections.remove(&number));
        };
        if let Some(text) = packet.strip_prefix(&control::MAGIC) {
            match serde_json::from_slice(text) {
                Ok(ask) => self.handle_control(number, &ask, uid),
                Err(error) => self.answer(number, &Answer::No(format!("the broker cannot parse the request: {error}"))),
            }
        } else if let Some(request) = Request::decode(&packet) {
            let client = client(pid, uid);
            let full = match self.ledger.decide(&request, &client) {
                Decision::Grant(granted) => granted.iter().map(|n| self.ledger.bytes(*n)).sum::<u64>() >= request.bytes,
                Decision::Wait | Decision::Deny(_) => false,
            };
            connection.pending = Some(Pending::Memory(request, client));
            if !full {
                // Some leased segments may be unheld since the last check.
                self.reclaim_unheld(|used| matches!(used, Use::Leased(_)));
            }
        } else {
            self.reply(number, Status::Refused, &[]);
        }
    }

    /// Answers the requests that wait for memory, in order of arrival.
    pub(super) fn answer_waiting(&mut self) {
        for number in self.connections.keys().copied().collect::<Vec<_>>() {
            let pending = self.connections.get(&number).and_then(|connection| connection.pending.as_ref());
            let Some(Pending::Memory(request, client)) = pending else { continue };
            let (request, client) = (*request, client.clone());
            match self.ledger.decide(&request, &client) {
                Decision::Wait => {}
                Decision::Deny(status) => self.reply(number, status, &[]),
                Decision::Grant(granted) => {
                    if !granted.is_empty() {
                        self.add_lease(client, &granted);
                    }
                    self.reply(number, Status::Granted, &granted);
                }
            }
        }
    }

    /// Replies and closes the connection. Segments that cannot be sent are returned at once, for the next request.
    fn reply(&mut self, number: u64, status: Status, granted: &[u32]) {
        let Some(connection) = self.connections.remove(&number) else { return };
        let files: io::Result<Vec<File>> = granted.iter().map(|number| backing::open(&self.path(*number))).collect();
        let (status, files) = match files {
            Ok(files) => (status, files),
            Err(error) => {
                (self.report)(&format!("a segment cannot be opened: {error}"));
                (Status::Exhausted, Vec::new())
            }
        };
        let leased =
            |number: &u32| LeasedSegment { bytes: self.ledger.bytes(*number), node: self.ledger.node(*number) };
        let reply = Reply {
            status,
            page_bytes: self.pool.page_bytes,
            free_bytes: self.ledger.free_bytes(),
            segments: granted.iter().take(files.len()).map(leased).collect(),
        };
        let descriptors: Vec<_> = files.iter().map(File::as_fd).collect();
        let sent = socket::send(&connection.socket, &reply.encode(), &descriptors);
        drop(files);
        if sent.is_err() {
            self.take_back(granted.to_vec());
        }
    }

    fn handle_control(&mut self, number: u64, ask: &Ask, uid: u32) {
        let answer = match ask {
            Ask::Status => Answer::Status(Box::new(self.status())),
            _ if uid != 0 => Answer::No("changing a pool needs root".into()),
            Ask::Stop { force } => {
                self.reclaim_unheld(|used| matches!(used, Use::Leased(_)));
                self.stopping = *force || self.ledger.leases().is_empty();
                if self.stopping { Answer::Stopping } else { Answer::InUse }
            }
            _ if self.growth.is_some() => Answer::No("the pool is being changed already: try again later".into()),
            Ask::Grow { bytes } => {
                if let Some(connection) = self.connections.get_mut(&number) {
                    connection.pending = Some(Pending::Growth);
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
            (self.report)(&format!("an answer cannot be sent: {error}"));
        }
    }

    fn status(&self) -> BrokerStatus {
        let part = |used| match used {
            Use::Clean => Part::Free,
            Use::Leased(_) => Part::Leased,
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
        BrokerStatus {
            broker_pid: std::process::id(),
            segments: segments.collect(),
            leases: self.ledger.leases().iter().map(lease).collect(),
        }
    }
}
