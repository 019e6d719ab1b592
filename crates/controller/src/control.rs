//! How a target's memory is controlled: by the limit of its cgroup, by paging out, or by a balloon.

use std::time::{Duration, Instant};

use linux::Error;
use linux::cgroup::{Allotment, Cgroup};
use linux::journal::Journal;
use linux::procfs;
use qemu::Machine;

use crate::reclaim::{Tracked, page_out};

/// Memory that a process needs at least, besides what cannot be reclaimed.
const MARGIN_BYTES: u64 = 16 << 20;

/// A means to control a target's memory.
#[derive(Debug)]
pub enum Controller {
    /// The limit of a cgroup; no `allotment` in a dry run.
    Cgroup { cgroup: Cgroup, allotment: Option<Box<Allotment>> },
    /// A process with its descendants, in a cgroup that it shares with others. Moving it to another cgroup would move
    /// no charge.
    Process { pid: i32, start: u64, size: Option<u64>, acts: bool },
    /// The balloon of a virtual machine.
    Machine(Box<Machine>),
}

impl Controller {
    /// Controls a cgroup. Without a journal nothing will be changed.
    ///
    /// # Errors
    /// The limit cannot be changed.
    pub fn cgroup(cgroup: Cgroup, journal: Option<&Journal>) -> Result<Controller, Error> {
        let allotment = journal.map(|journal| Allotment::of(cgroup.clone(), journal).map(Box::new)).transpose()?;
        Ok(Controller::Cgroup { cgroup, allotment })
    }

    /// Controls a process: through its cgroup, if nobody else is in that.
    ///
    /// # Errors
    /// [`Error::Gone`]; the limit cannot be changed.
    pub fn process(pid: i32, journal: Option<&Journal>) -> Result<Controller, Error> {
        let start = procfs::stat(pid)?.starttime;
        let own = Cgroup::of(pid)?.filter(|cgroup| !cgroup.is_root());
        let tree = tree(pid);
        match own.filter(|own| own.processes().is_ok_and(|all| all.iter().all(|one| tree.contains(one)))) {
            Some(own) => Controller::cgroup(own, journal),
            None => Ok(Controller::Process { pid, start, size: None, acts: journal.is_some() }),
        }
    }

    /// The limit set last.
    pub fn limit(&self) -> Option<u64> {
        match self {
            Controller::Cgroup { allotment: Some(allotment), .. } => allotment.now(),
            Controller::Cgroup { cgroup, .. } => {
                let own = cgroup.limits().into_iter().find(|(dir, _)| dir == cgroup.dir());
                own.map(|(_, bytes)| bytes)
            }
            Controller::Process { size, .. } => *size,
            Controller::Machine(machine) => Some(machine.size),
        }
    }

    /// Why the target has ended; `None` if it exists.
    pub fn end(&self) -> Option<String> {
        let is_gone = match self {
            Controller::Cgroup { cgroup, .. } => !cgroup.dir().exists(),
            Controller::Process { pid, start, .. } => !procfs::stat(*pid).is_ok_and(|stat| stat.starttime == *start),
            Controller::Machine(machine) => return machine.end(),
        };
        is_gone.then(|| "has ended; its memory is for the others".into())
    }

    /// Whether it has no process at present, though it may get some.
    pub fn is_empty(&self) -> bool {
        matches!(self, Controller::Cgroup { cgroup, .. } if cgroup.is_empty())
    }

    /// The most memory that it can have.
    pub fn max_bytes(&self) -> u64 {
        match self {
            Controller::Machine(machine) => machine.full,
            _ => u64::MAX,
        }
    }

    /// Memory in use now.
    pub fn usage(&self) -> u64 {
        match self {
            Controller::Cgroup { cgroup, .. } => cgroup.usage().unwrap_or(0),
            Controller::Process { pid, .. } => resident(*pid),
            Controller::Machine(machine) => machine.size,
        }
    }

    /// Memory that cannot be reclaimed while `swap` bytes of swap are free, plus a margin.
    pub fn floor(&self, swap: u64) -> u64 {
        let cgroup = match self {
            Controller::Cgroup { cgroup, .. } => cgroup,
            Controller::Process { .. } => return MARGIN_BYTES,
            Controller::Machine(machine) => return machine.floor(),
        };
        floor_of(cgroup, swap)
    }

    /// See [`Allotment::wake`] and [`Allotment::relieve`]. Returns whether its limit was raised.
    pub fn wake(&mut self, swap: u64) -> bool {
        let Controller::Cgroup { cgroup, allotment: Some(allotment) } = self else { return false };
        // Write errors are reported when the limit is set.
        let is_raised = allotment.relieve(|| floor_of(cgroup, swap)).unwrap_or(false);
        let _ = allotment.wake();
        is_raised
    }

    /// See [`Allotment::set_by_others`].
    pub fn set_by_others(&mut self, patience: Duration) -> Option<String> {
        match self {
            Controller::Cgroup { allotment: Some(allotment), .. } => allotment.set_by_others(patience).ok().flatten(),
            _ => None,
        }
    }

    /// Restores the limit from before bursar.
    ///
    /// # Errors
    /// Why it could not be restored.
    pub fn release(self) -> anyhow::Result<()> {
        match self {
            Controller::Cgroup { allotment: Some(allotment), .. } => Ok(allotment.release()?),
            Controller::Machine(machine) => machine.release(),
            _ => Ok(()),
        }
    }

    /// Sets the limit, as far as possible within `patience`. Returns the limit reached.
    ///
    /// # Errors
    /// Why it could not be set.
    pub fn set(&mut self, bytes: u64, patience: Duration, tracked: Option<Tracked<'_>>) -> anyhow::Result<u64> {
        match self {
            Controller::Cgroup { allotment: Some(allotment), .. } => Ok(shrink(allotment, bytes, patience, tracked)?),
            Controller::Process { pid, size, acts: true, .. } => {
                let left = page_out_tree(*pid, bytes, patience, tracked)?;
                *size = Some(bytes.max(left));
                Ok(bytes.max(left))
            }
            Controller::Machine(machine) => machine.set(bytes, patience),
            _ => Ok(bytes),
        }
    }
}

/// Memory of a cgroup that cannot be reclaimed while `swap` bytes of swap are free, plus a margin.
fn floor_of(cgroup: &Cgroup, swap: u64) -> u64 {
    let Ok(memory) = cgroup.memory() else { return 0 };
    let swap = cgroup.swap_room().map_or(swap, |room| room.min(swap));
    let swappable = memory.anon.unwrap_or(0) + memory.shmem.unwrap_or(0);
    let locked = memory.unevictable.unwrap_or(0);
    let stays = swappable.saturating_sub(swap).max(locked) + memory.kernel.unwrap_or(0);
    stays + MARGIN_BYTES
}

/// Lets the kernel reclaim, which is quick with unused file pages. If that is not enough, pages out the coldest memory
/// and pins the limit, so that it cannot come back.
fn shrink(
    allotment: &mut Allotment,
    bytes: u64,
    patience: Duration,
    tracked: Option<Tracked<'_>>,
) -> Result<u64, Error> {
    let due = Instant::now() + patience;
    let reached = allotment.set(bytes, patience / 4)?;
    let Some(tracked) = tracked.filter(|_| reached > bytes) else { return Ok(reached) };
    // After a refusal, reclaim is left to the kernel again.
    let _ = tracked.shrink(bytes, || !allotment.pin(bytes).unwrap_or(false) || Instant::now() >= due);
    allotment.set(bytes, due.saturating_duration_since(Instant::now()))
}

/// Pages out the memory not accessed for longest until `most` bytes are left. Returns what is left.
fn page_out_tree(pid: i32, most: u64, patience: Duration, tracked: Option<Tracked<'_>>) -> anyhow::Result<u64> {
    let due = Instant::now() + patience;
    let is_enough = || resident(pid) <= most || Instant::now() >= due;
    let refused = match tracked.filter(|_| !is_enough()) {
        Some(tracked) => tracked.shrink(most, is_enough).and(page_out(&tracked.idle(0.0), is_enough)),
        None => Ok(()),
    };
    let left = resident(pid);
    match refused {
        Err(why) if left > most => anyhow::bail!("{}", why.why()),
        _ => Ok(left),
    }
}

/// A process and its descendants.
pub fn tree(pid: i32) -> Vec<i32> {
    std::iter::once(pid).chain(procfs::descendants(pid)).collect()
}

fn resident(pid: i32) -> u64 {
    let stats = tree(pid).into_iter().filter_map(|pid| procfs::stat(pid).ok());
    stats.map(|stat| stat.rss_pages).sum::<u64>() * procfs::page_bytes()
}
