//! The broker: lends segments, notices when nobody has them any more, and has them zeroed before it lends them again.
//!
//! One thread waits for all that may happen; another populates and zeroes. Nothing of who has what is written down: after a
//! restart the kernel is asked which segments are held, and everything else is zeroed before it is lent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use linux::cgroup::Cgroup;
use linux::holders::{FileId, holders};
use linux::{hugetlb, procfs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit, pidfd_open, setrlimit};

use crate::control::{self, Answer, Ask, LeaseStatus, Part, SegmentStatus, Standing};
use crate::ledger::{Client, Decision, Ledger, Use};
use crate::protocol::{Lent, Reply, Request, Status};
use crate::state::{Adding, Backend, Directory, Pool, Segment};
use crate::worker::{Done, Job, Worker};
use crate::{Error, backing, dax, reserve, socket};

/// A client that has connected and sent nothing is let go after so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// So often it is looked whether what is lent is held still.
const LOOK: Duration = Duration::from_secs(1);

/// Connections at a time; the oldest that has not asked yet makes room.
const CONNECTIONS: usize = 256;

/// The longest question there is; what is longer is none.
const LONGEST_QUESTION: usize = 4096;

/// Serves a pool until SIGTERM or SIGINT, or until it is told to stop. `tell` is called with what the operator should know.
///
/// # Errors
/// [`Error::None`], [`Error::NotRoot`], [`Error::Served`], and what the kernel refuses.
pub fn serve(directory: &Directory, tell: &dyn Fn(&str)) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot("serving"));
    }
    let pool = Pool::load(directory)?;
    let _lock = lock(directory)?;
    let mut broker = Broker::start(directory.clone(), pool, tell)?;
    let served = broker.run();
    // A client that comes now is told at once that nobody answers.
    let _ = backing::remove(&directory.socket());
    served
}

/// Held for as long as a pool is served.
///
/// # Errors
/// [`Error::Served`] if somebody has it.
pub(crate) fn lock(directory: &Directory) -> Result<File, Error> {
    let path = directory.lock();
    let file = std::os::unix::fs::OpenOptionsExt::mode(File::options().write(true).create(true).truncate(false), 0o600)
        .open(&path)
        .map_err(Error::file("cannot open", path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(Error::Served(directory.name().into())),
    }
}

struct Broker<'a> {
    directory: Directory,
    pool: Pool,
    ledger: Ledger,
    listener: OwnedFd,
    signals: UnixStream,
    worker: Worker,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    /// The process of each lease while it lives.
    processes: BTreeMap<u64, OwnedFd>,
    /// Segments whose pages somebody else has.
    withheld: BTreeSet<u32>,
    growth: Option<Growth>,
    looked: Instant,
    stopping: bool,
    tell: &'a dyn Fn(&str),
}

struct Connection {
    socket: OwnedFd,
    since: Instant,
    waits_for: Option<Asked>,
}

/// What a connection waits for.
enum Asked {
    Memory(Request, Client),
    Growth,
}

/// Segments that are being added.
struct Growth {
    since: Instant,
    segments: BTreeMap<u32, Segment>,
    /// Pages to be added to nodes before.
    pages: VecDeque<(u32, u64)>,
    /// Segments that are not populated yet.
    open: BTreeSet<u32>,
    /// Those that could not be, and why.
    failed: BTreeMap<u32, String>,
    /// That was tried again.
    again: bool,
}

/// What may happen.
enum Event {
    Signal,
    Worker,
    Client,
    Connection(u64),
    Ended(u64),
}

impl<'a> Broker<'a> {
    fn start(directory: Directory, mut pool: Pool, tell: &'a dyn Fn(&str)) -> Result<Broker<'a>, Error> {
        // A descriptor for each connection, for each process with a lease, and for each segment of a reply.
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum });
        let (signals, writer) =
            UnixStream::pair().map_err(Error::file("cannot make a socket for", directory.path()))?;
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            let writer = writer.try_clone();
            writer
                .and_then(|writer| signal_hook::low_level::pipe::register(signal, writer))
                .map_err(Error::file("cannot wait for signals of", directory.path()))?;
        }
        let mut anew = 0;
        if pool.backend == Backend::Hugetlb {
            let huge = directory.huge();
            if !hugetlb::is_mounted(&huge) {
                // The machine was started anew, and with the mount all the pages went.
                anew = std::mem::take(&mut pool.segments).values().map(|segment| segment.bytes).sum();
                (pool.reserved, pool.adding) = (BTreeMap::new(), None);
                pool.save(&directory)?;
                std::fs::create_dir_all(&huge).map_err(Error::file("cannot make", &huge))?;
                hugetlb::mount(&huge, pool.page_bytes)?;
            }
        }
        reserve::settle(&mut pool, &directory)?;
        dax::divide(&pool)?;
        let path = directory.socket();
        let listener = socket::listen(&path, pool.owner, pool.group, pool.mode);
        let mut broker = Broker {
            ledger: Ledger::new(pool.per_user_bytes),
            listener: listener.map_err(Error::file("cannot listen on", path))?,
            signals,
            worker: Worker::start()
                .map_err(Error::file("cannot start the thread that zeroes for", directory.path()))?,
            connections: BTreeMap::new(),
            next: 0,
            processes: BTreeMap::new(),
            withheld: BTreeSet::new(),
            growth: None,
            looked: Instant::now(),
            stopping: false,
            tell,
            directory,
            pool,
        };
        broker.find_leases();
        if anew > 0 {
            broker.grow(anew);
        }
        Ok(broker)
    }

    /// After a restart: who has which segments. All others are zeroed, whatever they were.
    fn find_leases(&mut self) {
        let ids: BTreeMap<FileId, u32> = self
            .pool
            .segments
            .iter()
            .filter_map(|(number, segment)| Some((FileId::of(&self.directory.segment(*number, segment))?, *number)))
            .collect();
        for (number, segment) in self.pool.segments.clone() {
            self.ledger.add(number, segment, Use::Returned);
        }
        for holder in holders(&ids.keys().copied().collect()) {
            let held: Vec<u32> = holder.files.iter().map(|id| ids[id]).collect();
            let held: Vec<u32> =
                held.into_iter().filter(|number| self.ledger.used(*number) == Some(Use::Returned)).collect();
            if !held.is_empty() {
                self.lend(client(holder.pid, holder.uid), &held);
            }
        }
        let open = self.ledger.numbers(|used| used == Use::Returned);
        let free = self.not_held(open.clone());
        for number in open {
            if free.contains(&number) {
                self.renew(number);
            } else {
                // By a process that is not to be seen from here.
                self.lend(Client { uid: u32::MAX, ..Client::default() }, &[number]);
            }
        }
    }

    fn run(&mut self) -> Result<(), Error> {
        while !self.stopping {
            for event in self.wait()? {
                match event {
                    Event::Signal => self.stopping = true,
                    Event::Worker => self.hear_worker(),
                    Event::Client => self.accept(),
                    Event::Connection(number) => self.hear(number),
                    Event::Ended(lease) => {
                        self.processes.remove(&lease);
                        self.ledger.ended(lease);
                        self.look(|used| used == Use::Lent(lease));
                    }
                }
            }
            if self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                self.look(|used| matches!(used, Use::Lent(_)));
                for number in self.ledger.numbers(|used| used == Use::Withheld) {
                    self.ledger.set(number, Use::Returned);
                    self.renew(number);
                }
            }
            self.connections
                .retain(|_, connection| connection.waits_for.is_some() || connection.since.elapsed() < PATIENCE);
            self.answer_waiting();
        }
        Ok(())
    }

    /// Waits until something happens, or until it is time to look.
    fn wait(&self) -> Result<Vec<Event>, Error> {
        let mut fds = vec![
            (Event::Signal, self.signals.as_fd()),
            (Event::Worker, self.worker.as_fd()),
            (Event::Client, self.listener.as_fd()),
        ];
        // Who has ended comes before who asks: what one gives back the other may have.
        fds.extend(self.processes.iter().map(|(lease, process)| (Event::Ended(*lease), process.as_fd())));
        fds.extend(self.connections.iter().map(|(number, one)| (Event::Connection(*number), one.socket.as_fd())));
        let mut polled: Vec<PollFd> = fds.iter().map(|(_, fd)| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let idle = self.connections.is_empty()
            && self.ledger.numbers(|used| matches!(used, Use::Lent(_) | Use::Withheld)).is_empty();
        let timeout = (!idle).then(|| LOOK.saturating_sub(self.looked.elapsed()).max(Duration::from_millis(1)));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::file("cannot wait for clients of", self.directory.path())(error.into())),
        }
        let happened: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        Ok(fds.into_iter().zip(happened).filter(|(_, happened)| *happened).map(|((event, _), _)| event).collect())
    }

    fn accept(&mut self) {
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
    fn hear(&mut self, number: u64) {
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
    fn answer_waiting(&mut self) {
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

    /// Notes a lease, and waits for its process' end.
    fn lend(&mut self, client: Client, numbers: &[u32]) {
        let process = Pid::from_raw(client.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let is_seen = client.pid > 0;
        let lease = self.ledger.lend(client, numbers);
        match process {
            Some(process) => drop(self.processes.insert(lease, process)),
            None if is_seen => self.ledger.ended(lease),
            None => {}
        }
    }

    /// The last that a client hears. What cannot be delivered comes back by itself: nobody holds it.
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
        let _ = socket::send(&connection.socket, &reply.encode(), &descriptors);
    }

    /// Takes back what nobody holds any more.
    fn look(&mut self, which: impl Fn(Use) -> bool) {
        for number in self.not_held(self.ledger.numbers(which)) {
            self.ledger.set(number, Use::Returned);
            self.renew(number);
        }
        self.processes.retain(|lease, _| self.ledger.leases().contains_key(lease));
    }

    /// Those of these segments that nobody has any more. What cannot be told is held.
    fn not_held(&self, numbers: Vec<u32>) -> Vec<u32> {
        if self.pool.backend == Backend::Dax && !numbers.is_empty() {
            let id = |number: &u32| FileId::of(&self.path(*number));
            let held = holders(&numbers.iter().filter_map(id).collect());
            let is_held = |number: &u32| id(number).is_some_and(|id| held.iter().any(|one| one.files.contains(&id)));
            return numbers.into_iter().filter(|number| !is_held(number)).collect();
        }
        let is_held = |number: &u32| match backing::is_held(&self.path(*number)) {
            Ok(held) => held,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        numbers.into_iter().filter(|number| !is_held(number)).collect()
    }

    fn path(&self, number: u32) -> std::path::PathBuf {
        let none = Segment { bytes: 0, node: None, device: None, region: None };
        self.directory.segment(number, self.pool.segments.get(&number).unwrap_or(&none))
    }

    /// Has a segment zeroed.
    fn renew(&self, number: u32) {
        let Some(segment) = self.pool.segments.get(&number) else { return };
        let nodes = || {
            let pages = 0..segment.bytes / self.pool.page_bytes;
            pages.map(|page| self.pool.node_of(number, segment, page)).collect()
        };
        let file = (self.pool.backend == Backend::Hugetlb).then(|| (self.path(number), nodes()));
        self.worker.send(Job::Renew { number, segment: segment.clone(), file });
    }

    fn hear_worker(&mut self) {
        for done in self.worker.done() {
            match done {
                Done::Renewed { number, result: Ok(device) } => {
                    self.note_device(number, device);
                    self.withheld.remove(&number);
                    if matches!(self.ledger.used(number), Some(Use::New | Use::Returned)) {
                        self.ledger.set(number, Use::Clean);
                    }
                    self.went_on(number, None);
                }
                Done::Renewed { number, result: Err(error) } => {
                    let what = format!("segment {number} cannot be populated: {error}");
                    // It is tried again every second, and told once.
                    if self.withheld.insert(number) {
                        (self.tell)(&what);
                    }
                    let is_new = self.ledger.used(number) == Some(Use::New);
                    self.ledger.set(number, if is_new { Use::New } else { Use::Withheld });
                    self.went_on(number, Some(what));
                }
                Done::Added { adding, result } => self.added(adding, result),
            }
        }
    }

    /// A dax device that was made anew may have another name.
    fn note_device(&mut self, number: u32, device: Option<String>) {
        let Some(segment) = self.pool.segments.get_mut(&number) else { return };
        if segment.device != device {
            segment.device = device;
            if let Err(error) = self.pool.save(&self.directory) {
                (self.tell)(&error.to_string());
            }
        }
    }

    fn hear_control(&mut self, number: u64, ask: &Ask, uid: u32) {
        let answer = match ask {
            Ask::Status => Answer::Status(Box::new(self.standing())),
            _ if uid != 0 => Answer::No("changing a pool needs root: run it with sudo".into()),
            Ask::Stop { force } if *force || self.ledger.leases().is_empty() => {
                self.stopping = true;
                Answer::Stopping
            }
            Ask::Stop { .. } => Answer::InUse,
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

    fn answer(&mut self, number: u64, answer: &Answer) {
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
        let lease = |(number, lease): (&u64, &crate::ledger::Lease)| {
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

    /// Begins to add memory: first the pages of each node, then the segments are populated.
    fn grow(&mut self, bytes: u64) {
        let (segments, pages) = match self.pool.backend {
            Backend::Hugetlb => {
                let segments = self.pool.more(bytes);
                let pages = self.pool.pages_of(&segments).into_iter().collect();
                (segments, pages)
            }
            Backend::Dax => {
                match dax::more(&self.pool, &self.directory, bytes).and_then(|segments| self.divide(segments)) {
                    Ok(segments) => (segments, VecDeque::new()),
                    Err(error) => return self.give_up(error.to_string()),
                }
            }
        };
        let open = segments.keys().copied().collect();
        self.growth =
            Some(Growth { since: Instant::now(), segments, pages, open, failed: BTreeMap::new(), again: false });
        self.add_next();
    }

    /// Empties the first devices of the regions that these are in, which are noted before.
    fn divide(&mut self, segments: BTreeMap<u32, Segment>) -> Result<BTreeMap<u32, Segment>, Error> {
        let found: BTreeMap<String, u64> =
            linux::dax::devices().into_iter().map(|device| (device.name, device.bytes)).collect();
        let regions: BTreeSet<&String> = segments.values().filter_map(|segment| segment.region.as_ref()).collect();
        for region in regions {
            let found = found.get(region).copied().unwrap_or(0);
            self.pool.regions.entry(region.clone()).or_insert(found);
        }
        self.pool.save(&self.directory)?;
        dax::divide(&self.pool)?;
        Ok(segments)
    }

    /// Adds the pages of the next node; after the last, has the segments populated.
    fn add_next(&mut self) {
        let Some(growth) = &mut self.growth else { return };
        if let Some((node, pages)) = growth.pages.pop_front() {
            let begun = hugetlb::pages(node, self.pool.page_bytes).map_err(Error::from).and_then(|now| {
                let adding = Adding { node, before: now.persistent, pages };
                self.pool.adding = Some(adding);
                self.pool.save(&self.directory).map(|()| adding)
            });
            match begun {
                Ok(adding) => self.worker.send(Job::Add { adding, page_bytes: self.pool.page_bytes }),
                Err(error) => self.give_up(error.to_string()),
            }
            return;
        }
        let (segments, open) = (growth.segments.clone(), growth.open.clone());
        self.pool.segments.extend(segments.clone());
        if let Err(error) = self.pool.save(&self.directory) {
            return self.give_up(error.to_string());
        }
        for (number, segment) in segments.into_iter().filter(|(number, _)| open.contains(number)) {
            self.ledger.add(number, segment, Use::New);
            self.renew(number);
        }
    }

    fn added(&mut self, adding: Adding, result: Result<u64, Error>) {
        self.pool.adding = None;
        match result {
            Ok(added) => {
                *self.pool.reserved.entry(adding.node).or_default() += added;
                match self.pool.save(&self.directory) {
                    Ok(()) => self.add_next(),
                    Err(error) => self.give_up(error.to_string()),
                }
            }
            Err(error) => self.give_up(error.to_string()),
        }
    }

    /// A segment was populated, or could not be: after the last of those that are added, all is told.
    fn went_on(&mut self, number: u32, failed: Option<String>) {
        let Some(growth) = &mut self.growth else { return };
        if !growth.open.remove(&number) {
            return;
        }
        growth.failed.extend(failed.map(|why| (number, why)));
        if !growth.open.is_empty() {
            return;
        }
        if let Some(why) = growth.failed.values().next().cloned() {
            if growth.again || self.pool.backend == Backend::Dax {
                return self.give_up(why);
            }
            // Another program has taken pages between their being added and their being populated: once more for those.
            growth.again = true;
            growth.open = std::mem::take(&mut growth.failed).into_keys().collect();
            let missing = growth.segments.iter().filter(|(number, _)| growth.open.contains(number));
            growth.pages = self.pool.pages_of(missing).into_iter().collect();
            return self.add_next();
        }
        let bytes: u64 = growth.segments.values().map(|segment| segment.bytes).sum();
        let seconds = growth.since.elapsed().as_secs_f64();
        self.growth = None;
        if let Err(error) = reserve::settle(&mut self.pool, &self.directory) {
            (self.tell)(&error.to_string());
        }
        self.answer_growth(&Answer::Grown { bytes, seconds });
    }

    /// Takes back what was added, as far as nobody has it already.
    fn give_up(&mut self, why: String) {
        let segments = self.growth.take().map(|growth| growth.segments).unwrap_or_default();
        let added: Vec<u32> = segments.into_keys().collect();
        if let Err(error) = self.drop_segments(&added) {
            (self.tell)(&error.to_string());
        }
        (self.tell)(&why);
        self.answer_growth(&Answer::No(why));
    }

    fn answer_growth(&mut self, answer: &Answer) {
        let waiting = self.connections.iter().find(|(_, one)| matches!(one.waits_for, Some(Asked::Growth)));
        if let Some(number) = waiting.map(|(number, _)| *number) {
            self.answer(number, answer);
        }
    }

    /// Gives up free segments, the last first; the bytes of those that were free.
    fn shrink(&mut self, bytes: u64) -> Result<u64, Error> {
        let mut chosen = Vec::new();
        let mut less = 0;
        for number in self.ledger.numbers(|used| used == Use::Clean).into_iter().rev() {
            if less >= bytes {
                break;
            }
            less += self.ledger.bytes(number);
            chosen.push(number);
        }
        self.drop_segments(&chosen)?;
        Ok(less)
    }

    fn drop_segments(&mut self, numbers: &[u32]) -> Result<(), Error> {
        for number in numbers {
            if !matches!(self.ledger.used(*number), Some(Use::Lent(_))) {
                if self.pool.backend == Backend::Hugetlb {
                    let path = self.path(*number);
                    backing::remove(&path).map_err(Error::file("cannot remove", path))?;
                }
                self.ledger.remove(*number);
                self.pool.segments.remove(number);
            }
        }
        self.pool.save(&self.directory)?;
        reserve::settle(&mut self.pool, &self.directory)
    }
}

/// A process as far as it can be seen.
fn client(pid: i32, uid: u32) -> Client {
    let cgroup = Cgroup::of(pid).ok().flatten();
    Client {
        pid,
        uid,
        command: procfs::stat(pid).map(|stat| stat.comm).unwrap_or_default(),
        limits: cgroup.as_ref().map(Cgroup::limits).unwrap_or_default(),
        cgroup: cgroup.map(|cgroup| cgroup.dir().into()),
    }
}
