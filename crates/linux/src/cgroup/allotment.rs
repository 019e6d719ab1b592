//! A limit that is moved while programs run, and put back afterwards.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::Bytes;

use super::limit::UNLIMITED_V1;
use super::{Cgroup, Version};
use crate::journal::{Guard, Journal};
use crate::pages::{Advised, mappings};
use crate::patience::within;
use crate::{Error, file, procfs};

/// How long one step down may take. The kernel of version 1 takes back as much as the step is, while the programs take it again:
/// one that reads faster than its memory is taken back is not outrun by a large step, but by one small one after another.
const STEP_PATIENCE: Duration = Duration::from_millis(5);
const LARGEST_STEP: u64 = 1 << 20;
const SMALLEST_STEP: u64 = 64 << 10;
/// So many steps of a size before a larger one is tried: one that is too large costs its patience for nothing.
const STEPS: u32 = 16;
/// Of version 1: whether processes are killed where no memory is found.
const KILLER: &str = "memory.oom_control";
/// Between moves of all memory to the inactive list, and so many times as long as one takes. See [`Inactive`].
const INACTIVE_PERIOD: Duration = Duration::from_millis(200);
const INACTIVE_SHARE: u32 = 10;
/// This part of what cannot be reclaimed is given beside it where a program is held up.
const RELIEF: u64 = 8;
/// For a limit to be put back that is below what is used.
const LAST_PATIENCE: Duration = Duration::from_secs(30);

/// The memory that a cgroup is allotted: on v1 its limit; on v2 its high mark, which slows and never kills.
#[derive(Debug)]
pub struct Allotment {
    cgroup: Cgroup,
    path: PathBuf,
    /// What is in force; `None`: no limit.
    now: Option<u64>,
    step: u64,
    /// Switched off on v1, where it strikes while a limit is lowered, swap free or not: reclaim finds nothing for some hundred microseconds
    /// (Linux 6.18). Who finds no memory waits instead, until [`Allotment::wake`] or the end.
    killer: Option<Guard>,
    guard: Guard,
}

impl Allotment {
    /// What was there before is put back when this is dropped, or by the next bursar if this one is killed.
    ///
    /// # Errors
    /// [`Error::Write`] if it may not be written; [`Error::InUse`] if another bursar moves it.
    pub fn of(cgroup: Cgroup, journal: &Journal) -> Result<Allotment, Error> {
        let name = match cgroup.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.high",
        };
        let path = cgroup.dir.join(name);
        // What is undone last is written down first.
        let killer = journal.killer(&cgroup.dir.join(KILLER))?;
        let guard = journal.limit(&path)?;
        let now = file::number(&path).filter(|limit| *limit < UNLIMITED_V1);
        Ok(Allotment { cgroup, path, now, step: LARGEST_STEP, killer, guard })
    }

    /// What is in force; `None`: no limit.
    pub fn now(&self) -> Option<u64> {
        self.now
    }

    /// Sets it; lower than what is used only as far as that follows within the time. Returns what was reached.
    ///
    /// # Errors
    /// [`Error::Write`] if it is refused.
    pub fn set(&mut self, bytes: u64, patience: Duration) -> Result<u64, Error> {
        let bytes = bytes / procfs::page_bytes() * procfs::page_bytes();
        let due = Instant::now() + patience;
        self.wake()?;
        let set = |now| self.now = Some(now);
        if lower(&self.cgroup, &self.path, bytes, due, &mut self.step, set)? {
            // A high mark is written though its memory does not follow: writing it again takes back more.
            while self.cgroup.usage()? > bytes && Instant::now() < due {
                within(STEP_PATIENCE, || file::write_or_give_up(&self.path, &bytes.to_string()))?;
            }
        }
        let usage = self.cgroup.usage()?;
        Ok(self.now.map_or(usage, |now| now.max(usage)))
    }

    /// Keeps what was given back from being used again, down to so much. Returns whether more than that is used.
    ///
    /// # Errors
    /// If it cannot be told what is used.
    pub fn pin(&mut self, bytes: u64) -> Result<bool, Error> {
        let usage = self.cgroup.usage()?;
        let to = usage.max(bytes);
        let write = || file::write_or_give_up(&self.path, &to.to_string());
        // It is refused where more is used by then.
        if self.now.is_none_or(|now| to < now) && within(STEP_PATIENCE, write).is_ok() {
            self.now = Some(to);
        }
        Ok(usage > bytes)
    }

    /// What somebody else has set since it was set last, as `systemctl daemon-reload` and `set-property` do, in words; `None`: nobody has.
    /// It is what is put back at the end; until then it is set again.
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

    /// What is there, if it is not what was set last. From now on that is what is put back.
    fn found_by_others(&mut self) -> Result<Option<String>, Error> {
        let found = file::read(&self.path)?.trim().to_string();
        if number_in(&found) == self.now {
            return Ok(None);
        }
        self.guard.set_by_others(&found)?;
        Ok(Some(found))
    }

    /// Raises it at once where so much cannot be reclaimed and its programs are held up for it; whether it did. A high mark below what
    /// cannot be reclaimed slows a program down for as long as it stays, and a limit of version 1 stops it.
    ///
    /// # Errors
    /// [`Error::Write`] if it is refused.
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
        // What grows goes on growing until this is called again.
        let to = (floor + floor / RELIEF) / procfs::page_bytes() * procfs::page_bytes();
        file::write(&self.path, &to.to_string())?;
        self.now = Some(to);
        Ok(true)
    }

    fn is_under_oom(&self) -> bool {
        file::read(&self.cgroup.dir.join(KILLER)).is_ok_and(|state| state.contains("under_oom 1"))
    }

    /// Puts back what was there before, or what somebody else has set since.
    ///
    /// # Errors
    /// [`Error::Write`]; it then stays in the journal for `bursar doctor --repair`.
    pub fn release(mut self) -> Result<(), Error> {
        // A cgroup that is gone has nothing to read.
        let _ = self.found_by_others();
        self.guard.restore()?;
        self.killer.map_or(Ok(()), Guard::restore)
    }

    /// Lets those try again that have found no memory and wait, which is only where the killer is off on v1. They wait on though there is something
    /// to reclaim by then, or swap: so this is to be called many times in a second.
    ///
    /// # Errors
    /// [`Error::Write`] if it is refused.
    pub fn wake(&mut self) -> Result<(), Error> {
        let path = self.cgroup.dir.join(KILLER);
        if self.cgroup.version != Version::V1 || !self.is_under_oom() {
            return Ok(());
        }
        if self.killer.is_some() {
            // They would take longer to find none again than it stays on.
            file::write(&path, "0")?;
            return file::write(&path, "1");
        }
        // Who has switched it off wants nobody killed. A limit that grows wakes them, too.
        let Some(now) = self.now else { return Ok(()) };
        let more = now + LARGEST_STEP;
        file::write_or_give_up(&self.path, &more.to_string())?;
        let is_as_before = within(STEP_PATIENCE, || file::write_or_give_up(&self.path, &now.to_string())).is_ok();
        // If nothing is given back so soon, it is with the next limit that is set.
        self.now = Some(if is_as_before { now } else { more });
        Ok(())
    }
}

/// Of a limit as it is read; `None`: there is none.
fn number_in(text: &str) -> Option<u64> {
    text.parse().ok().filter(|limit| *limit < UNLIMITED_V1)
}

/// Writes a limit back as it was read. What is used beyond a high mark follows later.
pub(crate) fn put_back(path: &Path, before: &str) -> Result<(), Error> {
    let cgroup = path.parent().and_then(|dir| Cgroup::at(dir).ok());
    if let (Some(cgroup), Ok(bytes)) = (cgroup, before.parse()) {
        if cgroup.usage()? > bytes {
            lower(&cgroup, path, bytes, Instant::now() + LAST_PATIENCE, &mut LARGEST_STEP.clone(), |_| {})?;
        }
    }
    within(STEP_PATIENCE, || file::write_or_give_up(path, before))
}

/// Step by step, as far as what is used follows; each that was made is told. Whether all were.
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

/// Keeps private memory inactive while a limit of version 1 is lowered. Who uses all its pages all the time has them all on the active list
/// soon when the others are taken back, and reclaim hardly finds any.
#[derive(Default)]
struct Inactive {
    /// When it was made so last, and how long that took.
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

    /// Once more, for what comes after: if anything was lowered.
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
            // What cannot be moved stays where it is.
            let _ = process.deactivate(mapping.range.start, mapping.range.end - mapping.range.start);
        }
    }
}
