//! A memory limit that bursar changes while programs run, and restores afterwards.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::Bytes;

use super::limit::UNLIMITED_V1;
use super::{Cgroup, Version};
use crate::journal::{Guard, Journal};
use crate::pages::{Advised, mappings};
use crate::patience::within;
use crate::{Error, file, procfs};

/// Time limit for one step down. v1 reclaims as much as the step is, while programs allocate it again: if a program reads faster than
/// reclaim, small steps in quick succession succeed where a large one does not.
const STEP_PATIENCE: Duration = Duration::from_millis(5);
const LARGEST_STEP: u64 = 1 << 20;
const SMALLEST_STEP: u64 = 64 << 10;
/// Number of steps of one size before a larger one is tried: a step that is too large wastes its time limit.
const STEPS: u32 = 16;
/// v1: whether the OOM killer is disabled.
const KILLER: &str = "memory.oom_control";
/// Time between moves of all memory to the inactive list, as a multiple of the duration of a move. See [`Inactive`].
const INACTIVE_PERIOD: Duration = Duration::from_millis(200);
const INACTIVE_SHARE: u32 = 10;
/// Extra memory above the unreclaimable part for a throttled program, as a divisor of that part.
const RELIEF: u64 = 8;
/// Time limit for restoring a limit below the usage.
const LAST_PATIENCE: Duration = Duration::from_secs(30);

/// The memory allotted to a cgroup: on v1 its limit; on v2 `memory.high`, which throttles and never kills.
#[derive(Debug)]
pub struct Allotment {
    cgroup: Cgroup,
    path: PathBuf,
    /// The current value; `None`: no limit.
    now: Option<u64>,
    step: u64,
    /// The OOM killer, disabled on v1, where it strikes while a limit is lowered, even with free swap: for some hundred microseconds
    /// reclaim finds nothing (Linux 6.18). A process that finds no memory waits instead, until [`Allotment::wake`] or the end.
    killer: Option<Guard>,
    guard: Guard,
}

impl Allotment {
    /// The previous value is restored when this is dropped, or by the next bursar if this one is killed.
    ///
    /// # Errors
    /// [`Error::Write`] if it is not writable; [`Error::InUse`] if another bursar controls it.
    pub fn of(cgroup: Cgroup, journal: &Journal) -> Result<Allotment, Error> {
        let name = match cgroup.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.high",
        };
        let path = cgroup.dir.join(name);
        // Entries that are undone last are written first.
        let killer = journal.killer(&cgroup.dir.join(KILLER))?;
        let guard = journal.limit(&path)?;
        let now = file::number(&path).filter(|limit| *limit < UNLIMITED_V1);
        Ok(Allotment { cgroup, path, now, step: LARGEST_STEP, killer, guard })
    }

    /// The current value; `None`: no limit.
    pub fn now(&self) -> Option<u64> {
        self.now
    }

    /// Sets it; below the usage only as far as reclaim succeeds in time. Returns the value reached.
    ///
    /// # Errors
    /// [`Error::Write`] if the kernel refuses.
    pub fn set(&mut self, bytes: u64, patience: Duration) -> Result<u64, Error> {
        let bytes = bytes / procfs::page_bytes() * procfs::page_bytes();
        let due = Instant::now() + patience;
        self.wake()?;
        let set = |now| self.now = Some(now);
        if lower(&self.cgroup, &self.path, bytes, due, &mut self.step, set)? {
            // memory.high is written even if reclaim does not follow: writing it again reclaims more.
            while self.cgroup.usage()? > bytes && Instant::now() < due {
                within(STEP_PATIENCE, || file::write_or_give_up(&self.path, &bytes.to_string()))?;
            }
        }
        let usage = self.cgroup.usage()?;
        Ok(self.now.map_or(usage, |now| now.max(usage)))
    }

    /// Lowers the limit to keep reclaimed memory from being used again, down to this value. Returns whether the usage exceeds it.
    ///
    /// # Errors
    /// If the usage is unknown.
    pub fn pin(&mut self, bytes: u64) -> Result<bool, Error> {
        let usage = self.cgroup.usage()?;
        let to = usage.max(bytes);
        let write = || file::write_or_give_up(&self.path, &to.to_string());
        // Refused if the usage has grown meanwhile.
        if self.now.is_none_or(|now| to < now) && within(STEP_PATIENCE, write).is_ok() {
            self.now = Some(to);
        }
        Ok(usage > bytes)
    }

    /// A value that another program has set since the last one, for example `systemctl daemon-reload` or `set-property`, in words; `None`:
    /// there is none. It becomes the value to restore at the end; until then bursar sets its own again.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be set again.
    pub fn set_by_others(&mut self, patience: Duration) -> Result<Option<String>, Error> {
        let Some(found) = self.found_by_others()? else { return Ok(None) };
        let wanted = self.now;
        self.now = number_in(&found);
        if let Some(bytes) = wanted {
            self.set(bytes, patience)?;
        }
        let found = number_in(&found).map_or_else(|| "no limit".into(), |bytes| Bytes(bytes).to_string());
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Some(format!("somebody else set {name} to {found}")))
    }

    /// The current value, if it differs from the last one set. It becomes the value to restore.
    fn found_by_others(&mut self) -> Result<Option<String>, Error> {
        let found = file::read(&self.path)?.trim().to_string();
        if number_in(&found) == self.now {
            return Ok(None);
        }
        self.guard.set_by_others(&found)?;
        Ok(Some(found))
    }

    /// Raises the limit at once if the unreclaimable memory exceeds it and programs are throttled; returns whether it did. A `memory.high`
    /// below the unreclaimable memory throttles a program for as long as it stays, and a v1 limit stops it.
    ///
    /// # Errors
    /// [`Error::Write`] if the kernel refuses.
    pub fn relieve(&mut self, floor: impl FnOnce() -> u64) -> Result<bool, Error> {
        let Some(now) = self.now else { return Ok(false) };
        let is_held_up = match self.cgroup.version {
            Version::V1 => self.is_under_oom(),
            Version::V2 => self.cgroup.usage()? > now,
        };
        let floor = if is_held_up { floor() } else { 0 };
        if floor <= now {
            return Ok(false);
        }
        // Growing memory continues to grow until the next call.
        let to = (floor + floor / RELIEF) / procfs::page_bytes() * procfs::page_bytes();
        file::write(&self.path, &to.to_string())?;
        self.now = Some(to);
        Ok(true)
    }

    fn is_under_oom(&self) -> bool {
        file::read(&self.cgroup.dir.join(KILLER)).is_ok_and(|state| state.contains("under_oom 1"))
    }

    /// Restores the previous value, or the one that another program has set since.
    ///
    /// # Errors
    /// [`Error::Write`]; the entry then stays in the journal for `bursar doctor --repair`.
    pub fn release(mut self) -> Result<(), Error> {
        // A removed cgroup has no files to read.
        let _ = self.found_by_others();
        self.guard.restore()?;
        self.killer.map_or(Ok(()), Guard::restore)
    }

    /// Wakes processes that wait because they found no memory, which happens only with the OOM killer disabled on v1. They do not notice
    /// that memory or swap is available by then, so call this many times per second.
    ///
    /// # Errors
    /// [`Error::Write`] if the kernel refuses.
    pub fn wake(&mut self) -> Result<(), Error> {
        let path = self.cgroup.dir.join(KILLER);
        if self.cgroup.version != Version::V1 || !self.is_under_oom() {
            return Ok(());
        }
        if self.killer.is_some() {
            // The killer is enabled too briefly for them to fail again.
            file::write(&path, "0")?;
            return file::write(&path, "1");
        }
        // If the user has disabled it, nothing may be killed. Raising the limit also wakes them.
        let Some(now) = self.now else { return Ok(()) };
        let more = now + LARGEST_STEP;
        file::write_or_give_up(&self.path, &more.to_string())?;
        let is_as_before = within(STEP_PATIENCE, || file::write_or_give_up(&self.path, &now.to_string())).is_ok();
        // If memory is not freed that soon, the next change of the limit wakes them.
        self.now = Some(if is_as_before { now } else { more });
        Ok(())
    }
}

/// Parses a limit; `None`: no limit.
fn number_in(text: &str) -> Option<u64> {
    text.parse().ok().filter(|limit| *limit < UNLIMITED_V1)
}

/// Restores a limit as it was read. Usage above `memory.high` follows later.
pub(crate) fn put_back(path: &Path, before: &str) -> Result<(), Error> {
    let cgroup = path.parent().and_then(|dir| Cgroup::at(dir).ok());
    if let (Some(cgroup), Ok(bytes)) = (cgroup, before.parse()) {
        if cgroup.usage()? > bytes {
            lower(&cgroup, path, bytes, Instant::now() + LAST_PATIENCE, &mut LARGEST_STEP.clone(), |_| {})?;
        }
    }
    within(STEP_PATIENCE, || file::write_or_give_up(path, before))
}

/// Lowers the limit step by step, as far as the usage follows; reports each step. Returns whether all steps succeeded.
fn lower(
    cgroup: &Cgroup,
    path: &Path,
    bytes: u64,
    due: Instant,
    step: &mut u64,
    mut set: impl FnMut(u64),
) -> Result<bool, Error> {
    let mut made = 0;
    let mut inactive = Inactive::default();
    loop {
        let usage = cgroup.usage()?;
        let to = usage.saturating_sub(*step).max(bytes);
        if usage > bytes {
            inactive.keep(cgroup);
        }
        match within(STEP_PATIENCE, || file::write_or_give_up(path, &to.to_string())) {
            Ok(()) => {
                set(to);
                if to == bytes {
                    inactive.end(cgroup);
                    return Ok(true);
                }
                made += 1;
                if made % STEPS == 0 {
                    *step = (*step * 2).min(LARGEST_STEP);
                }
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {
                (*step, made) = ((*step / 2).max(SMALLEST_STEP), 0);
            }
            Err(error) => return Err(error),
        }
        if Instant::now() >= due {
            inactive.end(cgroup);
            return Ok(false);
        }
    }
}

/// Keeps private memory inactive while a v1 limit is lowered. A program that uses all its pages constantly soon has all of them on the
/// active list, where reclaim finds hardly any.
#[derive(Default)]
struct Inactive {
    /// When memory was last deactivated, and how long that took.
    last: Option<(Instant, Duration)>,
}

impl Inactive {
    fn keep(&mut self, cgroup: &Cgroup) {
        let is_due = |(at, took): (Instant, Duration)| at.elapsed() >= INACTIVE_PERIOD.max(took * INACTIVE_SHARE);
        if cgroup.version == Version::V1 && self.last.is_none_or(is_due) {
            let began = Instant::now();
            deactivate(cgroup);
            self.last = Some((Instant::now(), began.elapsed()));
        }
    }

    /// Deactivates once more for later reclaim, if anything was lowered.
    fn end(&self, cgroup: &Cgroup) {
        if self.last.is_some() {
            deactivate(cgroup);
        }
    }
}

fn deactivate(cgroup: &Cgroup) {
    for pid in cgroup.processes().unwrap_or_default() {
        let process = procfs::stat(pid).and_then(|stat| Advised::of(pid, stat.starttime));
        let (Ok(process), Ok(mappings)) = (process, mappings(pid)) else { continue };
        for mapping in mappings.iter().filter(|mapping| !mapping.shared) {
            // Pages that cannot be moved stay.
            let _ = process.deactivate(mapping.range.start, mapping.range.end - mapping.range.start);
        }
    }
}
