//! Every change that outlives bursar is recorded before it is made, so that the next bursar can undo it.
//!
//! One file per bursar, in a directory that only its user can enter. Each line records a change, or that it was undone. The owner is
//! identified by PID, start time, boot and PID namespace, so that a dead owner is not mistaken for a living process with the same PID. A
//! setting that several bursars have changed is restored by the last of them.

mod change;
mod files;
mod repair;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::secure_file::Folder;
use crate::{Error, file};
use change::Change;
use files::{Begun, Line, Other, Owner, append, create, directories, lock, read_all};

pub use change::Balloon;
pub use repair::{PutBack, repair};

/// The journal of this process.
#[derive(Clone, Debug)]
pub struct Journal {
    inner: Arc<Inner>,
}

/// A change that is undone when this is dropped.
#[derive(Debug)]
#[must_use = "the change is undone when the guard is dropped"]
pub struct Guard {
    journal: Journal,
    id: u32,
    undone: bool,
}

/// A change that other code has to undo: it stays in the journal until [`Note::undone`].
#[derive(Debug)]
pub struct Note {
    journal: Journal,
    id: u32,
}

#[derive(Debug)]
struct Inner {
    dir: Option<Folder>,
    file: Option<(PathBuf, Mutex<File>)>,
    warning: Option<String>,
    next: AtomicU32,
    /// Changes not undone yet.
    open: Mutex<Vec<(u32, Change)>>,
}

impl Journal {
    /// Opens the journal of this process: in `/run/bursar` for root, else in `$XDG_RUNTIME_DIR/bursar`, else in `$TMPDIR/bursar-UID`. If
    /// none of them is writable it is kept in memory, see [`Journal::warning`].
    ///
    /// # Errors
    /// [`Error::Read`] without `/proc`.
    pub fn open() -> Result<Journal, Error> {
        Journal::open_in(&directories())
    }

    /// Opens it in the first usable one of these directories.
    fn open_in(candidates: &[PathBuf]) -> Result<Journal, Error> {
        let owner = Owner::this_process()?;
        let mut reasons = Vec::new();
        for dir in candidates {
            match create(dir, &owner) {
                Ok(Begun { dir, path, file }) => {
                    return Ok(Journal::with(Some(dir), Some((path, file)), None));
                }
                Err(reason) => reasons.push(reason),
            }
        }
        let warning = format!(
            "what this run changes on the system is put back at its end, but not if bursar is killed: {}",
            reasons.join("; ")
        );
        Ok(Journal::with(None, None, Some(warning)))
    }

    fn with(dir: Option<Folder>, file: Option<(PathBuf, Mutex<File>)>, warning: Option<String>) -> Journal {
        let inner = Inner { dir, file, warning, next: AtomicU32::new(0), open: Mutex::new(Vec::new()) };
        Journal { inner: Arc::new(inner) }
    }

    /// Why changes will not be undone if bursar is killed; `None` if they will.
    pub fn warning(&self) -> Option<&str> {
        self.inner.warning.as_deref()
    }

    /// Sets a sysctl, named as sysctl(8) does (`kernel.task_delayacct`), until the guard is dropped.
    ///
    /// # Errors
    /// [`Error::Read`] if it does not exist, [`Error::Write`] if it cannot be set.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<Guard, Error> {
        self.setting(sysctl_path(name), value)
    }

    /// Changes a machine-wide setting of transparent huge pages until the guard is dropped; `file` is from [`crate::thp::setting`].
    ///
    /// # Errors
    /// [`Error::Read`] if it does not exist, [`Error::Write`] if it cannot be set.
    pub fn transparent_huge_pages(&self, file: PathBuf, mode: &str) -> Result<Guard, Error> {
        self.setting(file, mode)
    }

    fn setting(&self, path: PathBuf, value: &str) -> Result<Guard, Error> {
        let lock = self.lock();
        let before = self.original(&path).map_or_else(|| change::value(&path), Ok)?;
        let guard = self.record(Change::Sysctl { path: path.clone(), before, wrote: value.into() })?;
        let written = file::write(&path, value);
        drop(lock);
        self.keep_if(guard, written)
    }

    /// The same, but `None` if it has this value already and no bursar has set it.
    pub(crate) fn sysctl_unless_set(&self, name: &str, value: &str) -> Result<Option<Guard>, Error> {
        let path = sysctl_path(name);
        let set = {
            let _lock = self.lock();
            file::read(&path)?.trim() == value && self.original(&path).is_none()
        };
        if set { Ok(None) } else { self.sysctl(name, value).map(Some) }
    }

    /// Records a cgroup's limit, which may be changed until the guard is dropped.
    ///
    /// # Errors
    /// [`Error::InUse`] if another bursar changes it; [`Error::Read`], [`Error::Write`] if it is not accessible.
    pub(crate) fn limit(&self, path: &Path) -> Result<Guard, Error> {
        let _lock = self.lock();
        let change = Change::Limit { path: path.into(), before: file::read(path)?.trim().to_string() };
        if self.is_moved(&change) {
            return Err(Error::InUse(path.into()));
        }
        let guard = self.record(change.clone())?;
        // Check write access before the limit is changed.
        self.keep_if(guard, change.undo())
    }

    /// Disables the OOM killer of a v1 cgroup by its `memory.oom_control` until the guard is dropped: processes that find no memory then
    /// wait. `None` if it is disabled already, or on v2.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be disabled.
    pub(crate) fn killer(&self, path: &Path) -> Result<Option<Guard>, Error> {
        let _lock = self.lock();
        if !file::read(path).is_ok_and(|state| state.lines().any(|line| line == "oom_kill_disable 0")) {
            return Ok(None);
        }
        let guard = self.record(Change::Killer { path: path.into() })?;
        self.keep_if(guard, file::write(path, "1")).map(Some)
    }

    /// Records the memory of a virtual machine, which may be changed until it is marked as restored.
    ///
    /// # Errors
    /// [`Error::InUse`] if another bursar changes it; [`Error::Write`].
    pub fn balloon(&self, before: Balloon) -> Result<Note, Error> {
        let _lock = self.lock();
        let socket = before.socket.clone();
        let change = Change::Balloon(before);
        if self.is_moved(&change) {
            return Err(Error::InUse(socket));
        }
        let mut guard = self.record(change)?;
        guard.undone = true;
        Ok(Note { journal: self.clone(), id: guard.id })
    }

    /// Records a kdamond, to be created with this mark, until the guard is dropped.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be recorded.
    pub(crate) fn damon(&self, folder: &Path, mark: u64) -> Result<Guard, Error> {
        let guard = self.record(Change::Damon { path: folder.into(), mark })?;
        let made = file::write(&folder.join("nr_kdamonds"), "1");
        self.keep_if(guard, made)
    }

    /// Whether a living bursar has recorded the same change.
    fn is_moved(&self, change: &Change) -> bool {
        let moves = |other: &Other| other.is_alive() && other.open.iter().any(|open| open.same_setting(change));
        self.others().iter().any(moves) || self.open_changes().iter().any(|(_, open)| open.same_setting(change))
    }

    /// Creates a cgroup directory that is removed, with all beneath it, when the guard is dropped. Processes must have left it by then.
    ///
    /// # Errors
    /// [`Error::Create`].
    pub fn cgroup(&self, path: &Path) -> Result<Guard, Error> {
        let guard = self.record(Change::Cgroup { path: path.into() })?;
        let made = fs::create_dir(path).map_err(|source| Error::Create { path: path.into(), source });
        self.keep_if(guard, made)
    }

    /// Creates a cgroup beneath the one this process is in, and moves this process there until the guard is dropped.
    pub(crate) fn supervisor(&self, path: &Path) -> Result<Guard, Error> {
        let guard = self.record(Change::Supervisor { path: path.into() })?;
        let made = fs::create_dir(path).map_err(|source| Error::Create { path: path.into(), source });
        let guard = self.keep_if(guard, made)?;
        file::write(&path.join("cgroup.procs"), &std::process::id().to_string())?;
        Ok(guard)
    }

    /// Enables a v2 controller for the children of a cgroup. `None`: it was enabled already, and not by a bursar.
    pub(crate) fn controller(&self, path: &Path, name: &str) -> Result<Option<Guard>, Error> {
        let lock = self.lock();
        let control = path.join("cgroup.subtree_control");
        let change = Change::Controller { path: path.into(), name: name.into() };
        let enabled = file::read(&control)?.split_whitespace().any(|enabled| enabled == name);
        if enabled && !self.others().iter().any(|other| other.is_of_this_boot() && other.open.contains(&change)) {
            return Ok(None);
        }
        let guard = self.record(change)?;
        let written = file::write(&control, &format!("+{name}"));
        drop(lock);
        self.keep_if(guard, written).map(Some)
    }

    /// Records a folder to be created, which is removed with its content when the guard is dropped, or by repair.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be recorded.
    pub(crate) fn folder(&self, path: &Path) -> Result<Guard, Error> {
        self.record(Change::Folder { path: path.into() })
    }

    /// Records a change before it is made.
    fn record(&self, change: Change) -> Result<Guard, Error> {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        self.append(&Line::Change { id, change: change.clone() })?;
        self.open_changes().push((id, change));
        Ok(Guard { journal: self.clone(), id, undone: false })
    }

    /// Drops the entry of a change that failed, without undoing it.
    fn keep_if(&self, mut guard: Guard, made: Result<(), Error>) -> Result<Guard, Error> {
        if let Err(error) = made {
            guard.undone = true;
            self.forget(guard.id);
            return Err(error);
        }
        Ok(guard)
    }

    fn forget(&self, id: u32) {
        self.open_changes().retain(|(open, _)| *open != id);
        let _ = self.append(&Line::Undone(id));
    }

    fn append(&self, line: &Line) -> Result<(), Error> {
        let Some((path, file)) = &self.inner.file else { return Ok(()) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        append(&mut file, line).map_err(|source| Error::Write { path: path.clone(), value: "a change".into(), source })
    }

    fn open_changes(&self) -> MutexGuard<'_, Vec<(u32, Change)>> {
        self.inner.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> Option<File> {
        lock(self.inner.dir.as_ref()?)
    }

    fn others(&self) -> Vec<Other> {
        let Some(dir) = &self.inner.dir else { return Vec::new() };
        let own = self.inner.file.as_ref().and_then(|(path, _)| path.file_name());
        read_all(dir).into_iter().filter(|other| Some(other.name.as_os_str()) != own).collect()
    }

    /// The value of a setting before the first bursar changed it that has not undone it, including dead ones; `None` if none has.
    fn original(&self, path: &Path) -> Option<String> {
        let own = self.open_changes().iter().map(|(_, change)| change.clone()).collect::<Vec<_>>();
        let others = self.others().into_iter().filter(Other::is_of_this_boot).flat_map(|other| other.open);
        own.into_iter().chain(others).find_map(|change| match change {
            Change::Sysctl { path: same, before, .. } if same == path => Some(before),
            _ => None,
        })
    }

    /// Undoes one change, unless another guard of this or another living bursar still needs it.
    fn undo(&self, id: u32) -> Result<(), Error> {
        let _lock = self.lock();
        let Some(change) = self.open_changes().iter().find(|(open, _)| *open == id).map(|(_, change)| change.clone())
        else {
            return Ok(());
        };
        let own = self.open_changes().iter().any(|(open, other)| *open != id && other.same_setting(&change));
        let wanted = own
            || self
                .others()
                .iter()
                .any(|other| other.is_alive() && other.open.iter().any(|open| open.same_setting(&change)));
        if !wanted {
            change.undo()?;
        }
        self.forget(id);
        Ok(())
    }
}

impl Guard {
    /// Another program has set the limit meanwhile: restore that value.
    pub(crate) fn set_by_others(&mut self, before: &str) -> Result<(), Error> {
        let open = self.journal.open_changes().iter().find(|(id, _)| *id == self.id).map(|(_, change)| change.clone());
        let Some(Change::Limit { path, .. }) = open else { return Ok(()) };
        let mut now = self.journal.record(Change::Limit { path, before: before.into() })?;
        now.undone = true;
        self.journal.forget(self.id);
        self.id = now.id;
        Ok(())
    }

    /// Keeps the change: nothing undoes it.
    pub(crate) fn keep(mut self) {
        self.undone = true;
        self.journal.forget(self.id);
    }

    /// Undoes the change now.
    ///
    /// # Errors
    /// If it cannot be undone; it then stays in the journal for `bursar doctor --repair`.
    pub fn restore(mut self) -> Result<(), Error> {
        self.undone = true;
        self.journal.undo(self.id)
    }
}

impl Note {
    /// Marks it as undone.
    pub fn undone(self) {
        self.journal.forget(self.id);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.undone {
            return;
        }
        if let Err(error) = self.journal.undo(self.id) {
            tracing::warn!("{error}");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        let own = self.file.as_ref().filter(|_| open.is_empty()).and_then(|(path, _)| path.file_name());
        if let (Some(dir), Some(name)) = (&self.dir, own) {
            let _ = dir.remove(name);
        }
    }
}

fn sysctl_path(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::files::{names, open};
    use super::*;
    use crate::procfs;

    struct Bench {
        dir: tempfile::TempDir,
        setting: PathBuf,
    }

    impl Bench {
        fn new() -> Bench {
            let dir = tempfile::tempdir().unwrap();
            let setting = dir.path().join("setting");
            fs::write(&setting, "0\n").unwrap();
            Bench { dir, setting }
        }

        fn journals(&self) -> PathBuf {
            self.dir.path().join("bursar")
        }

        fn open(&self) -> Journal {
            Journal::open_in(&[self.journals()]).unwrap()
        }

        fn value(&self) -> String {
            fs::read_to_string(&self.setting).unwrap().trim().into()
        }

        /// Makes a journal look like that of a killed bursar, by PID and start time.
        fn orphan(&self) {
            for entry in fs::read_dir(self.journals()).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|kind| kind == "journal") {
                    let text = fs::read_to_string(&path).unwrap();
                    let start =
                        format!("\"start_ticks\":{}", procfs::stat(std::process::id() as i32).unwrap().starttime);
                    fs::write(path.with_file_name("orphan.journal"), text.replace(&start, "\"start_ticks\":1"))
                        .unwrap();
                    fs::remove_file(path).unwrap();
                }
            }
        }
    }

    /// Repairs, ignoring announcements.
    fn repair_in(dir: &Path, balloon: PutBack) -> Vec<String> {
        super::repair::repair_in(dir, balloon, &mut |_| {})
    }

    const NO_MACHINE: PutBack = |_| Err("there is no machine".into());

    #[test]
    fn a_journal_whose_owner_was_killed_before_its_first_line_is_removed() {
        let bench = Bench::new();
        let living = bench.open();
        let empty = bench.journals().join("7-7-0.journal");
        fs::write(&empty, "").unwrap();
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), Vec::<String>::new());
        assert!(!empty.exists());
        assert_eq!(names(&open(&bench.journals()).unwrap()).len(), 1, "the living one's is there");
        drop(living);
    }

    #[test]
    fn a_balloon_stays_in_the_journal_until_it_is_restored() {
        let bench = Bench::new();
        // A process that does not end.
        let start_ticks = procfs::stat(1).unwrap().starttime;
        let before = Balloon { socket: "/run/machine".into(), pid: 1, start_ticks, bytes: 7 << 20, polling_seconds: 0 };
        let journal = bench.open();
        let note = journal.balloon(before.clone()).unwrap();
        assert!(matches!(bench.open().balloon(before.clone()), Err(Error::InUse(_))));
        note.undone();
        drop(journal.balloon(before).unwrap());
        drop(journal);
        bench.orphan();
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), ["there is no machine"], "it is tried again");
        let sentences =
            repair_in(&bench.journals(), |before| (before.bytes == 7 << 20).then_some(()).ok_or("other".into()));
        assert_eq!(sentences, ["the balloon of /run/machine was put back to 7340032 bytes"]);
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), Vec::<String>::new());
    }

    #[test]
    fn a_folder_of_a_dead_bursar_is_removed_with_all_in_it() {
        let bench = Bench::new();
        let elsewhere = bench.dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("file"), "").unwrap();
        let folder = |name: &str| bench.dir.path().join(name);
        let journal = bench.open();
        let guards = ["bursar-left", "bursar-link", ".bursar-gone", "of-others"].map(|name| {
            let guard = journal.folder(&folder(name)).unwrap();
            if name.ends_with("link") {
                std::os::unix::fs::symlink(&elsewhere, folder(name)).unwrap();
            } else if !name.ends_with("gone") {
                fs::create_dir_all(folder(name).join("deep")).unwrap();
                std::os::unix::fs::symlink(&elsewhere, folder(name).join("deep/link")).unwrap();
            }
            guard
        });
        guards.into_iter().for_each(std::mem::forget);
        std::mem::forget(journal);
        bench.orphan();
        let sentences = repair_in(&bench.journals(), NO_MACHINE).join("\n");
        assert!(
            sentences.contains(&format!("the folder {} was removed", folder("bursar-left").display())),
            "{sentences}"
        );
        assert!(sentences.contains("of-others', which no bursar changes so"), "{sentences}");
        assert!(!folder("bursar-left").exists() && folder("of-others").exists());
        assert!(folder("bursar-link").is_symlink() && elsewhere.join("file").exists(), "links are not followed");
    }

    #[test]
    fn a_setting_is_restored_and_the_journal_leaves_no_file() {
        let bench = Bench::new();
        let journal = bench.open();
        assert_eq!(journal.warning(), None);
        let guard = journal.setting(bench.setting.clone(), "1").unwrap();
        assert_eq!(bench.value(), "1");
        guard.restore().unwrap();
        assert_eq!(bench.value(), "0");
        drop(journal);
        assert_eq!(fs::read_dir(bench.journals()).unwrap().count(), 1, "only the lock is left");
    }

    #[test]
    fn the_bracketed_choice_of_a_setting_is_restored() {
        let bench = Bench::new();
        let path = bench.dir.path().join("enabled");
        fs::write(&path, "always [madvise] never\n").unwrap();
        std::mem::forget(bench.open().setting(path.clone(), "always").unwrap());
        bench.orphan();
        // As the kernel prints it then.
        fs::write(&path, "[always] madvise never\n").unwrap();
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), [format!("{} was put back to madvise", path.display())]);
        assert!(fs::read_to_string(&path).unwrap().starts_with("madvise"), "overwritten in place");
    }

    #[test]
    fn the_last_of_several_owners_restores_a_setting() {
        let bench = Bench::new();
        let (one, two) = (bench.open(), bench.open());
        let first = one.setting(bench.setting.clone(), "1").unwrap();
        let second = two.setting(bench.setting.clone(), "1").unwrap();
        let third = two.setting(bench.setting.clone(), "1").unwrap();
        drop(first);
        assert_eq!(bench.value(), "1");
        drop(third);
        assert_eq!(bench.value(), "1");
        drop(second);
        assert_eq!(bench.value(), "0");
    }

    #[test]
    fn a_value_that_another_program_set_is_kept() {
        let bench = Bench::new();
        let journal = bench.open();
        let guard = journal.setting(bench.setting.clone(), "1").unwrap();
        fs::write(&bench.setting, "7").unwrap();
        drop(guard);
        assert_eq!(bench.value(), "7");
    }

    #[test]
    fn a_limit_is_changed_by_one_bursar_and_restored() {
        let bench = Bench::new();
        let journal = bench.open();
        let guard = journal.limit(&bench.setting).unwrap();
        assert!(matches!(bench.open().limit(&bench.setting), Err(Error::InUse(_))));
        fs::write(&bench.setting, "7").unwrap();
        fs::write(&bench.setting, "8").unwrap();
        drop(guard);
        assert_eq!(bench.value(), "0");
        // Only one owner is to be orphaned.
        drop(journal);
        std::mem::forget(bench.open().limit(&bench.setting).unwrap());
        fs::write(&bench.setting, "9").unwrap();
        bench.orphan();
        assert_eq!(
            repair_in(&bench.journals(), NO_MACHINE),
            [format!("{} was put back to 0", bench.setting.display())]
        );
        assert_eq!(bench.value(), "0");
    }

    #[test]
    fn changes_of_dead_owners_are_undone_unless_still_needed() {
        let bench = Bench::new();
        let dead = bench.open();
        std::mem::forget(dead.setting(bench.setting.clone(), "1").unwrap());
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), Vec::<String>::new(), "its owner lives");
        bench.orphan();
        let living = bench.open();
        let guard = living.setting(bench.setting.clone(), "1").unwrap();
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), Vec::<String>::new());
        assert_eq!(bench.value(), "1");
        drop(guard);
        assert_eq!(bench.value(), "0", "the living one knew the value before the dead one's change");
    }

    #[test]
    fn repair_reports_its_work_and_does_it_once() {
        let bench = Bench::new();
        std::mem::forget(bench.open().setting(bench.setting.clone(), "1").unwrap());
        bench.orphan();
        assert_eq!(
            repair_in(&bench.journals(), NO_MACHINE),
            [format!("{} was put back to 0", bench.setting.display())]
        );
        assert_eq!(bench.value(), "0");
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), Vec::<String>::new());
    }

    #[test]
    fn a_cut_or_garbled_journal_does_no_harm() {
        let bench = Bench::new();
        std::mem::forget(bench.open().setting(bench.setting.clone(), "1").unwrap());
        bench.orphan();
        let path = bench.journals().join("orphan.journal");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{{\"change\":{{\"id\":9,\"cha")).unwrap();
        fs::write(bench.journals().join("other.journal"), "no json\n").unwrap();
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE).len(), 1);
        assert_eq!(bench.value(), "0");
    }

    #[test]
    fn repair_refuses_names_that_no_bursar_writes() {
        let cgroup = |path: &str| Change::Cgroup { path: path.into() };
        let sysctl =
            |path: &str, before: &str| Change::Sysctl { path: path.into(), before: before.into(), wrote: "1".into() };
        let limit = |path: &str| Change::Limit { path: path.into(), before: "0".into() };
        let root = if Path::new("/sys/fs/cgroup/memory").exists() { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" };
        let ours = format!("{root}/bursar-1-0-job");
        assert_eq!(cgroup(&ours).check(), Ok(()));
        assert_eq!(sysctl("/sys/kernel/mm/transparent_hugepage/enabled", "madvise").check(), Ok(()));
        assert_eq!(sysctl("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "never").check(), Ok(()));
        let refused = [
            cgroup("/sys/fs/cgroup/system.slice"),
            cgroup(&format!("{root}/bursar-x/../victim")),
            cgroup(&format!("{root}/bursar-x/./victim")),
            cgroup(&format!("{root}//bursar-x")),
            cgroup(&format!("{root}/bursar-x/")),
            cgroup("bursar-x"),
            cgroup(""),
            cgroup(&format!("{root}/bursar-x\0")),
            cgroup(&format!("{root}/bursar-x\nvictim")),
            cgroup("/etc/bursar-x"),
            Change::Supervisor { path: format!("{root}/victim").into() },
            Change::Controller { path: root.into(), name: "memory -pids".into() },
            Change::Controller { path: "/etc".into(), name: "memory".into() },
            Change::Killer { path: "/etc/memory.oom_control".into() },
            Change::Killer { path: format!("{root}/cgroup.procs").into() },
            Change::Damon { path: "/etc".into(), mark: 1 },
            limit("/etc/shadow"),
            limit(&format!("{root}/cgroup.procs")),
            sysctl("/etc/shadow", "0"),
            sysctl("/proc/sys/../../etc/shadow", "0"),
            sysctl("/proc/sys/kernel/x", "0\n1"),
            sysctl("/sys/kernel/mm/ksm/run", "0"),
            sysctl("/sys/kernel/mm/transparent_hugepage/../ksm/enabled", "0"),
            sysctl("/sys/kernel/mm/transparent_hugepage/defrag", "always"),
        ];
        for change in refused {
            assert!(change.check().is_err(), "{change:?}");
        }
    }

    #[test]
    fn repair_announces_each_write_before_it_makes_it() {
        let bench = Bench::new();
        std::mem::forget(bench.open().setting(bench.setting.clone(), "1").unwrap());
        bench.orphan();
        let mut shown = Vec::new();
        super::repair::repair_in(&bench.journals(), NO_MACHINE, &mut |intention| {
            assert_eq!(bench.value(), "1", "nothing is written yet");
            shown.push(intention.to_string());
        });
        assert_eq!(shown, [format!("writes 0 to {}", bench.setting.display())]);
        assert_eq!(bench.value(), "0");
    }

    #[test]
    fn a_foreign_path_in_a_journal_is_reported_and_not_written() {
        let bench = Bench::new();
        std::mem::forget(bench.open().setting(bench.setting.clone(), "1").unwrap());
        bench.orphan();
        let path = bench.journals().join("orphan.journal");
        let text = fs::read_to_string(&path).unwrap();
        let name = bench.setting.display().to_string();
        fs::write(&path, text.replace(&name, &format!("{}/x/../setting", bench.dir.path().display()))).unwrap();
        let sentences = repair_in(&bench.journals(), NO_MACHINE);
        assert!(sentences[0].contains("is left alone"), "{sentences:?}");
        assert_eq!(bench.value(), "1");
    }

    #[test]
    fn a_link_in_place_of_the_journals_is_not_followed() {
        let bench = Bench::new();
        std::mem::forget(bench.open().setting(bench.setting.clone(), "1").unwrap());
        bench.orphan();
        let elsewhere = bench.dir.path().join("elsewhere");
        fs::rename(bench.journals(), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, bench.journals()).unwrap();
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), Vec::<String>::new());
        assert!(bench.open().warning().is_some());
        assert_eq!(bench.value(), "1");
    }

    #[test]
    fn a_change_that_fails_is_not_undone() {
        let bench = Bench::new();
        let journal = bench.open();
        assert!(journal.setting(bench.dir.path().join("absent"), "1").is_err());
        assert!(journal.cgroup(Path::new("/proc/bursar-none")).is_err());
        assert!(journal.open_changes().is_empty());
    }

    #[test]
    fn an_unwritable_journal_is_kept_in_memory_with_a_warning() {
        let bench = Bench::new();
        let journal = Journal::open_in(&["/proc/bursar".into(), bench.setting.join("bursar")]).unwrap();
        assert!(journal.warning().unwrap().contains("/proc/bursar"));
        let guard = journal.setting(bench.setting.clone(), "1").unwrap();
        assert_eq!(bench.value(), "1");
        drop(guard);
        assert_eq!(bench.value(), "0");
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let bench = Bench::new();
        fs::create_dir(bench.journals()).unwrap();
        fs::set_permissions(bench.journals(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(bench.open().warning().unwrap().contains("0700"));
        assert_eq!(repair_in(&bench.journals(), NO_MACHINE), Vec::<String>::new());
    }
}
