//! What can go wrong with a pool, as sentences that a person can act on.

use std::io;
use std::path::PathBuf;

use linux::becoming_root::{Capability, helps};
use model::Bytes;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that cannot be one of a directory.
    #[error("'{0}' is no name for a pool: write letters, digits, '-', '_' and '.', at most 64, and no '.' first")]
    Name(String),
    /// The socket's path is longer than the kernel takes.
    #[error("{0} is too long for a socket (107 bytes): choose a shorter name, or a shorter BURSAR_POOLS")]
    Long(PathBuf),
    /// There is one of this name.
    #[error("there is a pool '{0}' already: `bursar pool grow` makes it larger, `bursar pool destroy {0}` removes it")]
    Exists(String),
    /// Interrupted while it was made.
    #[error("interrupted: there is no pool '{0}', and what was reserved for it is given back")]
    GivenUp(String),
    /// There is none of this name.
    #[error("there is no pool '{0}'; `bursar pool status` lists those that there are")]
    None(String),
    /// A user who is not root.
    #[error("{0} a pool needs root{how}", how = if helps(Capability::SysAdmin) { ": run it with sudo" } else { "" })]
    NotRoot(&'static str),
    /// A user who may not connect.
    #[error("this user may not ask the broker of pool '{0}': `bursar pool create --owner USER` says who may")]
    Forbidden(String),
    /// A page size that the kernel does not have.
    #[error("there are no pages of {}; there are {}", .wanted, .there.iter().map(Bytes::to_string).collect::<Vec<_>>().join(", "))]
    PageSize {
        /// Asked for.
        wanted: Bytes,
        /// What there is.
        there: Vec<Bytes>,
    },
    /// A node that is not there, or has no memory.
    #[error("there is no node {wanted} with memory; there is {}", numbers(.there))]
    Node {
        /// Asked for.
        wanted: u32,
        /// What there is.
        there: Vec<u32>,
    },
    /// More than the machine can give.
    #[error("{wanted} are more than the {available} that are available on node {}: choose a smaller size", numbers(.nodes))]
    Memory {
        /// Asked for, whole segments.
        wanted: Bytes,
        /// What there is.
        available: Bytes,
        /// Where.
        nodes: Vec<u32>,
    },
    /// A limit of the hugetlb controller is lower.
    #[error(
        "the hugetlb controller allows {} more in pages of {page}, and {wanted} are needed: raise {}, or choose a smaller size, \
         or make the pool from another cgroup",
        Bytes(.room.bytes), .room.file.display()
    )]
    HugetlbLimit {
        /// The limit.
        room: linux::cgroup::HugetlbRoom,
        /// Asked for, whole segments.
        wanted: Bytes,
        /// Size of a page.
        page: Bytes,
    },
    /// Fewer huge pages than needed; what was had was given back.
    #[error(
        "only {had} of {wanted} could be had in pages of {page} on node {node}, and were given back: choose a smaller \
         size, or free memory first (`sync; echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory`)"
    )]
    Short {
        /// Could be had.
        had: Bytes,
        /// Were needed.
        wanted: Bytes,
        /// Size of a page.
        page: Bytes,
        /// Where.
        node: u32,
    },
    /// No memory of the device-dax kind.
    #[error(
        "there is no device in /sys/bus/dax/devices: device-dax needs memory set apart at boot \
         (memmap=SIZE%ADDRESS-1+0xefffffff) and the modules dax_hmem and device_dax; `--backend hugetlb` needs neither"
    )]
    NoDax,
    /// Devices that are too few.
    #[error("the free dax devices have {there}, fewer than {wanted}: choose a smaller size")]
    DaxShort {
        /// What there is.
        there: Bytes,
        /// Asked for.
        wanted: Bytes,
    },
    /// A user or group that is not known.
    #[error("there is no {kind} '{name}'")]
    Unknown {
        /// `user` or `group`.
        kind: &'static str,
        /// Asked for.
        name: String,
    },
    /// Nobody serves the pool.
    #[error("no broker answers for pool '{0}': start it with `bursar pool serve {0}`")]
    NoBroker(String),
    /// Somebody else serves it.
    #[error("another broker serves pool '{0}'")]
    Served(String),
    /// The broker ended while it was asked, or has too much to do.
    #[error("the broker of pool '{name}' gave no answer; {} may say why", .log.display())]
    Silent {
        /// The pool.
        name: String,
        /// Its log.
        log: PathBuf,
    },
    /// Its answer is none to what it was asked.
    #[error("the broker of pool '{0}' is of another version: end it, and start it with `bursar pool serve {0}`")]
    Misunderstood(String),
    /// The broker says no.
    #[error("{0}")]
    Denied(String),
    /// Processes have memory of the pool.
    #[error("pool '{name}' is in use by {holders}: wait for their end{way_out}")]
    InUse {
        /// The pool.
        name: String,
        /// PIDs and names.
        holders: String,
        /// What can be done at once, as a clause; empty: nothing.
        way_out: &'static str,
    },
    /// The state file does not read as one.
    #[error("{} is not the state of a pool: {why}", .path.display())]
    State {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file, socket or directory of the pool.
    #[error("{what} {}: {source}", .path.display())]
    File {
        /// What was to be done, such as `cannot write`.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] linux::Error),
}

impl Error {
    /// For `map_err`: an error of a file.
    pub(crate) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { what, path, source }
    }
}

fn numbers(nodes: &[u32]) -> String {
    nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
