//! Children of this process: those it started and waits for, and orphans that the kernel reparented to it.
//!
//! As PID 1 of a container, or as a subreaper, a process inherits the orphans of all its descendants, and must reap them. It must not reap
//! children that it waits for elsewhere: each of these is registered when it is started, and a thread reaps the others.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, getpid, set_child_subreaper};

use crate::{procfs, wait};

/// Polling interval where no event can be awaited: without children, and while an awaited child that has ended hides others from `waitid`.
const PAUSE: Duration = Duration::from_millis(200);

struct Known {
    /// Children that are waited for elsewhere.
    awaited: BTreeSet<i32>,
    /// Number of holds: while a child is being started, whose PID is not known yet, or reaped orphans are counted.
    holds: usize,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { awaited: BTreeSet::new(), holds: 0 });
static CHANGED: Condvar = Condvar::new();

/// An orphan that this process has reaped.
#[derive(Clone, Debug)]
pub struct Orphan {
    /// Its process id.
    pub pid: i32,
    /// Its `/proc/PID/stat` between its end and its reaping.
    pub stat: procfs::Stat,
    /// Its status, and the usage of itself and of the children that it waited for.
    pub ended: wait::Ended,
}

/// Maximum number of orphans kept, to bound bursar's memory.
const MOST_ORPHANS: usize = 4096;

/// Orphans reaped since they were last [taken](take_orphans); `None` before [`adopt_orphans`].
static ORPHANS: Mutex<Option<Vec<Orphan>>> = Mutex::new(None);

/// Orphans reaped since the last call, at most 4096; none before [`adopt_orphans`].
pub fn take_orphans() -> Vec<Orphan> {
    orphans().as_mut().map(std::mem::take).unwrap_or_default()
}

/// A child that its owner waits for while this lives.
#[derive(Debug)]
pub struct Awaited(i32);

/// While it lives, no orphan is reaped.
#[derive(Debug)]
pub struct Hold(());

/// Taken before a child is started, and kept until it is [`awaited`].
pub fn hold() -> Hold {
    known().holds += 1;
    Hold(())
}

/// Registers a child that the caller waits for.
pub fn awaited(pid: i32) -> Awaited {
    known().awaited.insert(pid);
    Awaited(pid)
}

/// Starts a child that the caller waits for.
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn(command: &mut Command) -> io::Result<(Child, Awaited)> {
    let _hold = hold();
    let child = command.spawn()?;
    let pid = child.id() as i32;
    Ok((child, awaited(pid)))
}

/// Starts a child that the caller waits for and that is a subreaper: orphans of its descendants stay beneath it.
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn_reaper(command: &mut Command) -> io::Result<(Child, Awaited)> {
    let adopt = || match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: a single system call, which is allowed between fork and exec.
    spawn(unsafe { command.pre_exec(adopt) })
}

/// [`Command::status`]
///
/// # Errors
/// The same.
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    let (mut child, _awaited) = spawn(command)?;
    child.wait()
}

/// [`Command::output`]
///
/// # Errors
/// The same.
pub fn output(command: &mut Command) -> io::Result<Output> {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (child, _awaited) = spawn(piped)?;
    child.wait_with_output()
}

/// Makes this process a subreaper: it gets, and reaps, the orphans of its descendants from now on.
///
/// # Errors
/// If `prctl` or the start of a thread fails.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    orphans().get_or_insert_default();
    reap_orphans()
}

/// Reaps orphans from now on, if this process is PID 1 of its PID namespace.
///
/// # Errors
/// If the start of a thread fails.
pub fn reap_as_init() -> io::Result<()> {
    if getpid() == Pid::INIT { reap_orphans() } else { Ok(()) }
}

fn reap_orphans() -> io::Result<()> {
    static STARTED: Once = Once::new();
    let mut started = Ok(());
    STARTED.call_once(|| {
        let reaper = thread::Builder::new().name("bursar-reaper".into()).spawn(reap_for_ever);
        started = reaper.map(drop).map_err(|error| {
            io::Error::new(error.kind(), format!("the thread that reaps orphans cannot be started: {error}"))
        });
    });
    started
}

fn reap_for_ever() {
    loop {
        match wait::next_to_end() {
            Ok(pid) if !known().awaited.contains(&pid) => reap(pid),
            Ok(_) => {
                // Its owner reaps it. Until then `waitid` returns only this child.
                procfs::children(own()).into_iter().filter(|pid| !known().awaited.contains(pid)).for_each(reap);
                pause();
            }
            // No children.
            Err(_) => pause(),
        }
    }
}

/// Reaps an ended child that is not waited for elsewhere.
fn reap(pid: i32) {
    let mut known = known();
    while known.holds > 0 {
        known = CHANGED.wait(known).unwrap_or_else(PoisonError::into_inner);
    }
    if !known.awaited.contains(&pid) {
        // After reaping, its name and start time are gone.
        let stat = procfs::stat(pid).ok();
        let ended = wait::wait4(pid, false).ok().flatten();
        let mut orphans = orphans();
        let kept = orphans.as_mut().filter(|kept| kept.len() < MOST_ORPHANS);
        if let Some(((kept, stat), ended)) = kept.zip(stat).zip(ended) {
            kept.push(Orphan { pid, stat, ended });
        }
    }
}

/// Waits for a change, or for the polling interval.
fn pause() {
    let _ = CHANGED.wait_timeout(known(), PAUSE);
}

fn own() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn orphans() -> MutexGuard<'static, Option<Vec<Orphan>>> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Awaited {
    fn drop(&mut self) {
        known().awaited.remove(&self.0);
        CHANGED.notify_all();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        known().holds -= 1;
        CHANGED.notify_all();
    }
}
