//! A command on memory that is there when it asks for it; and the pool that it would take.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use linux::own_numbers::{OwnNumber, OwnNumbers};
use linux::pools;
use model::Bytes;
use provision::sentences::{copied, from_pool, too_small, unwritten};
use provision::size::{needed, own_number};
use provision::stats::{Amount, Figures, LeftAlone, ProcessStats, Reason, describe};
use report::seconds;
use schemars::JsonSchema;
use serde::Serialize;

use crate::inside::{self, Inside};
use crate::rank::Rank;
use crate::serving::{self, Served, Serving};
use crate::status::Status;
use crate::unseen::Purpose;

/// Preparations longer than this are worth a word.
const MIN_SHOWN_PREPARATION_SECONDS: f64 = 0.01;

/// How a command is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The pool; `None`: the default one if its broker answers, else the kernel's huge pages.
    pub pool: Option<String>,
    /// What a process takes from the pool when it first needs some; `None`: as it needs it.
    pub size: Option<Bytes>,
    /// Whether each process is kept to the processors of the node that its memory is from.
    pub pin: bool,
    /// Whether requests fail that the pool has no memory for; else the kernel serves them.
    pub fail: bool,
}

/// What `--stats` writes.
#[derive(JsonSchema, Serialize)]
pub struct Stats<'a> {
    #[serde(flatten)]
    figures: Figures,
    zeroing_cpu_seconds: Option<f64>,
    page_faults: Option<u64>,
    pool: Option<&'a str>,
    exit_status: i32,
    wall_seconds: f64,
    before_exec_seconds: f64,
    processes: &'a [ProcessStats],
}

/// What `bursar pool size --json` writes.
#[derive(JsonSchema, Serialize)]
pub struct Needed<'a> {
    pool_bytes: u64,
    demand_bytes_peak: u64,
    exit_status: i32,
    wall_seconds: f64,
    processes: &'a [ProcessStats],
}

/// A command that ran with the runtime in it, or without.
pub struct Ran {
    /// The pool that served it.
    pool: Option<String>,
    inside: Inside,
    served: Served,
    /// Why the command ran without the library, as a sentence.
    pub without: Option<String>,
}

/// Runs the command to its end.
///
/// # Errors
/// A sentence if the pool that was named does not serve, or if the command cannot be started.
pub fn provision(options: &Options, begun: Instant) -> anyhow::Result<Ran> {
    let pool = match &options.pool {
        Some(name) => {
            serving::check(name)?;
            Some(name.as_str())
        }
        None => Some(pools::DEFAULT).filter(|name| pools::answers(&pools::socket(name)).is_ok()),
    };
    run(&options.command, pool, variables(options), begun, None)
}

/// What a pool must have to serve all that a command asks for.
pub struct Size {
    /// Bytes; 0: it asked for nothing that a pool serves.
    pub pool_bytes: u64,
    ran: Ran,
}

/// Runs the command without a pool, and sees what it asks for.
///
/// # Errors
/// A sentence if the command cannot be started.
pub fn pool_size(command: &[OsString]) -> anyhow::Result<Size> {
    // The processes alive at each tick.
    let mut together: BTreeSet<BTreeSet<OwnNumber>> = BTreeSet::new();
    let mut numbers = OwnNumbers::default();
    let mut on_tick = |folder: &Path| {
        let (stats, _) = serving::read(folder);
        together.insert(stats.iter().map(own_number).filter(|own| numbers.lives(*own)).collect());
    };
    let ran = run(command, None, Vec::new(), Instant::now(), Some(&mut on_tick))?;
    Ok(Size { pool_bytes: needed(&ran.served.stats, &together), ran })
}

impl Size {
    /// bursar's exit status.
    pub fn status(&self) -> Status {
        self.ran.status()
    }

    /// Why the command ran without the library, as a sentence.
    pub fn without(&self) -> Option<&str> {
        self.ran.without.as_deref()
    }

    /// Files of its processes that could not be read, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.ran.served.notes
    }

    /// In figures.
    pub fn figures(&self) -> Needed<'_> {
        let stats = &self.ran.served.stats;
        Needed {
            pool_bytes: self.pool_bytes,
            demand_bytes_peak: Figures::sum(stats).demand_bytes_peak,
            exit_status: self.status().code(),
            wall_seconds: self.ran.inside.wall_seconds,
            processes: stats,
        }
    }
}

/// Why the default pool does not serve, where there is one without a broker, as a sentence.
fn silent_default() -> Option<String> {
    let name = pools::DEFAULT;
    let refused = pools::answers(&pools::socket(name)).err()?;
    let is_silent = pools::names().iter().any(|there| there == name) && refused.kind() != ErrorKind::PermissionDenied;
    is_silent.then(|| {
        format!(
            "pool {name} has no broker, and keeps its memory. `sudo bursar pool serve {name}` starts one; if the broker was \
             killed, `sudo bursar doctor --repair` gives the memory back"
        )
    })
}

/// What the runtime reads (`preload/abi.h`) of the options.
fn variables(options: &Options) -> Vec<(String, OsString)> {
    let size = options.size.map(|size| ("BURSAR_POOL_SIZE", size.0.to_string().into()));
    let fail = options.fail.then(|| ("BURSAR_POOL_FAIL", "1".into()));
    let pin = options.pin.then(|| ("BURSAR_PIN", "1".into()));
    let set = [size, fail, pin].into_iter().flatten();
    set.map(|(name, value)| (name.to_string(), value)).collect()
}

/// Runs the command to its end. `on_tick` is called at intervals with the folder of the processes' statistics.
fn run(
    command: &[OsString],
    pool: Option<&str>,
    mut variables: Vec<(String, OsString)>,
    begun: Instant,
    on_tick: Option<&mut dyn FnMut(&Path)>,
) -> anyhow::Result<Ran> {
    let serving = Serving::start(pool);
    variables.extend(serving.variables());
    let mut on_tick = on_tick.map(|on_tick| |_| on_tick(serving.folder().path()));
    let on_tick = on_tick.as_mut().map(|on_tick| on_tick as &mut dyn FnMut(i32));
    let inside = inside::run(command, Purpose::Provision, variables, serving.folder(), begun, on_tick)?;
    let served = serving.end();
    let without = inside.why_without(command, Purpose::Provision, !served.stats.is_empty());
    Ok(Ran { pool: pool.map(String::from), inside, served, without })
}

impl Ran {
    /// bursar's exit status.
    pub fn status(&self) -> Status {
        self.inside.status()
    }

    /// The rank of this run, if a launcher started bursar.
    pub fn rank(&self) -> Option<Rank> {
        self.inside.rank()
    }

    /// In figures.
    pub fn stats(&self) -> Stats<'_> {
        Stats {
            figures: Figures::sum(&self.served.stats),
            zeroing_cpu_seconds: self.served.zeroing_cpu_seconds,
            page_faults: self.inside.page_faults,
            pool: self.pool.as_deref(),
            exit_status: self.status().code(),
            wall_seconds: self.inside.wall_seconds,
            before_exec_seconds: self.inside.before_exec_seconds,
            processes: &self.served.stats,
        }
    }

    /// One to seven lines for people.
    pub fn summary(&self) -> Vec<String> {
        let Served { stats, notes, .. } = &self.served;
        let (figures, pool) = (&Figures::sum(stats), self.pool.as_deref());
        let passed = |reason| figures.passed_to_linux.get(&reason).copied().unwrap_or_default();
        let mut lines = Vec::new();
        let mut run = match self.inside.page_faults {
            Some(faults) => format!("{faults} page faults in {}", seconds(self.inside.wall_seconds)),
            None => format!("ran for {}", seconds(self.inside.wall_seconds)),
        };
        if self.inside.before_exec_seconds > MIN_SHOWN_PREPARATION_SECONDS {
            run += &format!(", after {} of preparation", seconds(self.inside.before_exec_seconds));
        }
        let huge = Bytes(passed(Reason::NoPool).bytes);
        lines.push(match pool {
            _ if stats.is_empty() && notes.is_empty() && self.without.is_none() => {
                format!("nothing was served: no process loaded bursar's library, as when LD_PRELOAD is cleared; {run}")
            }
            _ if figures.served_bytes == 0 && huge.0 == 0 => format!("nothing was served; {run}"),
            Some(name) => format!("{}; {run}", from_pool(name, figures)),
            None => {
                format!("no pool answers: {huge} from the kernel's huge pages; {run}")
            }
        });
        let is_in_first_line = |reason: Reason| reason == Reason::NoPool && pool.is_none();
        let mut reasons: Vec<(Reason, Amount)> = figures
            .passed_to_linux
            .iter()
            .map(|(r, a)| (*r, *a))
            .filter(|(r, a)| a.bytes > 0 && !is_in_first_line(*r))
            .collect();
        reasons.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.bytes));
        let why = |reason: Reason| match (reason, pool) {
            (Reason::NoPool, Some(_)) => {
                "that the pool did not answer for (a program that gives up system calls, by seccomp, cannot ask it)"
            }
            _ => describe(reason),
        };
        let (largest, others) = reasons.split_at(reasons.len().min(3));
        let mut left: Vec<String> =
            largest.iter().map(|(reason, amount)| format!("{} {}", Bytes(amount.bytes), why(*reason))).collect();
        let rest = others.iter().map(|(_, amount)| amount.bytes).fold(0, u64::saturating_add);
        left.extend((rest > 0).then(|| format!("{} else", Bytes(rest))));
        if !left.is_empty() {
            lines.push(format!("served by the kernel: {}", left.join(", ")));
        }
        lines.extend(pool.and_then(|_| too_small(figures)));
        lines.extend(pool.and_then(|_| unwritten(figures)));
        lines.extend(pool.and_then(|_| copied(figures)));
        let alone = |why| stats.iter().filter(|process| process.left_alone == Some(why)).count();
        let kinds = [
            (LeftAlone::Sanitizer, "built with a sanitizer, or in valgrind"),
            (LeftAlone::Libc, "with a libc that is not known"),
        ];
        let alone = kinds.map(|(why, what)| (alone(why), what)).into_iter().filter(|(count, _)| *count > 0);
        lines.extend(alone.map(|(count, what)| format!("not served: {count} process(es) {what}")));
        lines.extend(notes.iter().cloned());
        lines.extend(silent_default().filter(|_| pool.is_none()));
        lines
    }
}
