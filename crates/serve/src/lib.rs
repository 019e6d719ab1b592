//! The agent: scans the host's memory cgroups at an interval and serves the results over HTTP, in Prometheus' text format or in
//! OpenMetrics. It changes nothing, and needs no rights beyond reading the cgroups' files.
//!
//! One thread scans the cgroups; another answers clients from the last complete scan, and waits for the signal to end. Neither
//! waits for the other: a scan that takes long delays no answer, and a signal ends a scan within one cgroup.

mod agent;
mod error;
mod exposition;
mod http;
mod identity;
mod metrics;
mod named;
mod pace;
mod server;
mod watched;

use std::net::SocketAddr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use agent::Settings;
pub use error::Error;
pub use named::{NameError, find};

use agent::{Agent, Answers, Published};
use pace::Pace;
use server::Server;

/// Longest wait of the server's loop.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Serves until SIGTERM or SIGINT. `report` is called with messages for the operator: once after the first scan, and when scans
/// cost so much CPU time that the agent waits longer than `interval`.
///
/// # Errors
/// [`Error::InUse`], [`Error::Listen`], and [`Error::Linux`] where there are no memory cgroups.
pub fn serve(
    listen: SocketAddr,
    interval: Duration,
    settings: Settings,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), Error> {
    let mut agent = Agent::new(settings)?;
    let mut server = Server::bind(listen)?;
    let published = Published::default();
    let is_over = AtomicBool::new(false);
    let address = server.address();
    thread::scope(|scope| {
        let scan = || {
            let mut pace = Pace::new(interval);
            loop {
                let begin = Instant::now();
                let Some(cpu) = agent.scan(&is_over) else { return };
                let changed = pace.after(cpu, agent.len());
                *published.lock().unwrap_or_else(PoisonError::into_inner) = Some(agent.shown(pace.interval()));
                if agent.own.looks == 1 {
                    report(&format!("{} on http://{address}/metrics", agent.sentence()));
                }
                if let Some(changed) = changed {
                    report(&changed);
                }
                // A scan that took longer than the interval is not made up for.
                let due = begin + pace.interval();
                while Instant::now() < due && !is_over.load(Ordering::Relaxed) {
                    thread::park_timeout(due.saturating_duration_since(Instant::now()));
                }
            }
        };
        let scanner = thread::Builder::new().spawn_scoped(scope, scan).map_err(Error::Thread)?;
        let mut answers = Answers::new(&published);
        let ended = loop {
            match server.serve_until(Instant::now() + PATIENCE, &mut |request, counts| answers.answer(request, counts))
            {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        is_over.store(true, Ordering::Relaxed);
        scanner.thread().unpark();
        ended
    })
}
