//! The placement ladder: where a job's cgroup can be created.
//!
//! A job is never moved out of a cgroup that limits it or that another bursar observes, because it would evade the limit and falsify the
//! account. In such a cgroup, children are created beneath it, or it is only read.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{geteuid, getpid, getppid};

use crate::becoming_root;
use crate::capability::Capability;
use crate::cgroup::{Cgroup, Swap, Version, is_threaded_domain, own_processes};
use crate::journal::{Guard, Journal};
use crate::mounts::{self, Mount};
use crate::{Error, container, file, procfs, systemd};

/// Name prefix of all cgroups that bursar creates.
pub(crate) const PREFIX: &str = "bursar-";

/// Maximum number of attempts to move processes out of a cgroup while they fork into it.
const ROUNDS: u32 = 100;

/// A rung of the ladder, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// cgroup v2, beneath its root.
    V2Root,
    /// cgroup v2, in a delegated scope created by systemd.
    V2Systemd,
    /// cgroup v2, beneath bursar's own cgroup, which was delegated.
    V2Delegated,
    /// cgroup v1, beneath the root of the memory controller.
    V1Root,
    /// bursar's own cgroup, read-only.
    ReadOnly,
    /// No memory controller.
    None,
}

/// The state of one rung on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rung.
    pub rung: Rung,
    /// The obstacle, as a clause; `None`: there is none.
    pub obstacle: Option<String>,
    /// The command that would remove it, if there is one.
    pub enable: Option<String>,
}

/// The place for the cgroups of jobs. One per process, because bursar may have to move to another cgroup for it.
#[derive(Debug)]
pub struct Place {
    own: Option<Cgroup>,
    state: Mutex<State>,
}

/// A cgroup for one run. When dropped, remaining processes are moved to bursar's own cgroup, and it is removed.
#[derive(Debug)]
pub struct JobCgroup {
    cgroup: Cgroup,
    guards: Vec<Guard>,
    base: Option<Arc<Base>>,
}

#[derive(Debug)]
struct State {
    ladder: Vec<Step>,
    base: Option<Arc<Base>>,
}

/// The cgroup beneath which jobs get theirs, with the changes it needed.
#[derive(Debug)]
struct Base {
    cgroup: Cgroup,
    guards: Vec<Guard>,
}

impl Place {
    /// Finds the best rung. Changes nothing; the first [`Place::new_cgroup`] does.
    pub fn find() -> Place {
        let own = own_cgroup();
        let ladder = ladder_from(own.as_ref());
        Place { own, state: Mutex::new(State { ladder, base: None }) }
    }

    /// The rung in use, or to be used by the next job.
    pub fn rung(&self) -> Rung {
        self.state().rung()
    }

    /// The rung in words, for reports.
    pub fn describe(&self) -> String {
        let own = self.own.as_ref();
        match self.rung() {
            Rung::V2Root => "cgroup v2 memory controller, beneath its root".into(),
            Rung::V2Systemd if geteuid().is_root() => "cgroup v2 memory controller, scope by systemd".into(),
            Rung::V2Systemd => "cgroup v2 memory controller, scope by the user's systemd".into(),
            Rung::V2Delegated => "cgroup v2 memory controller, delegated subtree".into(),
            Rung::V1Root => "cgroup v1 memory controller".into(),
            Rung::ReadOnly => {
                let version = if own.is_some_and(|own| own.version() == Version::V1) { "v1" } else { "v2" };
                format!("own cgroup {version}, read only; bursar and whatever else runs in it is counted too")
            }
            Rung::None => "no cgroup: process tree".into(),
        }
    }

    /// The share of a cgroup's available memory that may be dirty before its writers are throttled: the middle between
    /// `vm.dirty_background_ratio` and `vm.dirty_ratio` (mm/page-writeback.c, `dirty_freerun_ceiling`). `None` on v1, where only the
    /// machine's memory counts, and where the thresholds are set in bytes.
    pub fn dirty_share(&self) -> Option<f64> {
        let percent = |name: &str| file::read(&Path::new("/proc/sys/vm").join(name)).ok()?.trim().parse::<f64>().ok();
        let is_v2 = matches!(self.rung(), Rung::V2Root | Rung::V2Systemd | Rung::V2Delegated);
        let (background, most) = (percent("dirty_background_ratio")?, percent("dirty_ratio")?);
        (is_v2 && background > 0.0 && most > 0.0).then_some((background + most) / 200.0)
    }

    /// Whether jobs can get a limit.
    pub fn can_limit(&self) -> bool {
        self.rung() < Rung::ReadOnly
    }

    /// Creates a cgroup for one run, journaled, removed when dropped. `None` on the two lowest rungs. If a rung fails in practice, the next
    /// one is used; [`Place::missing`] then has the reason.
    ///
    /// # Errors
    /// If a cgroup cannot be created although its place was found suitable.
    pub fn new_cgroup(&self, journal: &Journal, name: &str) -> Result<Option<JobCgroup>, Error> {
        let mut state = self.state();
        let base = loop {
            if let Some(base) = &state.base {
                break base.clone();
            }
            let rung = state.rung();
            if rung >= Rung::ReadOnly {
                return Ok(None);
            }
            match prepare(rung, self.own.as_ref(), journal) {
                Ok(base) => state.base = Some(Arc::new(base)),
                Err(error) => {
                    tracing::debug!("{rung:?}: {error}");
                    state.ladder.iter_mut().filter(|step| step.rung == rung).for_each(|step| {
                        step.obstacle = Some(error.to_string());
                    });
                }
            }
        };
        JobCgroup::new(base, journal, name).map(Some)
    }

    /// Tries the ladder: in order, each rung without an obstacle gets a cgroup with a limit, until one works. Everything is removed again.
    pub fn tried(&self, journal: &Journal) -> Vec<Step> {
        while self.can_limit() {
            let tried = self.new_cgroup(journal, "doctor").and_then(|cgroup| cgroup.map(|c| try_limit(&c)).transpose());
            let Err(error) = tried else { break };
            let mut state = self.state();
            let rung = state.rung();
            state.base = None;
            state.ladder.iter_mut().filter(|step| step.rung == rung).for_each(|step| {
                step.obstacle = Some(format!("a limit cannot be set: {error}"));
            });
        }
        let mut state = self.state();
        state.base = None;
        state.ladder.clone()
    }

    /// The cgroup that bursar was started in; `None` without a memory controller, and at the root of a hierarchy, which is the whole
    /// machine.
    pub fn current(&self) -> Option<&Cgroup> {
        self.own.as_ref().filter(|own| !own.is_root())
    }

    /// What is missing for limits, and what would enable them, as sentences; empty if limits can be set.
    pub fn missing(&self) -> Vec<String> {
        if self.can_limit() {
            return Vec::new();
        }
        let state = self.state();
        let steps = state.ladder.iter().filter(|step| step.rung < Rung::ReadOnly);
        steps
            .filter_map(|step| {
                let why = format!("{}: {}", step.rung.name(), step.obstacle.as_deref()?);
                Some(match &step.enable {
                    Some(command) => format!("{why}; to enable it: {command}"),
                    None => why,
                })
            })
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rung {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Rung::V2Root => "cgroup v2 as root",
            Rung::V2Systemd => "cgroup v2 by systemd",
            Rung::V2Delegated => "cgroup v2 delegated",
            Rung::V1Root => "cgroup v1 as root",
            Rung::ReadOnly => "own cgroup, read only",
            Rung::None => "process tree",
        }
    }
}

impl State {
    fn rung(&self) -> Rung {
        self.ladder.iter().find(|step| step.obstacle.is_none()).map_or(Rung::None, |step| step.rung)
    }
}

/// Every rung with its obstacle, the best first.
pub fn ladder() -> Vec<Step> {
    ladder_from(own_cgroup().as_ref())
}

impl JobCgroup {
    fn new(base: Arc<Base>, journal: &Journal, name: &str) -> Result<JobCgroup, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let cgroup = base.cgroup.child(&format!("{PREFIX}{}-{number}-{name}", getpid()));
            if cgroup.directories().iter().any(|dir| dir.exists()) {
                continue;
            }
            let guards = cgroup.directories().into_iter().map(|dir| journal.cgroup(dir)).collect::<Result<_, _>>()?;
            return Ok(JobCgroup { cgroup: cgroup.adopt()?, guards, base: Some(base) });
        }
    }
}

impl Deref for JobCgroup {
    type Target = Cgroup;

    fn deref(&self) -> &Cgroup {
        &self.cgroup
    }
}

impl Drop for JobCgroup {
    fn drop(&mut self) {
        // A daemon that the command left lives on, as it would without bursar.
        let own = own_cgroup();
        for _ in 0..ROUNDS {
            for pid in self.cgroup.processes().unwrap_or_default() {
                let _ = own.as_ref().map(|own| own.add(pid));
            }
            if self.cgroup.remove().is_ok() {
                break;
            }
        }
        while self.guards.pop().is_some() {}
        self.base = None;
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        // The last change is undone first.
        while self.guards.pop().is_some() {}
    }
}

/// A limit that an empty cgroup can have on a machine of any size.
const TRIED_LIMIT_BYTES: u64 = 64 << 20;

/// Sets a limit and reads it back: a file system other than cgroupfs may accept any write.
fn try_limit(cgroup: &Cgroup) -> Result<(), Error> {
    cgroup.set_limit(Some(TRIED_LIMIT_BYTES), Swap::Allowed)?;
    match cgroup.effective_limit() {
        Some(limit) if limit <= TRIED_LIMIT_BYTES => Ok(()),
        _ => Err(Error::NotAMemoryCgroup(cgroup.dir().into())),
    }
}

fn own_cgroup() -> Option<Cgroup> {
    Cgroup::of(getpid().as_raw_nonzero().get()).ok().flatten()
}

fn ladder_from(own: Option<&Cgroup>) -> Vec<Step> {
    let mounts = mounts::own();
    let step = |rung, found: Result<(), Obstacle>| {
        let (obstacle, enable) = found.map_or_else(|obstacle| (Some(obstacle.why), obstacle.enable), |()| (None, None));
        Step { rung, obstacle, enable }
    };
    let as_v2 = || match own {
        Some(own) if own.version() == Version::V2 => Ok(own),
        Some(_) => Err(Obstacle::because("the memory controller is on a cgroup v1 hierarchy")),
        None => Err(Obstacle::because("no cgroup hierarchy with a memory controller is mounted")),
    };
    let by_systemd = as_v2().and_then(v2_systemd);
    let has_systemd = by_systemd.is_ok();
    let readable = match own {
        Some(own) if own.is_root() => {
            Err(Obstacle::because("bursar runs in the root cgroup, which is the whole machine"))
        }
        Some(_) => Ok(()),
        None => Err(Obstacle::because("no cgroup hierarchy with a memory controller is mounted")),
    };
    vec![
        step(Rung::V2Root, as_v2().and_then(|own| v2_root(&mounts, own))),
        step(Rung::V2Systemd, by_systemd),
        step(Rung::V2Delegated, as_v2().and_then(|own| v2_delegated(own, has_systemd))),
        step(Rung::V1Root, v1_root(&mounts, own)),
        step(Rung::ReadOnly, readable),
        step(Rung::None, Ok(())),
    ]
}

struct Obstacle {
    why: String,
    enable: Option<String>,
}

impl Obstacle {
    fn because(why: impl Into<String>) -> Obstacle {
        Obstacle { why: why.into(), enable: None }
    }

    fn but(self, enable: Option<&str>) -> Obstacle {
        Obstacle { enable: enable.map(String::from), ..self }
    }
}

fn v2_root(mounts: &[Mount], own: &Cgroup) -> Result<(), Obstacle> {
    let root = v2_root_dir(mounts)
        .ok_or_else(|| Obstacle::because("the root of cgroup v2 is not visible in this container"))?;
    stay_within(own, Path::new("/"))?;
    if !file::is_writable(&root) || !file::is_writable(&root.join("cgroup.subtree_control")) {
        return Err(not_writable(mounts, &root));
    }
    Ok(())
}

/// The command that makes systemd delegate the memory controller to user managers.
const DELEGATE: &str = "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' | \
             sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload (then log in again)";

fn v2_systemd(own: &Cgroup) -> Result<(), Obstacle> {
    let uid = geteuid();
    // A limit on all processes of this user also applies in the new scope.
    let slice = format!("user-{}.slice", uid.as_raw());
    let shared = own.dir().ancestors().find(|dir| dir.ends_with(&slice)).unwrap_or(Path::new("/"));
    stay_within(own, shared)?;
    if std::env::var_os("SLURM_JOB_ID").is_some() {
        return Err(Obstacle::because("inside a Slurm allocation a scope of its own would evade Slurm's limits"));
    }
    let manager = shared.join(format!("user@{}.service", uid.as_raw())).join("cgroup.controllers");
    let delegated = if uid.is_root() { None } else { file::read_if_present(&manager) };
    if delegated.is_some_and(|controllers| !controllers.split_whitespace().any(|name| name == "memory")) {
        let obstacle = Obstacle::because("the memory controller is not delegated to the user's systemd");
        return Err(obstacle.but(becoming_root::helps(Capability::SysAdmin).then_some(DELEGATE)));
    }
    systemd::available().map_err(|why| {
        let can_linger = !uid.is_root() && file::in_path("loginctl").is_some() && systemd::would_answer_if_lingering();
        Obstacle::because(why).but(can_linger.then_some("loginctl enable-linger $USER"))
    })
}

/// `has_systemd`: a service manager answers, which would create a delegated scope with the memory controller.
fn v2_delegated(own: &Cgroup, has_systemd: bool) -> Result<(), Obstacle> {
    let dir = own.dir();
    let in_a_scope = (has_systemd && file::in_path("systemd-run").is_some()).then_some(match geteuid().is_root() {
        true => "systemd-run --scope -p Delegate=yes bursar …",
        false => "systemd-run --user --scope -p Delegate=yes bursar …",
    });
    if own.is_root() {
        return Err(Obstacle::because("bursar runs in the root cgroup"));
    }
    if !own.is_writable() || !file::is_writable(&dir.join("cgroup.subtree_control")) {
        return Err(Obstacle::because(format!("{} is not delegated to this user", dir.display()))
            .but(in_a_scope.or(container::to_write(dir))));
    }
    if is_threaded_domain(dir) {
        return Err(Obstacle::because(format!(
            "bursar runs in {}, a domain of threaded cgroups, beneath which no cgroup can have a memory controller",
            dir.display()
        ))
        .but(in_a_scope));
    }
    let pid = getpid().as_raw_nonzero().get();
    let inside = own_processes(dir).unwrap_or_default();
    if !inside.contains(&pid) {
        return Err(Obstacle::because("the memory controller is not enabled down to bursar's own cgroup"));
    }
    // A v2 cgroup with processes cannot have children with controllers, and other users' processes must not be moved.
    let others: Vec<i32> = inside.into_iter().filter(|other| *other != pid).collect();
    let names: Vec<String> = others
        .iter()
        .map(|other| procfs::stat(*other).map_or_else(|_| other.to_string(), |stat| format!("{} ({other})", stat.comm)))
        .collect();
    if !others.is_empty() {
        let parent = getppid().map(|parent| parent.as_raw_nonzero().get());
        let enable = match others.as_slice() {
            [other] if Some(*other) == parent => Some("exec bursar …, so that it is the only process of its cgroup"),
            _ if container::is_here() => {
                Some("start bursar as the container's entrypoint, the only process of its cgroup")
            }
            _ => None,
        };
        return Err(Obstacle::because(format!(
            "other processes are in the same cgroup {}: {}",
            dir.display(),
            names.join(", ")
        ))
        .but(enable));
    }
    Ok(())
}

fn v1_root(mounts: &[Mount], own: Option<&Cgroup>) -> Result<(), Obstacle> {
    let base = match own {
        Some(own) if own.version() == Version::V1 => v1_base(mounts, own),
        Some(_) => return Err(Obstacle::because("the memory controller is on cgroup v2")),
        None => return Err(Obstacle::because("no cgroup hierarchy with a memory controller is mounted")),
    };
    if base.is_writable() && file::is_writable(&base.limit_file()) {
        return Ok(());
    }
    Err(not_writable(mounts, base.dir()))
}

/// Becoming root helps only users other than root, and not with a read-only mount.
fn not_writable(mounts: &[Mount], dir: &Path) -> Obstacle {
    let mount = mounts.iter().rev().find(|mount| dir.starts_with(&mount.point));
    if mount.is_some_and(|mount| mount.read_only) {
        return Obstacle::because(format!("{} is mounted read-only", dir.display()));
    }
    let obstacle = Obstacle::because(format!("{} is not writable for this user", dir.display()));
    obstacle.but(becoming_root::helps(Capability::SysAdmin).then_some("run bursar as root (sudo bursar …)"))
}

/// Leaving a cgroup with a limit of its own would evade it; leaving another bursar's would falsify its account. Limits at or above `shared`
/// also apply in the new place.
fn stay_within(own: &Cgroup, shared: &Path) -> Result<(), Obstacle> {
    if own.is_ours() {
        return Err(Obstacle::because("bursar runs inside a job of another bursar, whose account it must not leave"));
    }
    let within = own.dir().ancestors().take_while(|dir| *dir != shared && dir.join("cgroup.procs").exists());
    match within.into_iter().find(|dir| file::number(&dir.join("memory.max")).is_some()) {
        Some(dir) => Err(Obstacle::because(format!("bursar would evade the limit of {}", dir.display()))),
        None => Ok(()),
    }
}

/// The root of the v2 hierarchy, if it is mounted here and has the memory controller.
fn v2_root_dir(mounts: &[Mount]) -> Option<PathBuf> {
    let serving = mounts::best_first(mounts, |mount| mount.kind == "cgroup2");
    let mut points = serving.into_iter().map(|mount| &mount.point);
    points.find(|dir| dir.join("cgroup.subtree_control").exists() && !dir.join("cgroup.type").exists()).cloned()
}

/// The base for v1 jobs: the visible root, or bursar's own cgroup if that must not be left.
fn v1_base(mounts: &[Mount], own: &Cgroup) -> Cgroup {
    if own.is_ours() || own.effective_limit().is_some() { own.clone() } else { own.top(mounts) }
}

/// Makes the changes that a rung needs.
fn prepare(rung: Rung, own: Option<&Cgroup>, journal: &Journal) -> Result<Base, Error> {
    let mounts = mounts::own();
    let pid = getpid();
    match (rung, own) {
        (Rung::V2Root, _) => {
            let root = v2_root_dir(&mounts).ok_or_else(|| Error::NotAMemoryCgroup("/sys/fs/cgroup".into()))?;
            let mut guards = enable_controllers(&root, journal)?;
            // A killed bursar may have had the same PID.
            let mut names = (0u32..).map(|number| root.join(format!("{PREFIX}{pid}-{number}")));
            let dir = names.find(|dir| !dir.exists()).unwrap_or_else(|| root.clone());
            guards.push(journal.cgroup(&dir)?);
            guards.extend(enable_controllers(&dir, journal)?);
            Ok(Base { cgroup: Cgroup::at(&dir)?, guards })
        }
        (Rung::V2Systemd, _) => delegated(&systemd::enter_scope()?, journal),
        (Rung::V2Delegated, Some(own)) => delegated(own, journal),
        (Rung::V1Root, Some(own)) => {
            let cgroup = v1_base(&mounts, own);
            Ok(Base { guards: cgroup.enable_hugetlb(journal), cgroup })
        }
        _ => Err(Error::NotAMemoryCgroup("/sys/fs/cgroup".into())),
    }
}

/// Moves bursar to a leaf, because only then its cgroup may have children with controllers (cgroup-v2.rst, no internal processes).
fn delegated(own: &Cgroup, journal: &Journal) -> Result<Base, Error> {
    let mut base = Base { cgroup: own.clone(), guards: Vec::new() };
    base.guards.push(journal.supervisor(&own.dir().join(format!("{PREFIX}{}-supervisor", getpid())))?);
    base.guards.extend(enable_controllers(own.dir(), journal)?);
    Ok(base)
}

/// Enables memory for the children of this cgroup, and hugetlb if possible.
fn enable_controllers(dir: &Path, journal: &Journal) -> Result<Vec<Guard>, Error> {
    let memory = journal.controller(dir, "memory")?;
    let hugetlb = journal.controller(dir, "hugetlb").ok().flatten();
    Ok(memory.into_iter().chain(hugetlb).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str) -> Cgroup {
        Cgroup::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(path)).unwrap()
    }

    #[test]
    fn only_limits_that_apply_elsewhere_too_may_be_left() {
        let slice = "debian-6.1-v2/systemd-user/sys/fs/cgroup/user.slice/user-4242.slice";
        let manager = tree(&format!("{slice}/user@4242.service/app.slice"));
        let scope = tree(&format!("{slice}/user@4242.service/app.slice/job.scope"));
        let shared = tree(slice);
        assert!(stay_within(&manager, shared.dir()).is_ok());
        let obstacle = stay_within(&scope, shared.dir()).unwrap_err();
        assert!(obstacle.why.contains("job.scope"), "{}", obstacle.why);
        assert!(stay_within(&scope, scope.dir()).is_ok());
    }

    #[test]
    fn a_delegated_domain_of_threads_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let files = ["memory.current", "cgroup.controllers", "cgroup.subtree_control"];
        files.into_iter().for_each(|name| write(name, "0"));
        write("cgroup.procs", &getpid().as_raw_nonzero().to_string());
        let obstacle = |kind| {
            write("cgroup.type", kind);
            v2_delegated(&Cgroup::at(dir.path()).unwrap(), false).err().map(|obstacle| obstacle.why)
        };
        assert_eq!(obstacle("domain\n"), None);
        let why = obstacle("domain threaded\n").unwrap();
        assert!(why.contains("a domain of threaded cgroups"), "{why}");
    }

    #[test]
    fn a_systemd_scope_is_advised_only_where_it_would_work() {
        let dir = tempfile::tempdir().unwrap();
        // Without cgroup.subtree_control it is not writable.
        for name in ["memory.current", "cgroup.controllers", "cgroup.procs", "cgroup.type"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let own = Cgroup::at(dir.path()).unwrap();
        let advice = |has_systemd| v2_delegated(&own, has_systemd).unwrap_err().enable;
        assert_eq!(advice(false), None);
        let scope = advice(true).map(|advice| advice.contains("systemd-run"));
        assert_eq!(scope, file::in_path("systemd-run").map(|_| true));
    }

    #[test]
    fn other_processes_are_named_and_exec_is_advised_for_a_shell() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["memory.current", "cgroup.controllers", "cgroup.subtree_control", "cgroup.type"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let advice = |others: &[i32]| {
            let mut pids = format!("{}\n", getpid());
            others.iter().for_each(|other| pids += &format!("{other}\n"));
            std::fs::write(dir.path().join("cgroup.procs"), pids).unwrap();
            let obstacle = v2_delegated(&Cgroup::at(dir.path()).unwrap(), false).unwrap_err();
            assert!(obstacle.why.contains("other processes"), "{}", obstacle.why);
            obstacle.enable
        };
        let parent = getppid().unwrap().as_raw_nonzero().get();
        assert!(advice(&[parent]).unwrap().starts_with("exec bursar"));
        assert_eq!(advice(&[parent, 1]).is_some(), container::is_here());
    }

    #[test]
    fn the_cgroup_of_another_bursars_job_is_not_left() {
        let inner = tree("linux-6.18-v1/hybrid/sys/fs/cgroup/memory/bursar-record/inner");
        assert!(stay_within(&inner, Path::new("/")).unwrap_err().why.contains("another bursar"));
        assert_eq!(v1_base(&mounts::own(), &inner).dir(), inner.dir());
    }

    #[test]
    fn a_limit_that_does_not_read_back_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["memory.current", "cgroup.controllers", "cgroup.procs", "memory.max"] {
            std::fs::write(dir.path().join(name), "max").unwrap();
        }
        let cgroup = Cgroup::at(dir.path()).unwrap();
        assert!(try_limit(&cgroup).is_ok());
        std::fs::remove_file(dir.path().join("memory.max")).unwrap();
        std::os::unix::fs::symlink("/dev/null", dir.path().join("memory.max")).unwrap();
        assert!(try_limit(&cgroup).is_err(), "a written limit that does not read back");
    }

    #[test]
    fn limits_are_tried_and_all_is_removed_again() {
        let place = Place::find();
        let before = place.rung();
        let own = own_cgroup();
        let steps = place.tried(&Journal::open().unwrap());
        let rung = steps.iter().find(|step| step.obstacle.is_none()).unwrap().rung;
        assert!(rung >= before, "a rung that had an obstacle has none now");
        assert_eq!((place.rung(), own_cgroup()), (rung, own));
    }

    #[test]
    fn every_rung_is_listed_and_missing_ones_have_a_reason() {
        let steps = ladder();
        assert!(steps.windows(2).all(|pair| pair[0].rung < pair[1].rung));
        assert_eq!(steps.last().unwrap().obstacle, None, "the process tree is always there");
        let place = Place::find();
        assert_eq!(place.missing().is_empty(), place.can_limit());
        assert!(place.describe().contains("cgroup"));
    }
}
