//! What runs are made on: the place for their cgroups, the journal, the switches that are on while they run.

use std::time::{SystemTime, UNIX_EPOCH};

use job::Forwarding;
use linux::journal::{Guard, Journal};
use linux::place::Place;
use linux::{delayacct, procfs};
use model::{Header, RecordKind};
use sample::IoWait;

/// Set up once, before the first run; everything it changed is put back when it is dropped.
pub struct Bench {
    /// Who gets our signals, and whether we were asked to stop.
    pub signals: Forwarding,
    /// Where jobs' cgroups are made.
    pub place: Place,
    /// What is to be undone.
    pub journal: Journal,
    /// Where the I/O wait share comes from.
    pub io_wait: IoWait,
    /// What the reader should know.
    pub notes: Vec<String>,
    _delay_accounting: Option<Guard>,
}

impl Bench {
    /// Finds a place and switches delay accounting on where that is allowed.
    pub fn set_up() -> anyhow::Result<Bench> {
        let journal = Journal::open()?;
        let mut notes: Vec<String> = journal.warning().map(Into::into).into_iter().collect();
        let guard = delayacct::enable(&journal).unwrap_or_else(|error| {
            notes.push(format!("{error}"));
            None
        });
        let io_wait = match delayacct::is_on() {
            Some(true) => IoWait::DelayAccounting,
            _ => IoWait::SampledState,
        };
        let signals = Forwarding::start()?;
        Ok(Bench { signals, place: Place::find(), journal, io_wait, notes, _delay_accounting: guard })
    }

    /// The first entry of a record.
    pub fn header(&self, kind: RecordKind, command: &[std::ffi::OsString], swap: &str) -> Header {
        Header {
            kind,
            bursar_version: env!("CARGO_PKG_VERSION").into(),
            host: procfs::hostname(),
            boot_id: procfs::boot_id().unwrap_or_default(),
            kernel: procfs::kernel_release(),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            memory_bytes: procfs::meminfo().map_or(0, |m| m.total),
            page_bytes: procfs::page_bytes(),
            command: command.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            directory: std::env::current_dir().map(|d| d.to_string_lossy().into_owned()).unwrap_or_default(),
            started_unix_ns: unix_ns(),
            placement: self.place.describe(),
            swap: swap.into(),
            options: Default::default(),
        }
    }
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}
