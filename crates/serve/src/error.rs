//! What can go wrong, as sentences that a person can act on.

use std::io;
use std::net::SocketAddr;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else listens there.
    #[error("port {} of {} is in use by another program; name another one with --listen ADDRESS:PORT", .0.port(), .0.ip())]
    InUse(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The wait for clients failed.
    #[error("cannot wait for clients: {0}")]
    Wait(io::Error),
    /// The thread that looks at the cgroups could not be had.
    #[error("cannot start the thread that scans the cgroups: {0}")]
    Thread(#[source] io::Error),
    /// A pattern that is none.
    #[error("'{0}' is not a cgroup's path or pattern: {1}")]
    Pattern(String, glob::PatternError),
    /// The kernel's.
    #[error(transparent)]
    Linux(#[from] linux::Error),
}
