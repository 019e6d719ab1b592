//! Making, changing, looking at and removing pools: what `bursar pool` does beside the broker.

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
use serde::Serialize;

use crate::control::{Answer, Ask, LeaseStatus, Part, Standing, ask};
use crate::state::{Backend, Directory, Pool, READABLE, Segment, segment_bytes};
use crate::{Error, backing, broker, dax, reserve};

/// How long a broker may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// So soon it is seen that a pool was given up.
const GIVEN_UP: Duration = Duration::from_millis(50);

/// Where a pool's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Segments on all nodes in turn.
    Spread,
    /// Pages on all nodes in turn.
    Interleave,
    /// One node.
    Node(u32),
}

/// A pool to be made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// At least so large.
    pub bytes: u64,
    /// Where.
    pub placement: Placement,
    /// Size of its pages.
    pub page_bytes: u64,
    /// What it is made of.
    pub backend: Backend,
    /// User and group of the socket.
    pub owner: (u32, u32),
    /// Mode of the socket.
    pub mode: u32,
    /// What the processes of one user may have together.
    pub per_user_bytes: Option<u64>,
}

/// What was added to a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// Bytes.
    pub bytes: u64,
    /// How long reserving and populating took.
    pub seconds: f64,
}

/// A pool, and what its broker says. What is not known without a broker is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// What its memory is.
    pub backend: Backend,
    /// Where the broker answers.
    pub socket: String,
    /// Size of its pages.
    pub page_bytes: u64,
    /// Size of its segments.
    pub segment_bytes: u64,
    /// Whether each segment is on all nodes.
    pub interleaved: bool,
    /// Owner of the socket.
    pub owner: u32,
    /// Group of the socket.
    pub group: u32,
    /// Mode of the socket, in octal digits.
    pub mode: String,
    /// What the processes of one user may have together.
    pub per_user_bytes: Option<u64>,
    /// Whether a broker answers; `None`: this user may not ask.
    pub alive: Option<bool>,
    /// Its PID.
    pub broker_pid: Option<u32>,
    /// All memory.
    #[serde(flatten)]
    pub whole: Parts,
    /// Of it, what the kernel counts as surplus, since somebody has lowered `vm.nr_hugepages` after the pool was made. It stays in
    /// the pool, and vanishes when it leaves it. 0 of device-dax.
    pub surplus_bytes: u64,
    /// By node.
    pub nodes: Vec<NodeStatus>,
    /// Who has what.
    pub leases: Option<Vec<LeaseStatus>>,
}

/// Memory by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// All of it.
    pub bytes: u64,
    /// Can be lent.
    pub free_bytes: Option<u64>,
    /// Is lent.
    pub leased_bytes: Option<u64>,
    /// Is being zeroed or populated.
    pub zeroing_bytes: Option<u64>,
}

/// Memory of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// Its number; `None`: on all nodes of the pool in turn.
    pub node: Option<u32>,
    /// What there is.
    #[serde(flatten)]
    pub parts: Parts,
}

/// Makes a pool and starts its broker; returns when all of it is there, zeroed. What fails, or is given up meanwhile, leaves nothing behind.
///
/// # Errors
/// Each that [`Error`] has for a pool that cannot be; [`Error::GivenUp`].
pub fn create(directory: &Directory, plan: &Plan, given_up: &(dyn Fn() -> bool + Sync)) -> Result<Grown, Error> {
    needs_root("making")?;
    if directory.path().exists() {
        return Err(Error::Exists(directory.name().into()));
    }
    let pool = empty(plan)?;
    has_memory(&pool, directory, plan.bytes)?;
    directory.create()?;
    let started = pool.save(directory).and_then(|()| start(directory));
    let made = started.and_then(|broker| grow_unless(given_up, directory, plan.bytes, broker));
    if made.is_ok() && !given_up() {
        return made;
    }
    let removed = destroy(directory, true);
    if given_up() {
        return removed.and(Err(Error::GivenUp(directory.name().into())));
    }
    // The first reason is the one that matters.
    made
}

/// Adds memory to a pool.
///
/// # Errors
/// [`Error::Memory`], [`Error::Denied`], and those of [`ask`].
pub fn grow(directory: &Directory, bytes: u64) -> Result<Grown, Error> {
    needs_root("changing")?;
    has_memory(&Pool::load(directory)?, directory, bytes)?;
    grow_by(directory, bytes)
}

/// Takes free memory from a pool; how much it was.
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

/// Removes a pool and gives back what was reserved for it. With `force` also if it is in use: who has memory of it keeps it to
/// the end; they are returned. What is of dax devices cannot stay with them, so such a pool is never removed while it is in use.
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
        way_out: if can_force { ", or use --force, and they keep what they have" } else { "" },
    };
    // A broker that does not answer has the lock.
    if let Ok(Answer::InUse) = ask(directory, &Ask::Stop { force }) {
        return Err(in_use(&held_by(directory, &pool)));
    }
    let lock = wait_for(|| broker::lock(directory).ok()).ok_or_else(|| Error::Served(directory.name().into()))?;
    // Its last word.
    let mut pool = Pool::load(directory)?;
    let held = held_by(directory, &pool);
    // A dax device has no leases to ask: who holds it is all there is to know.
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
    reserve::settle(&mut pool, directory)?;
    directory.remove()?;
    drop(lock);
    Ok(held)
}

/// What there is, and who has it.
///
/// # Errors
/// [`Error::None`], [`Error::State`].
pub fn status(directory: &Directory) -> Result<PoolStatus, Error> {
    let pool = Pool::load(directory)?;
    let (alive, standing) = match ask(directory, &Ask::Status) {
        Ok(Answer::Status(standing)) => (Some(true), Some(*standing)),
        Err(Error::NoBroker(_)) => (Some(false), None),
        _ => (None, None),
    };
    let parts = |wanted: &dyn Fn(Option<u32>) -> bool| Parts {
        bytes: pool.segments.values().filter(|segment| wanted(segment.node)).map(|segment| segment.bytes).sum(),
        free_bytes: standing.as_ref().map(|standing| sum(standing, Part::Free, wanted)),
        leased_bytes: standing.as_ref().map(|standing| sum(standing, Part::Leased, wanted)),
        zeroing_bytes: standing.as_ref().map(|standing| sum(standing, Part::Zeroing, wanted)),
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
        broker_pid: standing.as_ref().map(|standing| standing.broker_pid),
        whole: parts(&|_| true),
        surplus_bytes: surplus_bytes(&pool),
        nodes: nodes.iter().map(|node| NodeStatus { node: *node, parts: parts(&|of| of == *node) }).collect(),
        leases: standing.as_ref().map(|standing| standing.leases.clone()),
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

/// A pool without memory, if there can be one as planned.
fn empty(plan: &Plan) -> Result<Pool, Error> {
    let devices = match plan.backend {
        Backend::Hugetlb => Vec::new(),
        Backend::Dax => dax::available(plan.page_bytes)?,
    };
    let sizes = hugetlb::page_sizes();
    if plan.backend == Backend::Hugetlb && !sizes.contains(&plan.page_bytes) {
        return Err(Error::PageSize { wanted: Bytes(plan.page_bytes), there: sizes.into_iter().map(Bytes).collect() });
    }
    let there: BTreeSet<u32> = match plan.backend {
        Backend::Hugetlb => numa::nodes()?.into_iter().map(|node| node.number).collect(),
        Backend::Dax => devices.iter().map(|device| device.node).collect(),
    };
    let there: Vec<u32> = there.into_iter().collect();
    let nodes = match plan.placement {
        Placement::Node(wanted) if !there.contains(&wanted) => return Err(Error::Node { wanted, there }),
        Placement::Node(wanted) => vec![wanted],
        Placement::Spread | Placement::Interleave => there,
    };
    Ok(Pool {
        backend: plan.backend,
        page_bytes: plan.page_bytes,
        segment_bytes: segment_bytes(plan.bytes, plan.page_bytes),
        // Memory of a device is where it is.
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

/// Whether so much more can be had, before anything is changed.
fn has_memory(pool: &Pool, directory: &Directory, bytes: u64) -> Result<(), Error> {
    if pool.backend == Backend::Dax {
        return dax::more(pool, directory, bytes).map(drop);
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
    // One node may have less than its part.
    let new = pool.more(bytes);
    for (number, pages) in pool.pages_of(&new) {
        let wanted = pages * pool.page_bytes;
        let available = nodes.iter().find(|node| node.number == number).map_or(0, |node| node.available);
        if wanted > available {
            return Err(Error::Memory { wanted: Bytes(wanted), available: Bytes(available), nodes: vec![number] });
        }
    }
    Ok(())
}

/// What the hugetlb controller allows the broker, or who will start it.
fn hugetlb_room(pool: &Pool, directory: &Directory) -> Option<HugetlbRoom> {
    let broker = match ask(directory, &Ask::Status) {
        Ok(Answer::Status(standing)) => standing.broker_pid,
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
    // SAFETY: two system calls, which are all that may be done between fork and exec.
    unsafe {
        command.pre_exec(|| {
            const CLOSE_RANGE_CLOEXEC: u32 = 4;
            // A session of its own, and no pipe of whoever started us: they would wait for its end. On a kernel without the
            // call (before 5.11) those stay.
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
        let said = fs::read_to_string(&path).unwrap_or_default();
        let said = said.trim();
        return Err(Error::Denied(match said.is_empty() {
            true => format!("the broker does not answer, and has said nothing in {}", path.display()),
            false => said.trim_start_matches("bursar: ").to_string(),
        }));
    }
    Ok(broker)
}

/// A broker populates whether anybody waits for it or not: it is ended when nobody does any more.
fn grow_unless(
    given_up: &(dyn Fn() -> bool + Sync),
    directory: &Directory,
    bytes: u64,
    mut broker: Child,
) -> Result<Grown, Error> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = || {
            while !over.load(Ordering::Acquire) {
                if given_up() {
                    // Where it has ended, that is all that was wanted.
                    let _ = broker.kill();
                }
                thread::park_timeout(GIVEN_UP);
            }
        };
        // Without it the pool grows to its end, wanted or not.
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

/// Who has memory of it, broker and our own process aside.
fn held_by(directory: &Directory, pool: &Pool) -> Vec<Holder> {
    let paths = pool.segments.iter().map(|(number, segment)| directory.segment(*number, segment));
    holders(&paths.filter_map(|path| FileId::of(&path)).collect())
}

fn sentence(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return "a process that is not to be seen from here".into();
    }
    holders.iter().map(|holder| format!("{} ({})", holder.pid, holder.command)).collect::<Vec<_>>().join(", ")
}

fn sum(standing: &Standing, part: Part, wanted: &dyn Fn(Option<u32>) -> bool) -> u64 {
    let of = standing.segments.iter().filter(|one| one.part == part && wanted(one.segment.node));
    of.map(|one| one.segment.bytes).sum()
}

fn needs_root(what: &'static str) -> Result<(), Error> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(Error::NotRoot(what)) }
}

fn wait_for<T>(mut there: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match there() {
            None if Instant::now() < deadline => sleep(Duration::from_millis(5)),
            found => return found,
        }
    }
}
