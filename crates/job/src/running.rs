//! A job that runs.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linux::children::{self, Awaited};
use linux::procfs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::{Ended, Error};

/// How long an end may go unseen where the kernel does not say when it comes.
const UNSEEN: Duration = Duration::from_millis(1);

/// The command, running.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    /// `None`: it could not be had, and the command is asked for again and again.
    descriptor: Option<OwnedFd>,
    started: Instant,
    _awaited: Awaited,
}

impl Running {
    /// The command runs already, so that nothing here may fail.
    pub(crate) fn new(pid: i32, started: Instant, awaited: Awaited) -> Running {
        let descriptor = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Running { pid, descriptor, started, _awaited: awaited }
    }

    /// Its PID.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// When it was let go.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Waits until the command ends, at most `patience`. `Some`: it ended, with the wall time in seconds.
    ///
    /// # Errors
    /// What `wait4` says. An interrupting signal ends the wait early with `None`.
    pub fn wait(&self, patience: Duration) -> Result<Option<(Ended, f64)>, Error> {
        match self.descriptor.as_ref().map(|descriptor| await_end(descriptor, patience)) {
            Some(Ok(0) | Err(rustix::io::Errno::INTR)) => return Ok(None),
            Some(Ok(_)) => {}
            // Without memory or descriptors for it the command is followed all the same.
            None | Some(Err(_)) => std::thread::sleep(patience.min(UNSEEN)),
        }
        let wall = self.started.elapsed().as_secs_f64();
        // What children have moved is to be this one's alone.
        let _hold = children::hold();
        let moved = procfs::moved(self.pid);
        let waited_for_none = procfs::stat(self.pid).is_ok_and(|stat| stat.reaped_faults == 0);
        let before = if moved.is_none() { procfs::moved_by_children() } else { None };
        let ended = linux::wait::wait4(self.pid, false).map_err(Error::system("wait for the command"))?;
        let moved = moved.or_else(|| Some(procfs::moved_by_children()?.since(before?)));
        Ok(ended.map(|ended| (Ended { moved, waited_for_none, ..ended }, wall)))
    }

    /// Sends a signal to the command itself. One that has ended already is no error.
    pub fn signal(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else { return };
        let _ = match (&self.descriptor, Pid::from_raw(self.pid)) {
            (Some(descriptor), _) => pidfd_send_signal(descriptor, signal),
            // Until it has been waited for the PID is nobody else's.
            (None, Some(pid)) => kill_process(pid, signal),
            (None, None) => Ok(()),
        };
    }
}

/// Whether the process has ended, 1 or 0, at the latest after `patience`.
fn await_end(descriptor: &OwnedFd, patience: Duration) -> rustix::io::Result<usize> {
    let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout))
}
