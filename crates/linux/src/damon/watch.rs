//! Pages of processes monitored by DAMON, including accesses through the page tables by which KVM runs a guest, which do not set the
//! Accessed bits of the guest's process (mm/damon/vaddr.c asks the MMU notifiers).
//!
//! Each page is a region of its own. DAMON merges only adjacent regions and does not split one of a single page, so its sampling heuristics
//! do not apply: it checks each page, and clears its bit, once per [`INTERVAL`]. It reports the results by its tracepoint. A machine has
//! one such thread of bursar's for all processes, because changing the number of kdamonds recreates the folders in sysfs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::file;
use crate::journal::{Guard, Journal};

/// Time between scans. A scan takes some microseconds per page, mostly in KVM.
pub const INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of processes watched at once.
const MOST_TARGETS: u64 = 64;
/// DAMON accepts no smaller limit on the number of regions.
const FEWEST_REGIONS: usize = 3;
/// The update interval, without effect because regions are fixed: its value marks the thread as bursar's.
const MARK: u64 = 0x0b52_5a72_0000_0000;

/// Why DAMON cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not in this kernel.
    #[error(
        "this kernel's DAMON does not monitor chosen pages of processes (CONFIG_DAMON_VADDR and CONFIG_DAMON_SYSFS, Linux 5.19)"
    )]
    NotThere,
    /// In use by another program.
    #[error("DAMON works for somebody else ({0} is not 0)", PathBuf::from(FOLDER).join("nr_kdamonds").display())]
    InUse,
    /// No free number.
    #[error("DAMON is asked for {MOST_TARGETS} processes already")]
    TooMany,
    /// The kernel refused.
    #[error(transparent)]
    Linux(#[from] crate::Error),
}

const FOLDER: &str = "/sys/kernel/mm/damon/admin/kdamonds";

static THREAD: Mutex<Option<Thread>> = Mutex::new(None);

/// A process whose pages are monitored until this is dropped.
#[derive(Debug)]
pub struct Watch {
    pid: i32,
}

/// The kdamond thread.
#[derive(Debug)]
struct Thread {
    /// The targets by number.
    targets: Vec<Target>,
    /// Its PID; 0: it does not run.
    pid: i32,
    _guard: Guard,
}

#[derive(Debug)]
struct Target {
    pid: i32,
    pages: Vec<u64>,
}

/// Whether DAMON can be used: takes it and releases it.
///
/// # Errors
/// Why it cannot be used.
pub fn available() -> Result<(), Error> {
    match &*lock() {
        Some(_) => Ok(()),
        None => Thread::take().map(drop),
    }
}

impl Watch {
    /// Watches a process, without pages at first.
    ///
    /// # Errors
    /// Why DAMON cannot be used.
    pub fn of(pid: i32) -> Result<Watch, Error> {
        let mut thread = lock();
        if thread.is_none() {
            *thread = Some(Thread::take()?);
        }
        let targets = &mut thread.as_mut().ok_or(Error::NotThere)?.targets;
        if targets.len() as u64 >= MOST_TARGETS {
            return Err(Error::TooMany);
        }
        targets.push(Target { pid, pages: Vec::new() });
        Ok(Watch { pid })
    }

    /// Sets the monitored pages, in rising order. Takes two writes per page, and up to an [`INTERVAL`].
    ///
    /// # Errors
    /// [`Error::Linux`]: a process has ended, or the kernel refused.
    pub fn look_at(&self, pages: &[u64]) -> Result<(), Error> {
        let mut thread = lock();
        let Some(thread) = thread.as_mut() else { return Ok(()) };
        for target in thread.targets.iter_mut().filter(|target| target.pid == self.pid) {
            target.pages = pages.to_vec();
        }
        thread.apply()
    }

    /// The PID of the kdamond, and the number of this process in it.
    pub fn number(&self) -> Option<(i32, u64)> {
        let thread = lock();
        let thread = thread.as_ref().filter(|thread| thread.pid != 0)?;
        let at = thread.watched().position(|target| target.pid == self.pid)?;
        Some((thread.pid, at as u64))
    }

    /// This process's share of the CPU time that the thread has used since its start.
    pub fn cpu(&self) -> Duration {
        let thread = lock();
        let Some(thread) = thread.as_ref().filter(|thread| thread.pid != 0) else { return Duration::ZERO };
        let spent = file::read_if_present(&PathBuf::from(format!("/proc/{}/schedstat", thread.pid)));
        let spent = spent.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        Duration::from_nanos(spent) / (thread.watched().count() as u32).max(1)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut thread = lock();
        let Some(left) = thread.as_mut() else { return };
        if let Some(at) = left.targets.iter().position(|target| target.pid == self.pid) {
            left.targets.remove(at);
        }
        if left.targets.is_empty() {
            *thread = None;
        } else if let Err(error) = left.apply() {
            tracing::debug!("{error}");
        }
    }
}

impl Thread {
    /// Takes DAMON if it is free.
    fn take() -> Result<Thread, Error> {
        let folder = Path::new(FOLDER);
        if !folder.exists() {
            return Err(Error::NotThere);
        }
        if file::read(&folder.join("nr_kdamonds"))?.trim() != "0" {
            return Err(Error::InUse);
        }
        let mark = MARK + u64::from(std::process::id());
        let guard = Journal::open()?.damon(folder, mark)?;
        file::write(&folder.join("0/contexts/nr_contexts"), "1")?;
        let context = context();
        let known = file::read(&context.join("avail_operations"))?;
        if !known.split_whitespace().any(|operations| operations == "fvaddr") {
            return Err(Error::NotThere);
        }
        file::write(&context.join("operations"), "fvaddr")?;
        let attributes = context.join("monitoring_attrs");
        let interval = INTERVAL.as_micros().to_string();
        for (name, value) in [("update_us", mark.to_string()), ("aggr_us", interval.clone()), ("sample_us", interval)] {
            file::write(&attributes.join("intervals").join(name), &value)?;
        }
        Ok(Thread { targets: Vec::new(), pid: 0, _guard: guard })
    }

    fn watched(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| !target.pages.is_empty())
    }

    fn apply(&mut self) -> Result<(), Error> {
        let (kdamond, folder) = (Path::new(FOLDER).join("0"), context().join("targets"));
        let is_on = file::read(&kdamond.join("state"))?.trim() == "on";
        let count = self.watched().count();
        if count == 0 {
            self.pid = 0;
            return if is_on { Ok(file::write(&kdamond.join("state"), "off")?) } else { Ok(()) };
        }
        file::write(&folder.join("nr_targets"), &count.to_string())?;
        let limits = context().join("monitoring_attrs/nr_regions");
        let pages: usize = self.watched().map(|target| target.pages.len()).sum();
        for (name, value) in [("min", FEWEST_REGIONS), ("max", pages.max(FEWEST_REGIONS))] {
            file::write(&limits.join(name), &value.to_string())?;
        }
        for (number, target) in self.watched().enumerate() {
            let target_folder = folder.join(number.to_string());
            file::write(&target_folder.join("pid_target"), &target.pid.to_string())?;
            let regions = target_folder.join("regions");
            file::write(&regions.join("nr_regions"), &target.pages.len().to_string())?;
            for (at, page) in target.pages.iter().enumerate() {
                let region = regions.join(at.to_string());
                file::write(&region.join("start"), &page.to_string())?;
                file::write(&region.join("end"), &(page + crate::procfs::page_bytes()).to_string())?;
            }
        }
        file::write(&kdamond.join("state"), if is_on { "commit" } else { "on" })?;
        self.pid = file::read(&kdamond.join("pid"))?.trim().parse().unwrap_or(0);
        Ok(())
    }
}

fn context() -> PathBuf {
    Path::new(FOLDER).join("0/contexts/0")
}

/// Whether the thread in this folder has this mark, or no mark yet, in which case it does not run.
pub(crate) fn is_marked(folder: &Path, mark: u64) -> bool {
    let context = folder.join("0/contexts/0");
    let marked = file::number(&context.join("monitoring_attrs/intervals/update_us"));
    folder.join("0").exists() && (marked == Some(mark) || !context.exists())
}

/// Ends the thread in this folder, if it has this mark, and restores the folder.
pub(crate) fn end(folder: &Path, mark: u64) -> Result<(), crate::Error> {
    if !is_marked(folder, mark) {
        return Ok(());
    }
    let state = folder.join("0/state");
    if file::read_if_present(&state).is_some_and(|state| state.trim() == "on") {
        file::write(&state, "off")?;
    }
    file::write(&folder.join("nr_kdamonds"), "0")
}

fn lock() -> MutexGuard<'static, Option<Thread>> {
    THREAD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_our_own_thread_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let intervals = folder.path().join("0/contexts/0/monitoring_attrs/intervals");
        fs::create_dir_all(&intervals).unwrap();
        for (path, value) in
            [("nr_kdamonds", "1"), ("0/state", "on\n"), ("0/contexts/0/monitoring_attrs/intervals/update_us", "77\n")]
        {
            fs::write(folder.path().join(path), value).unwrap();
        }
        let state = || file::read(&folder.path().join("0/state")).unwrap();
        assert!(!is_marked(folder.path(), 78));
        end(folder.path(), 78).unwrap();
        assert_eq!(state(), "on\n", "somebody else's");
        assert!(is_marked(folder.path(), 77));
        end(folder.path(), 77).unwrap();
        assert_eq!((state().trim(), file::number(&folder.path().join("nr_kdamonds"))), ("off", Some(0)));
    }

    #[test]
    fn a_thread_without_a_mark_is_ended_too() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_marked(folder.path(), 77), "there is none");
        fs::create_dir(folder.path().join("0")).unwrap();
        assert!(is_marked(folder.path(), 77));
    }
}
