//! Serves a command's processes with pre-populated memory: from a pool, or from the kernel's huge pages.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use linux::pools;
use provision::prezero::Prezero;
use provision::state::Directory;
use provision::stats::{Error, ProcessStats};

use crate::inside;
use crate::spool::PerhapsSpool;

/// The folder of the processes' statistics, the pool's socket, and the thread that zeroes freed memory.
pub struct Serving {
    folder: PerhapsSpool,
    socket: Option<PathBuf>,
    /// `None`: the runtime zeroes reused memory when it serves it.
    prezero: Option<Prezero>,
}

/// The memory that the processes of a command were served.
pub struct Served {
    /// Statistics of each process.
    pub stats: Vec<ProcessStats>,
    /// CPU time of the zeroing thread; `None`: no such thread ran.
    pub zeroing_cpu_seconds: Option<f64>,
    /// Files that could not be read, as sentences.
    pub notes: Vec<String>,
}

impl Serving {
    /// Starts serving from `pool`, which the caller has checked; `None`: from the kernel's huge pages.
    pub fn start(pool: Option<&str>) -> Serving {
        let folder = PerhapsSpool::create("bursar-provision-");
        let prezero =
            pool.filter(|_| folder.trouble().is_none()).and_then(|_| Prezero::start(folder.path()).ok().flatten());
        Serving { folder, socket: pool.map(pools::socket), prezero }
    }

    /// Environment variables that the runtime reads (`preload/abi.h`).
    pub fn variables(&self) -> Vec<(String, OsString)> {
        let folder = ("BURSAR_PROVISION".to_string(), self.folder.path().into());
        let socket = self.socket.as_ref().map(|socket| ("BURSAR_POOL".to_string(), socket.into()));
        socket.into_iter().chain([folder]).collect()
    }

    /// The folder to which the processes write their statistics.
    pub fn folder(&self) -> &PerhapsSpool {
        &self.folder
    }

    /// Ends serving and reads the statistics, after the command has ended.
    pub fn end(self) -> Served {
        let zeroing_cpu_seconds = self.prezero.map(|prezero| prezero.end().as_secs_f64());
        let (stats, notes) = read(self.folder.path());
        Served { stats, zeroing_cpu_seconds, notes }
    }
}

/// Checks that the pool `name` exists and answers.
///
/// # Errors
/// A sentence if there is no such pool, if it is not for this user, or if its broker does not answer.
pub fn check(name: &str) -> anyhow::Result<()> {
    Directory::of(name)?;
    let names = pools::names();
    if !names.iter().any(|there| there == name) {
        let others = match names.is_empty() {
            true => "and no other; `bursar pool create` makes one".into(),
            false => format!("but there are: {}", names.join(", ")),
        };
        bail!("there is no pool '{name}' in {}, {others}", pools::folder().display());
    }
    let socket = pools::socket(name);
    let answered = pools::answers(&socket);
    if answered.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        bail!(
            "pool {name} is not for this user; who makes a pool says who may use it: `bursar pool create --owner, --mode`"
        );
    }
    answered.with_context(|| {
        let others: Vec<_> = names.into_iter().filter(|other| pools::answers(&pools::socket(other)).is_ok()).collect();
        let others = if others.is_empty() { "none".into() } else { others.join(", ") };
        format!(
            "the broker of pool {name} does not answer at {} (`bursar pool serve {name}` starts it; pools that answer: {others})",
            socket.display()
        )
    })
}

/// The statistics of each process, and a sentence for each file that cannot be read.
pub fn read(folder: &Path) -> (Vec<ProcessStats>, Vec<String>) {
    inside::read_files(folder, "provision.", |bytes| match ProcessStats::read(bytes) {
        Err(Error::NothingYet) => Ok(None),
        read => read.map(Some),
    })
}
