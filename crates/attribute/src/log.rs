//! The log of one process, as `preload/abi.h` describes it.

use std::collections::BTreeMap;

use model::{MemoryKind, Messages};

use runtime_abi::{LOG_KINDS, LOG_MAGIC, LOG_VERSION, LogEntry, LogReason};

use crate::kernel::Unseen;

/// No process has as much (64 TiB): a figure beyond it is damage, and sums never overflow.
const MOST_KIB: u64 = 1 << 36;

/// What one process logged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessLog {
    /// Whose log it is.
    pub started: Started,
    /// Shared objects by id; the executable is 1.
    pub objects: BTreeMap<u64, Object>,
    /// What the totals' owners stand for. 0 to 2 are not among them.
    pub owners: BTreeMap<u64, Owner>,
    /// What changed, in order of time.
    pub totals: Vec<Totals>,
    /// The same by who touched it first; empty where that was not followed.
    pub touched: Vec<Totals>,
    /// What it obtained since the last totals; `None`: less than is told of.
    pub grown: Option<Grown>,
    /// Entries of components' libraries by id.
    pub functions: BTreeMap<u64, Function>,
    /// By function: the last that was told.
    pub calls: BTreeMap<u64, Calls>,
    /// By function: nanoseconds between entering and leaving it, as last told; empty: not measured.
    pub durations: BTreeMap<u64, u64>,
    /// Point-to-point messages by the rank they went to: the last that was told. `None` is a rank of another world.
    pub sent: BTreeMap<Option<u32>, Messages>,
    /// Phases, in order of time.
    pub marks: Vec<Mark>,
    /// Sentences for the reader.
    pub notes: Vec<String>,
    /// How it ended; `None`: killed, or still running.
    pub ended: Option<End>,
    /// What was resident at its peak and at no look, as the kernel says; in `totals`, as unattributed.
    pub unseen: Option<Unseen>,
    /// The log is whole to its last byte; false where it is cut or damaged, and what followed is not here.
    pub complete: bool,
}

/// A process, and when its log began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Started {
    /// Page size.
    pub page_bytes: u64,
    /// PID.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
    /// Nanoseconds since 1970 when the log began; its times count from there.
    pub unix_ns: u64,
    /// Its number within an MPI job.
    pub rank: Option<u32>,
    /// Ranks of that job.
    pub ranks: Option<u32>,
    /// What tells the ranks of its `MPI_COMM_WORLD` from those of another; empty: not known.
    pub world: String,
    /// The PID namespace in which `pid` and `parent` are its numbers; 0: not known.
    pub pid_namespace: u64,
    /// Names the boot of the machine; empty: not known.
    pub boot: String,
    /// Where it ran.
    pub host: String,
    /// Its executable.
    pub executable: String,
    /// Its arguments, the name it was called by first.
    pub arguments: Vec<String>,
    /// Names of the components by their numbers; 0 is the application.
    pub components: Vec<String>,
}

impl Started {
    /// Whether it is a log of the same process: of what it was before or after exec.
    pub fn is_same_process(&self, other: &Started) -> bool {
        let key = |of: &Started| (of.pid, of.start_ticks, of.pid_namespace);
        key(self) == key(other) && self.is_same_machine(other)
    }

    /// Whether both ran on one kernel, whatever name of the host each saw (UTS namespaces).
    fn is_same_machine(&self, other: &Started) -> bool {
        self.host == other.host || !self.boot.is_empty() && self.boot == other.boot
    }

    /// Whether that process started it, as far as its parent's number shows that.
    pub fn is_child_of(&self, parent: &Started) -> bool {
        self.parent == parent.pid && self.pid_namespace == parent.pid_namespace && self.is_same_machine(parent)
    }
}

/// A shared object, or the executable.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The component it belongs to.
    pub component: u64,
    /// The component inside which it was loaded.
    pub loaded_in: u64,
    /// Its file.
    pub path: String,
    /// The name others need it by.
    pub soname: String,
    /// What it needs.
    pub needed: Vec<String>,
}

/// To whom memory belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The component.
    pub component: u64,
    /// The object whose code asked; 0: not told apart.
    pub object: u64,
}

/// Totals that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// Since the log began.
    pub t_us: u64,
    /// What they were taken for.
    pub reason: String,
    /// The new totals. What is not here is as it was.
    pub changed: Vec<Held>,
}

/// Memory of one owner and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The owner.
    pub owner: u64,
    /// The kind.
    pub kind: MemoryKind,
    /// Resident.
    pub rss_bytes: u64,
    /// The same, what is shared divided among those that share it.
    pub pss_bytes: u64,
}

/// Heap that a process obtained since its last totals, and that was resident.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// Since the log began.
    pub t_us: u64,
    /// Component and bytes.
    pub bytes: Vec<(u64, u64)>,
}

/// An entry of a component's library.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The component.
    pub component: u64,
    /// Its name.
    pub name: String,
}

/// What a function was called for since the log began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// From outside its component.
    pub calls: u64,
    /// Obtained within.
    pub got_bytes: u64,
    /// Given back within.
    pub gave_bytes: u64,
}

/// A phase begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Since the log began.
    pub t_us: u64,
    /// The phase.
    pub name: String,
}

/// The end of a process, or of what it was before `exec`.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Since the log began.
    pub t_us: u64,
    /// `exit` or `exec`; as the kernel says, `killed`, or `ended` by a way that the runtime does not see.
    pub how: String,
}

/// Why a file is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file is something else.
    #[error("it is no log of bursar's runtime")]
    NotALog,
    /// Another bursar's runtime wrote it.
    #[error(
        "it has log version {0}, and this bursar reads version {LOG_VERSION}; use the bursar that the command ran under"
    )]
    Version(u32),
    /// It was cut or damaged before it said whose it is.
    #[error("it ends before it says whose it is")]
    Nobody,
}

/// Takes in the log of a process, frame by frame.
#[derive(Debug, Default)]
pub struct Reader {
    log: Option<ProcessLog>,
    damaged: bool,
}

impl Reader {
    /// Begins with what stands before the first frame, or with as much of it as there is.
    ///
    /// # Errors
    /// [`LogError`] where it is no log, or of another version.
    pub fn begin(header: &[u8]) -> Result<Reader, LogError> {
        let (magic, version) = header.split_at(header.len().min(LOG_MAGIC.len()));
        if !LOG_MAGIC.starts_with(magic) {
            return Err(LogError::NotALog);
        }
        // Of a process that was killed before it had written more.
        let version = <[u8; 4]>::try_from(version).map_err(|_| LogError::Nobody)?;
        match u32::from_le_bytes(version) {
            version if version as usize == LOG_VERSION => Ok(Reader::default()),
            other => Err(LogError::Version(other)),
        }
    }

    /// The payload of the next frame; false where it means nothing: then what follows does not either.
    pub fn take(&mut self, payload: &[u8]) -> bool {
        let understood = match &mut self.log {
            Some(log) => entry(log, payload).is_some(),
            None => {
                self.log = started(payload).map(|started| ProcessLog { started, ..ProcessLog::default() });
                self.log.is_some()
            }
        };
        self.damaged |= !understood;
        understood
    }

    /// All that was taken in. `whole`: the file ended where its last frame does.
    ///
    /// # Errors
    /// [`LogError::Nobody`] where it did not come as far as to say whose it is.
    pub fn end(self, whole: bool) -> Result<ProcessLog, LogError> {
        let log = self.log.ok_or(LogError::Nobody)?;
        Ok(ProcessLog { complete: whole && !self.damaged, ..log })
    }
}

/// Fields of an entry, from the front. Each is `None` where there is none of its kind.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let digits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if digits << shift >> shift != digits {
                return None;
            }
            value |= digits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn string(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn strings(&mut self) -> Option<Vec<String>> {
        let count = self.number()?;
        (0..count).map(|_| self.string()).collect()
    }

    fn bytes(&mut self) -> Option<u64> {
        self.number().filter(|kib| *kib <= MOST_KIB).map(|kib| kib << 10)
    }

    fn held(&mut self) -> Option<Held> {
        let number = self.number()?;
        let kind = *MemoryKind::ALL.get((number % LOG_KINDS as u64) as usize)?;
        Some(Held { owner: number / LOG_KINDS as u64, kind, rss_bytes: self.bytes()?, pss_bytes: self.bytes()? })
    }

    /// Totals that follow those before.
    fn totals(&mut self, before: &[Totals]) -> Option<Totals> {
        let (t_us, reason, count) = (self.number()?, self.string()?, self.number()?);
        let changed = (0..count).map(|_| self.held()).collect::<Option<_>>()?;
        // Threads take their time stamps before they take their turn.
        let t_us = before.last().map_or(t_us, |last| last.t_us.max(t_us));
        Some(Totals { t_us, reason, changed })
    }
}

fn started(payload: &[u8]) -> Option<Started> {
    let (kind, rest) = payload.split_first()?;
    if LogEntry::from_number(u64::from(*kind)) != Some(LogEntry::Process) {
        return None;
    }
    let mut fields = Fields(rest);
    let started = Started {
        page_bytes: fields.number()?,
        pid: i32::try_from(fields.number()?).ok()?,
        parent: i32::try_from(fields.number()?).ok()?,
        start_ticks: fields.number()?,
        unix_ns: fields.number()?,
        rank: u32::try_from(fields.number()?).ok()?.checked_sub(1),
        ranks: u32::try_from(fields.number()?).ok().filter(|ranks| *ranks > 0),
        host: fields.string()?,
        executable: fields.string()?,
        arguments: fields.strings()?,
        components: fields.strings()?,
        world: fields.string()?,
        pid_namespace: 0,
        boot: String::new(),
    };
    // Earlier runtimes did not say it.
    if fields.0.is_empty() {
        return Some(started);
    }
    Some(Started { pid_namespace: fields.number()?, boot: fields.string()?, ..started })
}

/// Takes in one entry; `None` if it is not as it should be.
fn entry(log: &mut ProcessLog, payload: &[u8]) -> Option<()> {
    let (kind, rest) = payload.split_first()?;
    let mut fields = Fields(rest);
    // Of a later runtime; the rest is still worth having.
    let Some(kind) = LogEntry::from_number(u64::from(*kind)) else { return Some(()) };
    match kind {
        LogEntry::Object => {
            let id = fields.number()?;
            let object = Object {
                component: fields.number()?,
                loaded_in: fields.number()?,
                path: fields.string()?,
                soname: fields.string()?,
                needed: fields.strings()?,
            };
            log.objects.insert(id, object);
        }
        LogEntry::Owner => {
            let id = fields.number()?;
            log.owners.insert(id, Owner { component: fields.number()?, object: fields.number()? });
        }
        LogEntry::Totals => {
            let totals = fields.totals(&log.totals)?;
            // The last that a process can say before exec; one whose exec failed goes on. Of one that exits a thread may
            // still tell.
            if totals.reason == LogReason::Exec.name() {
                log.ended = Some(End { t_us: totals.t_us, how: totals.reason.clone() });
            } else {
                log.ended.take_if(|end| end.how == LogReason::Exec.name());
            }
            log.totals.push(totals);
            log.grown = None;
        }
        LogEntry::Touched => {
            let touched = fields.totals(&log.touched)?;
            log.touched.push(touched);
        }
        LogEntry::Grown => {
            let (t_us, count) = (fields.number()?, fields.number()?);
            let bytes = (0..count).map(|_| Some((fields.number()?, fields.number()?))).collect::<Option<_>>()?;
            log.grown = Some(Grown { t_us, bytes });
        }
        LogEntry::Function => {
            let id = fields.number()?;
            log.functions.insert(id, Function { component: fields.number()?, name: fields.string()? });
        }
        LogEntry::Calls => {
            let (_time, count) = (fields.number()?, fields.number()?);
            for _ in 0..count {
                let function = fields.number()?;
                let calls =
                    Calls { calls: fields.number()?, got_bytes: fields.number()?, gave_bytes: fields.number()? };
                log.calls.insert(function, calls);
            }
        }
        LogEntry::Durations => {
            let (_time, count) = (fields.number()?, fields.number()?);
            for _ in 0..count {
                log.durations.insert(fields.number()?, fields.number()?);
            }
        }
        LogEntry::Exchanged => {
            let (_time, count) = (fields.number()?, fields.number()?);
            for _ in 0..count {
                let to = u32::try_from(fields.number()?).ok()?.checked_sub(1);
                log.sent.insert(to, Messages { messages: fields.number()?, bytes: fields.number()? });
            }
        }
        LogEntry::Mark => log.marks.push(Mark { t_us: fields.number()?, name: fields.string()? }),
        LogEntry::Note => log.notes.push(fields.string()?),
        LogEntry::End => log.ended = Some(End { t_us: fields.number()?, how: fields.string()? }),
        LogEntry::Process => {}
    }
    Some(())
}
