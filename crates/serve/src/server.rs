//! Clients: who has connected, how far each is, and when it has had its time.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Error;
use crate::http::{self, LONGEST_HEAD, Parsed, Request, Response};

/// Connections at a time; the oldest makes room.
const CONNECTIONS: usize = 64;

/// Each is let go after so long, however far it is: Prometheus gives up after 10 s by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// What has been answered so far.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// By status.
    pub answers: BTreeMap<u16, u64>,
    /// Connections that were let go without a whole answer.
    pub dropped: u64,
}

/// Listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    signals: UnixStream,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    counts: Counts,
}

struct Connection {
    stream: TcpStream,
    since: Instant,
    phase: Phase,
}

enum Phase {
    /// What it has sent so far.
    Asking(Vec<u8>),
    /// What it gets, and how much of head and body it has.
    Answered { head: Vec<u8>, body: Rc<[u8]>, sent: usize },
    /// It has all; what it sends still is read and thrown away, for closing before that would take the answer from it.
    Ending,
}

/// Whether a connection goes on.
#[derive(PartialEq)]
enum Step {
    Waits,
    Ended,
    Failed,
}

impl Server {
    /// Listens there.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::Listen`].
    pub fn bind(address: SocketAddr) -> Result<Server, Error> {
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::AddrInUse => Error::InUse(address),
            _ => Error::Listen { address, source },
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Server {
            address: listener.local_addr().map_err(failed)?,
            signals: signals().map_err(Error::Wait)?,
            listener,
            connections: BTreeMap::new(),
            next: 0,
            counts: Counts::default(),
        })
    }

    /// Where it listens, with the port that was had if any would do.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers whoever asks until then; true: a signal asked it to stop.
    ///
    /// # Errors
    /// [`Error::Wait`].
    pub fn serve_until(
        &mut self,
        due: Instant,
        answer: &mut dyn FnMut(&Request, &Counts) -> Response,
    ) -> Result<bool, Error> {
        loop {
            let now = Instant::now();
            if now >= due {
                return Ok(false);
            }
            let oldest = self.connections.values().map(|connection| connection.since + PATIENCE).min();
            let happened = self.wait(oldest.map_or(due, |oldest| oldest.min(due)).saturating_duration_since(now))?;
            if happened.signal {
                return Ok(true);
            }
            for number in happened.connections {
                self.advance(number, answer);
            }
            if happened.client {
                self.accept();
            }
            let late: Vec<u64> = self
                .connections
                .iter()
                .filter(|(_, connection)| connection.since.elapsed() >= PATIENCE)
                .map(|(number, _)| *number)
                .collect();
            for number in late {
                self.drop_one(number);
            }
        }
    }

    fn wait(&self, patience: Duration) -> Result<Happened, Error> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
        ];
        fds.extend(self.connections.values().map(|connection| {
            let wanted = match connection.phase {
                Phase::Answered { .. } => PollFlags::OUT,
                Phase::Asking(_) | Phase::Ending => PollFlags::IN,
            };
            PollFd::from_borrowed_fd(connection.stream.as_fd(), wanted)
        }));
        let timeout = Timespec::try_from(patience).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::Wait(error.into())),
        }
        let is_set = |fd: &PollFd| !fd.revents().is_empty();
        Ok(Happened {
            signal: is_set(&fds[0]),
            client: is_set(&fds[1]),
            connections: self.connections.keys().zip(&fds[2..]).filter(|(_, fd)| is_set(fd)).map(|(n, _)| *n).collect(),
        })
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                    if self.connections.len() >= CONNECTIONS {
                        self.drop_oldest();
                    }
                    let connection = Connection { stream, since: Instant::now(), phase: Phase::Asking(Vec::new()) };
                    self.connections.insert(self.next, connection);
                    self.next += 1;
                }
                // Gone again before it was taken.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Without a descriptor for it, whoever waits keeps us awake: another one's is given up.
                Err(_) => return self.drop_oldest(),
            }
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.connections.keys().next().copied() {
            self.drop_one(oldest);
        }
    }

    fn drop_one(&mut self, number: u64) {
        let dropped = self.connections.remove(&number);
        self.counts.dropped += u64::from(dropped.is_some_and(|one| !matches!(one.phase, Phase::Ending)));
    }

    /// Reads and writes as much as can be without waiting.
    fn advance(&mut self, number: u64, answer: &mut dyn FnMut(&Request, &Counts) -> Response) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        match connection.step(&mut self.counts, answer) {
            Step::Waits => {}
            Step::Ended => drop(self.connections.remove(&number)),
            Step::Failed => self.drop_one(number),
        }
    }
}

/// What a wait ended for.
struct Happened {
    signal: bool,
    client: bool,
    connections: Vec<u64>,
}

impl Connection {
    fn step(&mut self, counts: &mut Counts, answer: &mut dyn FnMut(&Request, &Counts) -> Response) -> Step {
        loop {
            let stepped = match &mut self.phase {
                Phase::Asking(bytes) => match ask(&mut self.stream, bytes) {
                    Ok(Parsed::Unfinished) => continue,
                    Ok(Parsed::Request(request)) => {
                        let response = answer(&request, counts);
                        *counts.answers.entry(response.status).or_default() += 1;
                        self.phase = Phase::of(&response, request.head_only);
                        continue;
                    }
                    Ok(Parsed::Refused(response)) => {
                        *counts.answers.entry(response.status).or_default() += 1;
                        self.phase = Phase::of(&response, false);
                        continue;
                    }
                    Err(error) => Err(error),
                },
                Phase::Answered { head, body, sent } => {
                    let left = head.get(*sent..).filter(|left| !left.is_empty());
                    let left = left.or_else(|| body.get(*sent - head.len()..)).unwrap_or_default();
                    if left.is_empty() {
                        let _ = self.stream.shutdown(Shutdown::Write);
                        self.phase = Phase::Ending;
                        continue;
                    }
                    self.stream.write(left).map(|written| *sent += written)
                }
                Phase::Ending => match self.stream.read(&mut [0; 4096]) {
                    Ok(0) => return Step::Ended,
                    read => read.map(drop),
                },
            };
            match stepped.map_err(|error| error.kind()) {
                Ok(()) | Err(ErrorKind::Interrupted) => {}
                Err(ErrorKind::WouldBlock) => return Step::Waits,
                Err(_) if matches!(self.phase, Phase::Ending) => return Step::Ended,
                Err(_) => return Step::Failed,
            }
        }
    }
}

impl Phase {
    fn of(response: &Response, head_only: bool) -> Phase {
        let body = if head_only { Rc::default() } else { response.body.clone() };
        Phase::Answered { head: response.head().into_bytes(), body, sent: 0 }
    }
}

/// Reads on in a client's question.
fn ask(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Parsed> {
    let mut buffer = [0; 2048];
    let room = buffer.len().min(LONGEST_HEAD - bytes.len());
    match stream.read(&mut buffer[..room])? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        read => {
            bytes.extend(&buffer[..read]);
            Ok(http::parse(bytes))
        }
    }
}

/// Can be read from once SIGTERM or SIGINT has come.
fn signals() -> io::Result<UnixStream> {
    let (signals, writer) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(signals)
}
