//! Signals: what the command would get without bursar, it gets with bursar.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linux::signals;
use rustix::process::{Resource, Rlimit, getpid, setrlimit};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH, SIGXFSZ,
};
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::{Cause, Origin};

/// Caught from the start, so that a command that is just being started does not lose them. The others end bursar until there
/// is a command.
const FROM_THE_START: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

/// A stop waits no longer for a command that is being started.
const LONGEST_START: Duration = Duration::from_secs(1);

/// Signals within this time are one request to end.
const ONE_REQUEST: Duration = Duration::from_millis(200);

/// While it lives, signals sent to bursar go to the job and do not end bursar: all that can be caught
/// ([`signals::forwardable`]). Those that the terminal sends reach the job without us, since it is in our process group; they
/// are only remembered. When the job is to stop (SIGTSTP), bursar stops too, so that a shell's job control sees it.
#[derive(Debug)]
pub struct Forwarding {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    target: Arc<(Mutex<Target>, Condvar)>,
    requests_to_end: Arc<AtomicU32>,
    /// The signal of the first of them; 0: none yet.
    stopped_by: Arc<AtomicI32>,
}

/// Whose the signals are.
#[derive(Debug, Default)]
struct Target {
    pid: Option<i32>,
    /// Sent while there was nobody: the next one's. A command that is just being started must not lose them.
    waiting: Vec<i32>,
    /// One is being started.
    is_expected: bool,
}

impl Forwarding {
    /// Starts forwarding, to nobody yet.
    ///
    /// # Errors
    /// What `sigaction` says.
    pub fn start() -> std::io::Result<Forwarding> {
        let mut received = SignalsInfo::<WithOrigin>::new(FROM_THE_START)?;
        let handle = received.handle();
        let target = Arc::new((Mutex::new(Target::default()), Condvar::new()));
        let requests_to_end = Arc::new(AtomicU32::new(0));
        let stopped_by = Arc::new(AtomicI32::new(0));
        let (to, noted, first) = (target.clone(), requests_to_end.clone(), stopped_by.clone());
        let receive = move || {
            signals::unblock_here(signals::forwardable());
            let mut asked: Option<Instant> = None;
            for origin in received.forever() {
                if asks_to_stop(origin.signal) && asked.is_none_or(|asked| asked.elapsed() >= ONE_REQUEST) {
                    asked = Some(Instant::now());
                    let _ = first.compare_exchange(0, origin.signal, Ordering::SeqCst, Ordering::SeqCst);
                    noted.fetch_add(1, Ordering::SeqCst);
                }
                if is_to_be_forwarded(&origin) {
                    let mut target = lock(&to.0);
                    if origin.signal == SIGTSTP {
                        // A command that is being started would run on while bursar has stopped and cannot tell it.
                        let is_expected = |target: &mut Target| target.pid.is_none() && target.is_expected;
                        target =
                            to.1.wait_timeout_while(target, LONGEST_START, is_expected)
                                .unwrap_or_else(PoisonError::into_inner)
                                .0;
                    }
                    match target.pid {
                        Some(pid) => send(pid, origin.signal),
                        None if target.waiting.contains(&origin.signal) => {}
                        None => target.waiting.push(origin.signal),
                    }
                }
                // In this thread: what comes next is forwarded when signals are caught again.
                if origin.signal == SIGTSTP {
                    signals::take_default_action(SIGTSTP);
                }
            }
            // Its end would close its socket before it removes its handlers. A signal in between would write to what is closed, which
            // brings SIGPIPE, whose handler writes there, too, for ever. There is one in a process, for nearly as long as the process.
            std::mem::forget(received);
        };
        let thread = std::thread::Builder::new().name("bursar-signals".into()).spawn(receive);
        let thread = thread.map_err(|error| {
            std::io::Error::new(error.kind(), format!("the thread that forwards signals cannot be started: {error}"))
        })?;
        Ok(Forwarding { handle, thread: Some(thread), target, requests_to_end, stopped_by })
    }

    /// A command begins soon: catches all that can be forwarded to it.
    pub(crate) fn expect_command(&self) {
        // One that cannot be caught keeps its default action.
        signals::forwardable().for_each(|signal| _ = self.handle.add_signal(signal));
        lock(&self.target.0).is_expected = true;
    }

    /// Whose the signals are from now on, and those that came while they were nobody's; 0: nobody's.
    pub fn set_target(&self, pid: i32) {
        let mut target = lock(&self.target.0);
        target.pid = Some(pid).filter(|pid| *pid > 0);
        target.is_expected = false;
        let waiting = std::mem::take(&mut target.waiting);
        if let Some(pid) = target.pid {
            waiting.into_iter().for_each(|signal| send(pid, signal));
        }
        self.target.1.notify_all();
    }

    /// Whether somebody has asked us to stop (Ctrl-C, SIGTERM, a hang-up) since the start.
    pub fn interrupted(&self) -> bool {
        self.stopped_by().is_some()
    }

    /// The signal that asked for it first.
    pub fn stopped_by(&self) -> Option<i32> {
        Some(self.stopped_by.load(Ordering::SeqCst)).filter(|signal| *signal > 0)
    }

    /// How often. Signals that come together are one request: `timeout` sends SIGTERM to its child and to the child's group.
    pub fn requests_to_end(&self) -> u32 {
        self.requests_to_end.load(Ordering::SeqCst)
    }
}

/// Whether somebody asks for the end of what bursar does. A search under `nohup` goes on when the terminal closes.
fn asks_to_stop(signal: i32) -> bool {
    let is_ignored = signals::ignored_at_start() >> (signal - 1) & 1 != 0;
    matches!(signal, SIGINT | SIGTERM | SIGHUP | SIGQUIT) && !is_ignored
}

/// Whether the command would have got a signal in our place, and does not get it anyway.
fn is_to_be_forwarded(origin: &Origin) -> bool {
    match origin.cause {
        // The kernel sends these in bursar's own name when bursar cannot write.
        Cause::Sent(_) if matches!(origin.signal, SIGPIPE | SIGXFSZ) => {
            origin.process.is_none_or(|process| process.pid != getpid().as_raw_nonzero().get())
        }
        Cause::Sent(_) => true,
        // A closed terminal signals only the session's leader. An alarm that was set before bursar began would be the command's.
        _ => (origin.signal == SIGHUP && linux::procfs::leads_session()) || origin.signal == SIGALRM,
    }
}

/// To a process that may have ended meanwhile.
fn send(pid: i32, signal: i32) {
    let _ = signals::send(pid, signal);
}

fn lock(target: &Mutex<Target>) -> MutexGuard<'_, Target> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Ends this process the way the command ended: by the same signal, so that a shell sees no difference. Writes no core.
/// Returns, with the status to exit with, only where the signal does not end us, as in PID 1 of a container.
pub fn end_like(signal: i32) -> i32 {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    signals::take_default_action(signal);
    128 + signal
}
