//! The agent: looks at the machine's memory cgroups again and again, and tells what it saw to whoever asks over HTTP, in
//! Prometheus' text or in OpenMetrics. Changes nothing, and needs no rights beyond reading the cgroups' files.
//!
//! One thread does it all: it waits for the next look, for clients and for the signal to end at once. No client can keep it
//! from looking: each has a time and a place of its own, and the oldest makes room.

mod agent;
mod error;
mod exposition;
mod http;
mod identity;
mod metrics;
mod server;
mod watched;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub use agent::Settings;
pub use error::Error;

use agent::Agent;
use server::Server;

/// Serves until SIGTERM or SIGINT. `tell` is called with what the operator should know.
///
/// # Errors
/// [`Error::InUse`], [`Error::Listen`], and [`Error::Linux`] where no cgroups are to be seen.
pub fn serve(listen: SocketAddr, interval: Duration, settings: Settings, tell: &dyn Fn(&str)) -> Result<(), Error> {
    let mut agent = Agent::new(settings)?;
    let mut server = Server::bind(listen)?;
    agent.look();
    tell(&format!("{} on http://{}/metrics", agent.sentence(), server.address()));
    let mut due = Instant::now() + interval;
    while !server.serve_until(due, &mut |request, counts| agent.answer(request, counts))? {
        agent.look();
        // A look that took longer than the interval is not made up for.
        due = (due + interval).max(Instant::now());
    }
    Ok(())
}
