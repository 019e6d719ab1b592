//! Creating, changing, inspecting and removing pools: the part of `bursar pool` outside of the broker.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use linux::cgroup::{Cgroup, HugetlbRoom};
use linux::holders::{FileId, Holder, holders};
use linux::secure_file::Folder;
use linux::{hugetlb, numa};
use model::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::control::{Answer, Ask, BrokerStatus, LeaseStatus, Part, ask};
use crate::state::{Backend, Directory, Pool, READABLE, Segment, segment_bytes};
use crate::{Error, backing, broker, dax, reserve};

/// How long a broker may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often cancellation is checked.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The nodes that a pool's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Segments alternate between all nodes.
    Spread,
    /// Pages alternate between all nodes.
    Interleave,
    /// One node.
    Node(u32),
}

/// The parameters of a pool to be created.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Minimum size in bytes; rounded up to whole segments.
    pub bytes: u64,
    /// The nodes.
    pub placement: Placement,
    /// Size of its pages.
    pub page_bytes: u64,
    /// The kind of memory.
    pub backend: Backend,
    /// User and group of the socket.
    pub owner: (u32, u32),
    /// Mode of the socket.
    pub mode: u32,
    /// Cap for all processes of one user together, bytes.
    pub per_user_bytes: Option<u64>,
}

/// Memory that was added to a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// Bytes.
    pub bytes: u64,
    /// Time to reserve and populate it.
    pub seconds: f64,
}

/// What `bursar pool status --json` writes.
#[derive(JsonSchema, Serialize)]
pub struct PoolsJson<'a> {
    /// All pools, or the one that was named.
    pub pools: &'a [PoolStatus],
}

/// A pool and its broker's status. Figures that only a broker knows are `None` without one.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// The kind of memory.
    pub backend: Backend,
    /// The path of the broker's socket.
    pub socket: String,
    /// Size of its pages.
    pub page_bytes: u64,
    /// Size of its segments.
    pub segment_bytes: u64,
    /// Whether each segment is interleaved over all nodes.
    pub interleaved: bool,
    /// Owner of the socket.
    pub owner: u32,
    /// Group of the socket.
    pub group: u32,
    /// Mode of the socket, in octal digits.
    pub mode: String,
    /// Cap for all processes of one user together, bytes.
    pub per_user_bytes: Option<u64>,
    /// Whether a broker answers; `None`: this user may not connect.
    pub alive: Option<bool>,
    /// Its PID.
    pub broker_pid: Option<u32>,
    /// All memory of the pool.
    #[serde(flatten)]
    pub whole: Parts,
    /// The part that the kernel counts as surplus, because `vm.nr_hugepages` was lowered after the pool was created. The pool keeps it;
    /// once freed, it leaves the machine's pool of huge pages. 0 for device-dax.
    pub surplus_bytes: u64,
    /// By node.
    pub nodes: Vec<NodeStatus>,
    /// The leases.
    pub leases: Option<Vec<LeaseStatus>>,
}

/// Memory by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Parts {
    /// All.
    pub bytes: u64,
    /// Zeroed and free.
    pub free_bytes: Option<u64>,
    /// Leased.
    pub leased_bytes: Option<u64>,
    /// Being zeroed or populated.
    pub zeroing_bytes: Option<u64>,
}

/// Memory of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NodeStatus {
    /// Its number; `None`: interleaved over all nodes of the pool.
    pub node: Option<u32>,
    /// Its memory by state.
    #[serde(flatten)]
    pub parts: Parts,
}

/// Creates a pool and starts its broker; returns when all memory is populated and zeroed. After an error or cancellation nothing is left.
/// `is_cancelled` is polled meanwhile.
///
/// # Errors
/// Each that [`Error`] has for an impossible pool; [`Error::Cancelled`].
pub fn create(directory: &Directory, plan: &Plan, is_cancelled: &(dyn Fn() -> bool + Sync)) -> Result<Grown, Error> {
    needs_root("creating")?;
    if directory.path().exists() {
        return Err(Error::Exists(directory.name().into()));
    }
    let pool = empty(plan)?;
    check_available(&pool, directory, plan.bytes)?;
    directory.create()?;
    let started = pool.save(directory).and_then(|()| start(directory));
    let made = started.and_then(|broker| grow_cancellable(is_cancelled, directory, plan.bytes, broker));
    if made.is_ok() && !is_cancelled() {
        return made;
    }
    let removed = destroy(directory, true);
    if is_cancelled() {
        return removed.and(Err(Error::Cancelled(directory.name().into())));
    }
    // The first error is the relevant one.
    made
}

/// Adds memory to a pool.
///
/// # Errors
/// [`Error::Memory`], [`Error::Denied`], and those of [`ask`].
pub fn grow(directory: &Directory, bytes: u64) -> Result<Grown, Error> {
    needs_root("changing")?;
    check_available(&Pool::load(directory)?, directory, bytes)?;
    grow_by(directory, bytes)
}

/// Removes free memory from a pool; returns the bytes.
///
/// # Errors
/// Those of [`ask`].
pub fn shrink(directory: &Directory, bytes: u64) -> Result<u64, Error> {
    needs_root("changing")?;
    Pool::load(directory)?;
    match ask(directory, &Ask::Shrink { bytes })? {
        Answer::Shrunk { bytes } => Ok(bytes),
        _ => Err(Error::Misunderstood(directory.name().into())),
    }
}

/// Removes a pool and releases its reserved memory. With `force` also while it is in use: processes keep their leased memory until they
/// end, and are returned. Memory of dax devices cannot stay with processes, so such a pool is never removed while in use.
///
/// # Errors
/// [`Error::InUse`]; [`Error::None`], [`Error::File`], [`Error::Kernel`].
pub fn destroy(directory: &Directory, force: bool) -> Result<Vec<Holder>, Error> {
    needs_root("removing")?;
    let pool = Pool::load(directory)?;
    let can_force = pool.backend == Backend::Hugetlb;
    let force = force && can_force;
    let in_use = |held: &[Holder]| Error::InUse {
        name: directory.name().into(),
        holders: sentence(held),
        way_out: if can_force { ", or use --force, and they keep their memory" } else { "" },
    };
    // A broker that does not answer still holds the lock.
    if let Ok(Answer::InUse) = ask(directory, &Ask::Stop { force }) {
        return Err(in_use(&holders_of(directory, &pool)));
    }
    let lock = wait_for(|| broker::lock(directory).ok()).ok_or_else(|| Error::Served(directory.name().into()))?;
    // The state as the broker left it.
    let mut pool = Pool::load(directory)?;
    let held = holders_of(directory, &pool);
    // Leases work only on files; the holders of a dax device are known from /proc alone.
    let is_held =
        |(number, segment): (&u32, &Segment)| backing::is_held(&directory.segment(*number, segment)).unwrap_or(false);
    if !force && (!held.is_empty() || pool.segments.iter().any(is_held)) {
        return Err(in_use(&held));
    }
    let huge = directory.huge();
    for (number, segment) in std::mem::take(&mut pool.segments) {
        if pool.backend == Backend::Hugetlb {
            let path = directory.segment(number, &segment);
            backing::remove(&path).map_err(Error::file("cannot remove", path))?;
        }
    }
    if hugetlb::is_mounted(&huge) {
        hugetlb::unmount(&huge)?;
    }
    pool.save(directory)?;
    reserve::release_excess(&mut pool, directory)?;
    directory.remove()?;
    drop(lock);
    Ok(held)
}

/// The pool, its broker's status and the leases.
///
/// # Errors
/// [`Error::None`], [`Error::State`].
pub fn status(directory: &Directory) -> Result<PoolStatus, Error> {
    let pool = Pool::load(directory)?;
    let (alive, broker) = match ask(directory, &Ask::Status) {
        Ok(Answer::Status(broker)) => (Some(true), Some(*broker)),
        Err(Error::NoBroker(_)) => (Some(false), None),
        _ => (None, None),
    };
    let parts = |wanted: &dyn Fn(Option<u32>) -> bool| Parts {
        bytes: pool.segments.values().filter(|segment| wanted(segment.node)).map(|segment| segment.bytes).sum(),
        free_bytes: broker.as_ref().map(|broker| sum(broker, Part::Free, wanted)),
        leased_bytes: broker.as_ref().map(|broker| sum(broker, Part::Leased, wanted)),
        zeroing_bytes: broker.as_ref().map(|broker| sum(broker, Part::Zeroing, wanted)),
    };
    let nodes: BTreeSet<Option<u32>> = pool.segments.values().map(|segment| segment.node).collect();
    Ok(PoolStatus {
        name: directory.name().into(),
        backend: pool.backend,
        socket: directory.socket().display().to_string(),
        page_bytes: pool.page_bytes,
        segment_bytes: pool.segment_bytes,
        interleaved: pool.interleaved,
        owner: pool.owner,
        group: pool.group,
        mode: format!("{:04o}", pool.mode),
        per_user_bytes: pool.per_user_bytes,
        alive,
        broker_pid: broker.as_ref().map(|broker| broker.broker_pid),
        whole: parts(&|_| true),
        surplus_bytes: surplus_bytes(&pool),
        nodes: nodes.iter().map(|node| NodeStatus { node: *node, parts: parts(&|of| of == *node) }).collect(),
        leases: broker.as_ref().map(|broker| broker.leases.clone()),
    })
}

fn surplus_bytes(pool: &Pool) -> u64 {
    if pool.backend != Backend::Hugetlb {
        return 0;
    }
    let pages = |node: &numa::Node| Some(hugetlb::pages(node.number, pool.page_bytes).ok()?.persistent);
    let persistent: u64 = numa::nodes().iter().flatten().filter_map(pages).sum();
    let held: u64 = pool.segments.values().map(|segment| segment.bytes).sum();
    held.saturating_sub(persistent * pool.page_bytes)
}

/// A pool without memory, if one can be created as planned.
fn empty(plan: &Plan) -> Result<Pool, Error> {
    let devices = match plan.backend {
        Backend::Hugetlb => Vec::new(),
        Backend::Dax => dax::available(plan.page_bytes)?,
    };
    let sizes = hugetlb::page_sizes();
    if plan.backend == Backend::Hugetlb && !sizes.contains(&plan.page_bytes) {
        return Err(Error::PageSize {
            wanted: Bytes(plan.page_bytes),
            available: sizes.into_iter().map(Bytes).collect(),
        });
    }
    let available: BTreeSet<u32> = match plan.backend {
        Backend::Hugetlb => numa::nodes()?.into_iter().map(|node| node.number).collect(),
        Backend::Dax => devices.iter().map(|device| device.node).collect(),
    };
    let available: Vec<u32> = available.into_iter().collect();
    let nodes = match plan.placement {
        Placement::Node(wanted) if !available.contains(&wanted) => return Err(Error::Node { wanted, available }),
        Placement::Node(wanted) => vec![wanted],
        Placement::Spread | Placement::Interleave => available,
    };
    Ok(Pool {
        backend: plan.backend,
        page_bytes: plan.page_bytes,
        segment_bytes: segment_bytes(plan.bytes, plan.page_bytes),
        // The memory of a device cannot be interleaved.
        interleaved: plan.placement == Placement::Interleave && nodes.len() > 1 && plan.backend == Backend::Hugetlb,
        nodes,
        owner: plan.owner.0,
        group: plan.owner.1,
        mode: plan.mode,
        per_user_bytes: plan.per_user_bytes,
        reserved: BTreeMap::new(),
        regions: BTreeMap::new(),
        adding: None,
        segments: BTreeMap::new(),
    })
}

/// Checks that the memory is available, before anything changes.
fn check_available(pool: &Pool, directory: &Directory, bytes: u64) -> Result<(), Error> {
    if pool.backend == Backend::Dax {
        return dax::plan_segments(pool, directory, bytes).map(drop);
    }
    let nodes = numa::nodes()?;
    let nodes: Vec<_> = nodes.into_iter().filter(|node| pool.nodes.contains(&node.number)).collect();
    let available: u64 = nodes.iter().map(|node| node.available).sum();
    let wanted = bytes.div_ceil(pool.segment_bytes).saturating_mul(pool.segment_bytes);
    if let Some(room) = hugetlb_room(pool, directory).filter(|room| room.bytes < wanted) {
        return Err(Error::HugetlbLimit { room, wanted: Bytes(wanted), page: Bytes(pool.page_bytes) });
    }
    if wanted > available {
        let nodes = nodes.iter().map(|node| node.number).collect();
        return Err(Error::Memory { wanted: Bytes(wanted), available: Bytes(available), nodes });
    }
    // A single node may have less than its share.
    let new = pool.plan_segments(bytes);
    for (number, pages) in pool.pages_of(&new) {
        let wanted = pages * pool.page_bytes;
        let available = nodes.iter().find(|node| node.number == number).map_or(0, |node| node.available);
        if wanted > available {
            return Err(Error::Memory { wanted: Bytes(wanted), available: Bytes(available), nodes: vec![number] });
        }
    }
    Ok(())
}

/// What the hugetlb controller allows the broker, or this process, which will start it.
fn hugetlb_room(pool: &Pool, directory: &Directory) -> Option<HugetlbRoom> {
    let broker = match ask(directory, &Ask::Status) {
        Ok(Answer::Status(broker)) => broker.broker_pid,
        _ => std::process::id(),
    };
    Cgroup::of(broker as i32).ok()??.hugetlb_room(pool.page_bytes)
}

/// Starts a broker that outlives this process, and waits until it answers.
fn start(directory: &Directory) -> Result<Child, Error> {
    let program = std::env::current_exe().map_err(Error::file("cannot find", "/proc/self/exe"))?;
    let path = directory.log();
    let created = Folder::of(&path).and_then(|(folder, name)| folder.replace(&name, READABLE)?.commit());
    let log = created.map_err(Error::file("cannot make", &path))?;
    let mut command = Command::new(&program);
    command
        .args(["pool", "serve", directory.name()])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    // SAFETY: two system calls, both async-signal-safe as required between fork and exec.
    unsafe {
        command.pre_exec(|| {
            const CLOSE_RANGE_CLOEXEC: u32 = 4;
            // A session of its own, and no inherited pipes: their readers would wait for the broker's end. Kernels before 5.11 lack the
            // call; there the pipes stay.
            libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, CLOSE_RANGE_CLOEXEC);
            if libc::setsid() == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
    }
    let mut broker = command.spawn().map_err(Error::file("cannot start", program))?;
    let mut ended = false;
    let answers = wait_for(|| {
        ended = matches!(broker.try_wait(), Ok(Some(_)));
        (ended || ask(directory, &Ask::Status).is_ok()).then_some(())
    });
    if ended || answers.is_none() {
        let logged = fs::read_to_string(&path).unwrap_or_default();
        let logged = logged.trim();
        return Err(Error::Denied(match logged.is_empty() {
            true => format!("the broker does not answer, and its log {} is empty", path.display()),
            false => logged.trim_start_matches("bursar: ").to_string(),
        }));
    }
    Ok(broker)
}

/// Grows a pool, and kills the broker on cancellation: it would populate the memory even if no client waits.
fn grow_cancellable(
    is_cancelled: &(dyn Fn() -> bool + Sync),
    directory: &Directory,
    bytes: u64,
    mut broker: Child,
) -> Result<Grown, Error> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = || {
            while !over.load(Ordering::Acquire) {
                if is_cancelled() {
                    // An error means that the broker has ended already.
                    let _ = broker.kill();
                }
                thread::park_timeout(CANCEL_CHECK_INTERVAL);
            }
        };
        // Without this thread the pool grows to its end even if cancelled.
        let watch = thread::Builder::new().spawn_scoped(scope, watch).ok();
        let grown = grow_by(directory, bytes);
        over.store(true, Ordering::Release);
        watch.iter().for_each(|watch| watch.thread().unpark());
        grown
    })
}

fn grow_by(directory: &Directory, bytes: u64) -> Result<Grown, Error> {
    match ask(directory, &Ask::Grow { bytes })? {
        Answer::Grown { bytes, seconds } => Ok(Grown { bytes, seconds }),
        _ => Err(Error::Misunderstood(directory.name().into())),
    }
}

/// The processes that hold memory of the pool, except the broker and this process.
fn holders_of(directory: &Directory, pool: &Pool) -> Vec<Holder> {
    let paths = pool.segments.iter().map(|(number, segment)| directory.segment(*number, segment));
    holders(&paths.filter_map(|path| FileId::of(&path)).collect())
}

fn sentence(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return "a process that is not visible from here".into();
    }
    holders.iter().map(|holder| format!("{} ({})", holder.pid, holder.command)).collect::<Vec<_>>().join(", ")
}

fn sum(broker: &BrokerStatus, part: Part, wanted: &dyn Fn(Option<u32>) -> bool) -> u64 {
    let of = broker.segments.iter().filter(|one| one.part == part && wanted(one.segment.node));
    of.map(|one| one.segment.bytes).sum()
}

fn needs_root(what: &'static str) -> Result<(), Error> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(Error::NotRoot(what)) }
}

fn wait_for<T>(mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match condition() {
            None if Instant::now() < deadline => sleep(Duration::from_millis(5)),
            found => return found,
        }
    }
}
