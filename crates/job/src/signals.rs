//! Signals: what the command would get without bursar, it gets with bursar.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::Cause;

const FORWARDED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

/// Mask of the signals that this process was started with ignored, bit 0 for signal 1: SIGHUP under `nohup`, SIGINT and
/// SIGQUIT of a background job of a script. Read before the first handler takes their place.
pub(crate) fn ignored_at_start() -> u64 {
    static IGNORED: OnceLock<u64> = OnceLock::new();
    // Rust's runtime ignores SIGPIPE by itself, and resets it for what it starts.
    *IGNORED.get_or_init(|| linux::procfs::ignored_signals() & !(1 << (SIGPIPE - 1)))
}

/// While it lives, signals sent to bursar go to the job and do not end bursar. Those that the terminal sends reach the
/// job without us, since it is in our process group; they are only remembered.
pub struct Forwarding {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    target: Arc<Mutex<Target>>,
    interrupted: Arc<AtomicBool>,
}

/// Whose the signals are.
#[derive(Default)]
struct Target {
    pid: Option<Pid>,
    /// Sent while there was nobody: the next one's. A command that is just being started must not lose them.
    waiting: Vec<Signal>,
}

impl Forwarding {
    /// Starts forwarding, to nobody yet.
    ///
    /// # Errors
    /// What `sigaction` says.
    pub fn start() -> std::io::Result<Forwarding> {
        let ignored = ignored_at_start();
        let mut signals = SignalsInfo::<WithOrigin>::new(FORWARDED)?;
        let handle = signals.handle();
        let target = Arc::new(Mutex::new(Target::default()));
        let interrupted = Arc::new(AtomicBool::new(false));
        let (to, noted) = (target.clone(), interrupted.clone());
        let thread = std::thread::spawn(move || {
            for origin in signals.forever() {
                // A search under `nohup` goes on when the terminal closes.
                let is_ignored = ignored >> (origin.signal - 1) & 1 != 0;
                if matches!(origin.signal, SIGINT | SIGTERM | SIGHUP | SIGQUIT) && !is_ignored {
                    noted.store(true, Ordering::SeqCst);
                }
                // A closed terminal tells only the session's leader, which the command would be without us.
                let is_ours_alone = origin.signal == SIGHUP && linux::procfs::leads_session();
                if matches!(origin.cause, Cause::Sent(_)) || is_ours_alone {
                    let Some(signal) = Signal::from_named_raw(origin.signal) else { continue };
                    let mut target = lock(&to);
                    match target.pid {
                        Some(pid) => send(pid, signal),
                        None if target.waiting.contains(&signal) => {}
                        None => target.waiting.push(signal),
                    }
                }
            }
        });
        Ok(Forwarding { handle, thread: Some(thread), target, interrupted })
    }

    /// Whose the signals are from now on, and those that came while they were nobody's; 0: nobody's.
    pub fn set_target(&self, pid: i32) {
        let mut target = lock(&self.target);
        target.pid = Pid::from_raw(pid);
        let waiting = std::mem::take(&mut target.waiting);
        if let Some(pid) = target.pid {
            waiting.into_iter().for_each(|signal| send(pid, signal));
        }
    }

    /// Whether somebody has asked us to stop (Ctrl-C, SIGTERM, a hang-up) since the start.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }
}

/// To a process that may have ended meanwhile.
fn send(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
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
/// Returns, with the status to exit with, only where the signal does not end us.
pub fn end_like(signal: i32) -> i32 {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if signal == signal_hook::consts::SIGKILL {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    128 + signal
}
