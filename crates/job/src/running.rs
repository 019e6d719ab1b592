//! A job that runs.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linux::children::{self, Awaited};
use linux::procfs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{Ended, Error};

/// The command, running.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    descriptor: OwnedFd,
    started: Instant,
    _awaited: Awaited,
}

impl Running {
    pub(crate) fn new(pid: i32, started: Instant, awaited: Awaited) -> Result<Running, Error> {
        let unknown = || Error::System { doing: "follow the command", source: io::ErrorKind::InvalidData.into() };
        let descriptor = pidfd_open(Pid::from_raw(pid).ok_or_else(unknown)?, PidfdFlags::empty())
            .map_err(|e| Error::system("follow the command by a pidfd (Linux 5.3 or newer)")(e.into()))?;
        Ok(Running { pid, descriptor, started, _awaited: awaited })
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
    /// What `poll` or `wait4` say. An interrupting signal ends the wait early with `None`.
    pub fn wait(&self, patience: Duration) -> Result<Option<(Ended, f64)>, Error> {
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        let mut descriptors = [PollFd::new(&self.descriptor, PollFlags::IN)];
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(e) => return Err(Error::system("wait for the command")(e.into())),
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
        if let Some(signal) = Signal::from_named_raw(number) {
            let _ = pidfd_send_signal(&self.descriptor, signal);
        }
    }
}
