//! The broker: leases segments, detects when no process holds them any more, and zeroes them before the next lease.
//!
//! One thread waits for all events; another populates and zeroes. Leases are not stored: after a restart the broker asks the kernel which
//! segments are held, and zeroes all others before they are leased.

mod connections;
mod growth;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use linux::cgroup::Cgroup;
use linux::holders::{FileId, holders};
use linux::secure_file::Folder;
use linux::{hugetlb, procfs};
use model::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit, pidfd_open, setrlimit};

use self::connections::Connection;
use self::growth::Growth;
use crate::ledger::{Client, Ledger, Use};
use crate::state::{Backend, Directory, Pool, Segment};
use crate::worker::{Done, Job, Renewal, Worker};
use crate::{Error, backing, dax, reserve, socket};

/// How often the broker checks whether leased segments are still held.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The check after a process has ended: the helper that zeroes for it (`crate::prezero`) releases its segments a moment later.
const CHECK_AFTER_EXIT: Duration = Duration::from_millis(10);

/// Serves a pool until SIGTERM or SIGINT, or until a request stops it. `report` gets messages for the operator.
///
/// # Errors
/// [`Error::None`], [`Error::NotRoot`], [`Error::Served`], and what the kernel refuses.
pub fn serve(directory: &Directory, report: &dyn Fn(&str)) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot("serving"));
    }
    let pool = Pool::load(directory)?;
    let _lock = lock(directory)?;
    let mut broker = Broker::start(directory.clone(), pool, report)?;
    let served = broker.run();
    // From now on, connecting fails at once.
    let _ = backing::remove(&directory.socket());
    // The next holder of the lock finds no segment held by this process.
    broker.worker.end();
    served
}

/// Held while a pool is served.
///
/// # Errors
/// [`Error::Served`] if another process holds it.
pub(crate) fn lock(directory: &Directory) -> Result<File, Error> {
    let path = directory.lock();
    let opened = Folder::of(&path).and_then(|(folder, name)| folder.create_or_open(&name));
    let file = opened.map_err(Error::file("cannot open", path))?;
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
    /// The pidfd of each lease's process, while it lives.
    processes: BTreeMap<u64, OwnedFd>,
    /// Segments whose pages another program has.
    withheld: BTreeSet<u32>,
    growth: Option<Growth>,
    last_check: Instant,
    stopping: bool,
    report: &'a dyn Fn(&str),
}

/// An event that the broker waits for.
enum Event {
    Signal,
    Worker,
    Client,
    Connection(u64),
    Ended(u64),
}

impl<'a> Broker<'a> {
    fn start(directory: Directory, mut pool: Pool, report: &'a dyn Fn(&str)) -> Result<Broker<'a>, Error> {
        // A descriptor for each connection, for each process with a lease, and for each segment of a reply.
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum });
        let signals = signals().map_err(Error::file("cannot wait for signals of", directory.path()))?;
        let lost = mount(&mut pool, &directory)?;
        reserve::release_excess(&mut pool, &directory)?;
        dax::empty_first_devices(&pool)?;
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
            last_check: Instant::now(),
            stopping: false,
            report,
            directory,
            pool,
        };
        broker.find_leases();
        if lost > 0 {
            broker.grow(lost);
        }
        Ok(broker)
    }

    /// After a restart: finds the holders of segments, and zeroes all segments that are not held.
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
                self.add_lease(client(holder.pid, holder.uid), &held);
            }
        }
        let open = self.ledger.numbers(|used| used == Use::Returned);
        let free = self.not_held(open.clone());
        for number in open.into_iter().filter(|number| !free.contains(number)) {
            // The holder is not visible from here.
            self.add_lease(Client { uid: u32::MAX, ..Client::default() }, &[number]);
        }
        self.renew(&free);
    }

    fn run(&mut self) -> Result<(), Error> {
        while !self.stopping {
            for event in self.wait()? {
                match event {
                    Event::Signal => self.stopping = true,
                    Event::Worker => self.handle_worker(),
                    Event::Client => self.accept(),
                    Event::Connection(number) => self.receive(number),
                    Event::Ended(lease) => {
                        self.processes.remove(&lease);
                        self.ledger.ended(lease);
                        self.reclaim_unheld(|used| used == Use::Leased(lease));
                        if self.ledger.leases().contains_key(&lease) {
                            let earlier = Instant::now().checked_sub(CHECK_INTERVAL - CHECK_AFTER_EXIT);
                            self.last_check = earlier.map_or(self.last_check, |earlier| self.last_check.min(earlier));
                        }
                    }
                }
            }
            if self.last_check.elapsed() >= CHECK_INTERVAL {
                self.last_check = Instant::now();
                self.reclaim_unheld(|used| matches!(used, Use::Leased(_)));
                for number in self.ledger.numbers(|used| used == Use::Withheld) {
                    self.ledger.set(number, Use::Returned);
                    self.renew(&[number]);
                }
            }
            self.connections.retain(|_, connection| connection.may_stay());
            self.answer_waiting();
        }
        Ok(())
    }

    /// Waits for events, or until the next check.
    fn wait(&self) -> Result<Vec<Event>, Error> {
        let mut fds = vec![
            (Event::Signal, self.signals.as_fd()),
            (Event::Worker, self.worker.as_fd()),
            (Event::Client, self.listener.as_fd()),
        ];
        // Ended processes come before requests, so that their segments are available to the requests.
        fds.extend(self.processes.iter().map(|(lease, process)| (Event::Ended(*lease), process.as_fd())));
        fds.extend(self.connections.iter().map(|(number, one)| (Event::Connection(*number), one.socket.as_fd())));
        let mut polled: Vec<PollFd> = fds.iter().map(|(_, fd)| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let idle = self.connections.is_empty()
            && self.ledger.numbers(|used| matches!(used, Use::Leased(_) | Use::Withheld)).is_empty();
        let timeout =
            (!idle).then(|| CHECK_INTERVAL.saturating_sub(self.last_check.elapsed()).max(Duration::from_millis(1)));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::file("cannot wait for clients of", self.directory.path())(error.into())),
        }
        let happened: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        Ok(fds.into_iter().zip(happened).filter(|(_, happened)| *happened).map(|((event, _), _)| event).collect())
    }

    /// Records a lease, and waits for the end of its process.
    fn add_lease(&mut self, client: Client, numbers: &[u32]) {
        let process = Pid::from_raw(client.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let is_visible = client.pid > 0;
        let lease = self.ledger.add_lease(client, numbers);
        match process {
            Some(process) => drop(self.processes.insert(lease, process)),
            None if is_visible => self.ledger.ended(lease),
            None => {}
        }
    }

    /// Returns segments that no process holds any more.
    fn reclaim_unheld(&mut self, which: impl Fn(Use) -> bool) {
        self.take_back(self.ledger.numbers(which));
    }

    fn take_back(&mut self, numbers: Vec<u32>) {
        for number in self.not_held(numbers) {
            self.ledger.set(number, Use::Returned);
            self.renew(&[number]);
        }
        self.processes.retain(|lease, _| self.ledger.leases().contains_key(lease));
    }

    /// The given segments that no process holds. If that cannot be determined, a segment counts as held.
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

    /// Zeroes these segments, in parallel on all processors. Segments that return one by one are passed one by one, to disturb running
    /// programs less.
    fn renew(&self, numbers: &[u32]) {
        let renewal = |number: &u32| {
            let segment = self.pool.segments.get(number)?;
            let nodes = || {
                let pages = 0..segment.bytes / self.pool.page_bytes;
                pages.map(|page| self.pool.node_of(*number, segment, page)).collect()
            };
            let file = (self.pool.backend == Backend::Hugetlb).then(|| (self.path(*number), nodes()));
            Some(Renewal { number: *number, segment: segment.clone(), file })
        };
        self.worker.send(Job::Renew(numbers.iter().filter_map(renewal).collect()));
    }

    fn handle_worker(&mut self) {
        for done in self.worker.done() {
            match done {
                Done::Renewed { number, result: Ok(device) } => {
                    self.note_device(number, device);
                    self.withheld.remove(&number);
                    if matches!(self.ledger.used(number), Some(Use::New | Use::Returned)) {
                        self.ledger.set(number, Use::Clean);
                    }
                    self.segment_done(number, None);
                }
                Done::Renewed { number, result: Err(error) } => {
                    let why = self.why_not_populated(number, &error);
                    let what = format!("segment {number} cannot be populated: {why}");
                    // It is retried every second, and reported once.
                    if self.withheld.insert(number) {
                        (self.report)(&what);
                    }
                    let is_new = self.ledger.used(number) == Some(Use::New);
                    self.ledger.set(number, if is_new { Use::New } else { Use::Withheld });
                    self.segment_done(number, Some(what));
                }
                Done::Added { adding, result } => self.added(adding, result),
            }
        }
    }

    /// The reason in words: the kernel's "no space left on device" names neither the limit nor the users of the pages.
    fn why_not_populated(&self, number: u32, error: &io::Error) -> String {
        let is_short = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::ENOMEM));
        if !is_short || self.pool.backend != Backend::Hugetlb {
            return error.to_string();
        }
        let needed = self.pool.segments.get(&number).map_or(self.pool.segment_bytes, |segment| segment.bytes);
        let own = Cgroup::of(std::process::id() as i32).ok().flatten();
        match own.and_then(|own| own.hugetlb_room(self.pool.page_bytes)).filter(|room| room.bytes < needed) {
            Some(room) => format!(
                "the hugetlb controller allows {} more of the {} that it needs; raise {}",
                Bytes(room.bytes),
                Bytes(needed),
                room.file.display()
            ),
            None => {
                "no huge page is free, for other programs have taken them; see HugePages_Free in /proc/meminfo".into()
            }
        }
    }

    /// Records the name of a recreated dax device, which may have changed.
    fn note_device(&mut self, number: u32, device: Option<String>) {
        let Some(segment) = self.pool.segments.get_mut(&number) else { return };
        if segment.device != device {
            segment.device = device;
            if let Err(error) = self.pool.save(&self.directory) {
                (self.report)(&error.to_string());
            }
        }
    }
}

/// A descriptor that becomes readable after SIGTERM or SIGINT.
fn signals() -> io::Result<UnixStream> {
    let (signals, writer) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(signals)
}

/// Mounts the hugetlbfs of the segments, if it is not mounted; returns the bytes of the segments that were lost by a reboot.
fn mount(pool: &mut Pool, directory: &Directory) -> Result<u64, Error> {
    let huge = directory.huge();
    if pool.backend != Backend::Hugetlb || hugetlb::is_mounted(&huge) {
        return Ok(0);
    }
    let lost = std::mem::take(&mut pool.segments).values().map(|segment| segment.bytes).sum();
    (pool.reserved, pool.adding) = (BTreeMap::new(), None);
    pool.save(directory)?;
    std::fs::create_dir_all(&huge).map_err(Error::file("cannot make", &huge))?;
    hugetlb::mount(&huge, pool.page_bytes)?;
    Ok(lost)
}

/// The client with this PID, as far as it is visible.
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
