//! By what a target's memory is held: the limit of its cgroup, paging out, or a balloon.

use std::time::{Duration, Instant};

use linux::Error;
use linux::cgroup::{Allotment, Cgroup};
use linux::journal::Journal;
use linux::procfs;
use qemu::Machine;

use crate::reclaim::{Tracked, page_out};

/// What a process has without being asked for it.
const MARGIN: u64 = 16 << 20;

/// The means.
#[derive(Debug)]
pub enum Hold {
    /// A limit; none if nothing is to be done.
    Cgroup { cgroup: Cgroup, allotment: Option<Box<Allotment>> },
    /// A process with all beneath it, in a cgroup that is not its own: moving it to another would move no charge.
    Process { pid: i32, start: u64, size: Option<u64>, acts: bool },
    /// The balloon of a virtual machine.
    Machine(Box<Machine>),
}

impl Hold {
    /// Of a cgroup. Without a journal nothing will be done.
    ///
    /// # Errors
    /// If its limit cannot be moved.
    pub fn cgroup(cgroup: Cgroup, journal: Option<&Journal>) -> Result<Hold, Error> {
        let allotment = journal.map(|journal| Allotment::of(cgroup.clone(), journal).map(Box::new)).transpose()?;
        Ok(Hold::Cgroup { cgroup, allotment })
    }

    /// Of a process: its cgroup's, if nobody else is in that.
    ///
    /// # Errors
    /// [`Error::Gone`]; if the limit cannot be moved.
    pub fn process(pid: i32, journal: Option<&Journal>) -> Result<Hold, Error> {
        let start = procfs::stat(pid)?.starttime;
        let own = Cgroup::of(pid)?.filter(|cgroup| !cgroup.is_root());
        let tree = tree(pid);
        match own.filter(|own| own.processes().is_ok_and(|all| all.iter().all(|one| tree.contains(one)))) {
            Some(own) => Hold::cgroup(own, journal),
            None => Ok(Hold::Process { pid, start, size: None, acts: journal.is_some() }),
        }
    }

    /// What was set last.
    pub fn limit(&self) -> Option<u64> {
        match self {
            Hold::Cgroup { allotment: Some(allotment), .. } => allotment.now(),
            Hold::Cgroup { cgroup, .. } => {
                let own = cgroup.limits().into_iter().find(|(dir, _)| dir == cgroup.dir());
                own.map(|(_, bytes)| bytes)
            }
            Hold::Process { size, .. } => *size,
            Hold::Machine(machine) => Some(machine.size),
        }
    }

    /// How it came to its end, if it is there no more.
    pub fn end(&self) -> Option<String> {
        let is_gone = match self {
            Hold::Cgroup { cgroup, .. } => !cgroup.dir().exists(),
            Hold::Process { pid, start, .. } => !procfs::stat(*pid).is_ok_and(|stat| stat.starttime == *start),
            Hold::Machine(machine) => return machine.end(),
        };
        is_gone.then(|| "has ended; its memory is for the others".into())
    }

    /// Whether nothing runs in it, though something may.
    pub fn is_empty(&self) -> bool {
        matches!(self, Hold::Cgroup { cgroup, .. } if cgroup.is_empty())
    }

    /// Most that it can have.
    pub fn most(&self) -> u64 {
        match self {
            Hold::Machine(machine) => machine.full,
            _ => u64::MAX,
        }
    }

    /// What it has now.
    pub fn usage(&self) -> u64 {
        match self {
            Hold::Cgroup { cgroup, .. } => cgroup.usage().unwrap_or(0),
            Hold::Process { pid, .. } => resident(*pid),
            Hold::Machine(machine) => machine.size,
        }
    }

    /// What cannot be reclaimed while so much swap is free, and a margin.
    pub fn floor(&self, swap: u64) -> u64 {
        let cgroup = match self {
            Hold::Cgroup { cgroup, .. } => cgroup,
            Hold::Process { .. } => return MARGIN,
            Hold::Machine(machine) => return machine.floor(),
        };
        floor_of(cgroup, swap)
    }

    /// See [`Allotment::wake`] and [`Allotment::relieve`]; whether its limit was raised.
    pub fn wake(&mut self, swap: u64) -> bool {
        let Hold::Cgroup { cgroup, allotment: Some(allotment) } = self else { return false };
        // What cannot be written is told when its limit is set.
        let is_raised = allotment.relieve(|| floor_of(cgroup, swap)).unwrap_or(false);
        let _ = allotment.wake();
        is_raised
    }

    /// See [`Allotment::set_by_others`].
    pub fn set_by_others(&mut self, patience: Duration) -> Option<String> {
        match self {
            Hold::Cgroup { allotment: Some(allotment), .. } => allotment.set_by_others(patience).ok().flatten(),
            _ => None,
        }
    }

    /// Puts back what was there before.
    ///
    /// # Errors
    /// Why it could not be.
    pub fn release(self) -> anyhow::Result<()> {
        match self {
            Hold::Cgroup { allotment: Some(allotment), .. } => Ok(allotment.release()?),
            Hold::Machine(machine) => machine.release(),
            _ => Ok(()),
        }
    }

    /// Sets it, as far as that is done within the time; what was reached.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn set(&mut self, bytes: u64, patience: Duration, tracked: Option<Tracked<'_>>) -> anyhow::Result<u64> {
        match self {
            Hold::Cgroup { allotment: Some(allotment), .. } => Ok(shrink(allotment, bytes, patience, tracked)?),
            Hold::Process { pid, size, acts: true, .. } => {
                let left = page_out_tree(*pid, bytes, patience, tracked)?;
                *size = Some(bytes.max(left));
                Ok(bytes.max(left))
            }
            Hold::Machine(machine) => machine.set(bytes, patience),
            _ => Ok(bytes),
        }
    }
}

/// What cannot be reclaimed of a cgroup while so much swap is free, and a margin.
fn floor_of(cgroup: &Cgroup, swap: u64) -> u64 {
    let Ok(memory) = cgroup.memory() else { return 0 };
    let swap = cgroup.swap_room().map_or(swap, |room| room.min(swap));
    let swappable = memory.anon.unwrap_or(0) + memory.shmem.unwrap_or(0);
    let locked = memory.unevictable.unwrap_or(0);
    let stays = swappable.saturating_sub(swap).max(locked) + memory.kernel.unwrap_or(0);
    stays + MARGIN
}

/// By the kernel, which is quick to take back what is unused of files; if that does not do, what is coldest is paged out, and cannot come back
/// beyond what is left then.
fn shrink(
    allotment: &mut Allotment,
    bytes: u64,
    patience: Duration,
    tracked: Option<Tracked<'_>>,
) -> Result<u64, Error> {
    let due = Instant::now() + patience;
    let reached = allotment.set(bytes, patience / 4)?;
    let Some(tracked) = tracked.filter(|_| reached > bytes) else { return Ok(reached) };
    // What is refused is the kernel's again.
    let _ = tracked.shrink(bytes, || !allotment.pin(bytes).unwrap_or(false) || Instant::now() >= due);
    allotment.set(bytes, due.saturating_duration_since(Instant::now()))
}

/// Pages out what was not accessed for longest, until so much is left. What is left.
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

/// A process with all beneath it.
pub fn tree(pid: i32) -> Vec<i32> {
    std::iter::once(pid).chain(procfs::descendants(pid)).collect()
}

fn resident(pid: i32) -> u64 {
    let stats = tree(pid).into_iter().filter_map(|pid| procfs::stat(pid).ok());
    stats.map(|stat| stat.rss_pages).sum::<u64>() * procfs::page_bytes()
}
