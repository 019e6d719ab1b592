//! Errors of pools, as messages that say what to do.

use std::io;
use std::path::PathBuf;

use linux::becoming_root::{Capability, helps};
use model::Bytes;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not usable as a directory name.
    #[error("'{0}' is no name for a pool: write letters, digits, '-', '_' and '.', at most 64, and no '.' first")]
    Name(String),
    /// The socket's path is longer than the kernel allows.
    #[error("{0} is too long for a socket (107 bytes): choose a shorter name, or a shorter BURSAR_POOLS")]
    Long(PathBuf),
    /// A pool of this name exists.
    #[error("pool '{0}' exists already: `bursar pool grow` makes it larger, `bursar pool destroy {0}` removes it")]
    Exists(String),
    /// Interrupted during creation.
    #[error("interrupted: pool '{0}' was not created, and its reserved memory was released")]
    Cancelled(String),
    /// No pool of this name exists.
    #[error("there is no pool '{0}'; `bursar pool status` lists the pools")]
    None(String),
    /// A user who is not root.
    #[error("{0} a pool needs root{how}", how = if helps(Capability::SysAdmin) { ": run it with sudo" } else { "" })]
    NotRoot(&'static str),
    /// A user who may not connect.
    #[error("this user may not connect to the broker of pool '{0}': `bursar pool create --owner USER` sets who may")]
    Forbidden(String),
    /// A page size that is not available.
    #[error("there are no pages of {}; there are {}", .wanted, .available.iter().map(Bytes::to_string).collect::<Vec<_>>().join(", "))]
    PageSize {
        /// The requested size.
        wanted: Bytes,
        /// Available sizes.
        available: Vec<Bytes>,
    },
    /// A node that does not exist or has no memory.
    #[error("there is no node {wanted} with memory; there is {}", numbers(.available))]
    Node {
        /// The requested node.
        wanted: u32,
        /// Nodes with memory.
        available: Vec<u32>,
    },
    /// More than the available memory.
    #[error("{wanted} are more than the {available} that are available on node {}: choose a smaller size", numbers(.nodes))]
    Memory {
        /// Requested, in whole segments.
        wanted: Bytes,
        /// Available on the nodes.
        available: Bytes,
        /// The nodes.
        nodes: Vec<u32>,
    },
    /// The limit of the hugetlb controller is too low.
    #[error(
        "the hugetlb controller allows {} more in pages of {page}, and {wanted} are needed: raise {}, or choose a smaller size, \
         or make the pool from another cgroup",
        Bytes(.room.bytes), .room.file.display()
    )]
    HugetlbLimit {
        /// The limit.
        room: linux::cgroup::HugetlbRoom,
        /// Requested, in whole segments.
        wanted: Bytes,
        /// Size of a page.
        page: Bytes,
    },
    /// Fewer huge pages than needed; those reserved were released.
    #[error(
        "only {had} of {wanted} could be reserved in pages of {page} on node {node}, and were released: choose a smaller \
         size, or free memory first (`sync; echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory`)"
    )]
    Short {
        /// Could be reserved.
        had: Bytes,
        /// Requested.
        wanted: Bytes,
        /// Size of a page.
        page: Bytes,
        /// The node.
        node: u32,
    },
    /// No device-dax memory.
    #[error(
        "there is no device in /sys/bus/dax/devices: device-dax needs memory set apart at boot \
         (memmap=SIZE%ADDRESS-1+0xefffffff) and the modules dax_hmem and device_dax; `--backend hugetlb` needs neither"
    )]
    NoDax,
    /// Too little memory in dax devices.
    #[error("the free dax devices have {available}, fewer than {wanted}: choose a smaller size")]
    DaxShort {
        /// Available.
        available: Bytes,
        /// Requested.
        wanted: Bytes,
    },
    /// An unknown user or group.
    #[error("there is no {kind} '{name}'")]
    Unknown {
        /// `user` or `group`.
        kind: &'static str,
        /// The given name.
        name: String,
    },
    /// The pool has no broker.
    #[error("no broker answers for pool '{0}': start it with `bursar pool serve {0}`")]
    NoBroker(String),
    /// The pool has another broker.
    #[error("another broker serves pool '{0}'")]
    Served(String),
    /// The broker ended during the request, or did not answer in time.
    #[error("the broker of pool '{name}' gave no answer; {} may say why", .log.display())]
    Silent {
        /// The pool.
        name: String,
        /// Its log.
        log: PathBuf,
    },
    /// The answer does not fit the request.
    #[error("the broker of pool '{0}' is of another version: end it, and start it with `bursar pool serve {0}`")]
    Misunderstood(String),
    /// The broker refuses.
    #[error("{0}")]
    Denied(String),
    /// Processes hold memory of the pool.
    #[error("pool '{name}' is in use by {holders}: wait for their end{way_out}")]
    InUse {
        /// The pool.
        name: String,
        /// PIDs and names.
        holders: String,
        /// What can be done at once, as a clause; empty: nothing.
        way_out: &'static str,
    },
    /// The state file is malformed.
    #[error("{} is not the state of a pool: {why}", .path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// An operation on a file, socket or directory of the pool failed.
    #[error("{what} {}: {source}", .path.display())]
    File {
        /// The failed operation, for example `cannot write`.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An error of the kernel interface.
    #[error(transparent)]
    Kernel(#[from] linux::Error),
}

impl Error {
    /// For `map_err`: makes an [`Error::File`].
    pub(crate) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { what, path, source }
    }
}

fn numbers(nodes: &[u32]) -> String {
    nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
