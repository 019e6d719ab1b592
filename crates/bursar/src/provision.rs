//! `bursar provision`: a command on memory that is there when it asks for it; and the pool that it would take.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use ::provision::sentences::{copied, from_pool, too_small, unwritten};
use ::provision::size::{needed, own_number};
use ::provision::told::{Amount, Figures, LeftAlone, Reason, Told, describe};
use linux::own_numbers::{OwnNumber, OwnNumbers};
use linux::pools;
use model::Bytes;
use report::seconds;
use serde::Serialize;
use session::inside::{self, Inside};
use session::say::tell;
use session::serving::{self, Served, Serving};
use session::status::Status;
use session::unseen::Purpose;

use crate::cli::pool::PoolSize;
use crate::cli::provision::{OnExhaustion, Provision};
use crate::results::{check_json, write_json};

/// Preparations longer than this are worth a word.
const WORTH_TELLING_SECONDS: f64 = 0.01;
/// What `--stats` writes.
#[derive(Serialize)]
struct Stats<'a> {
    #[serde(flatten)]
    figures: &'a Figures,
    zeroing_cpu_seconds: Option<f64>,
    page_faults: Option<u64>,
    pool: Option<&'a str>,
    exit_status: i32,
    wall_seconds: f64,
    before_exec_seconds: f64,
    processes: &'a [Told],
}

/// What `bursar pool size --json` writes.
#[derive(Serialize)]
struct Needed<'a> {
    pool_bytes: u64,
    demand_bytes_peak: u64,
    exit_status: i32,
    wall_seconds: f64,
    processes: &'a [Told],
}

/// A command that ran with the runtime in it, or without.
struct Ran {
    inside: Inside,
    served: Served,
    /// Why the command ran without the library, as a sentence.
    without: Option<String>,
}

pub fn provision(options: &Provision) -> anyhow::Result<Status> {
    let begun = Instant::now();
    check_json(options.stats.as_deref())?;
    let pool = match &options.pool {
        Some(name) => {
            serving::check(name)?;
            Some(name.as_str())
        }
        None => Some(pools::DEFAULT).filter(|name| pools::answers(&pools::socket(name)).is_ok()),
    };
    let ran = run(&options.command, pool, variables(options), begun, None)?;
    let status = ran.inside.status();
    let figures = Figures::sum(&ran.served.told);
    let rank = ran.inside.rank();
    let mut lines = summary(&ran, &figures, pool);
    lines.extend(silent_default().filter(|_| pool.is_none()));
    lines.retain(|_| !options.quiet);
    let whose = rank.as_ref().map(|rank| format!("rank {}: ", rank.number)).unwrap_or_default();
    // A failure is no part of the summary.
    for line in lines.iter().chain(&ran.without) {
        tell!("bursar: {whose}{line}");
    }
    if let Some(path) = &options.stats {
        let stats = Stats {
            figures: &figures,
            zeroing_cpu_seconds: ran.served.zeroing_cpu_seconds,
            page_faults: ran.inside.page_faults,
            pool,
            exit_status: status.code(),
            wall_seconds: ran.inside.wall_seconds,
            before_exec_seconds: ran.inside.before_exec_seconds,
            processes: &ran.served.told,
        };
        write_json(&inside::of_rank(path, rank.as_ref()), &stats)?;
    }
    Ok(status)
}

/// `bursar pool size`
pub fn pool_size(options: &PoolSize) -> anyhow::Result<Status> {
    check_json(options.json.as_deref())?;
    // Processes that were there at the same time, at each look.
    let mut together: BTreeSet<BTreeSet<OwnNumber>> = BTreeSet::new();
    let mut numbers = OwnNumbers::default();
    let mut look = |folder: &Path| {
        let (told, _) = serving::read(folder);
        together.insert(told.iter().map(own_number).filter(|own| numbers.lives(*own)).collect());
    };
    let ran = run(&options.command, None, Vec::new(), Instant::now(), Some(&mut look))?;
    let Served { told, notes, .. } = &ran.served;
    let status = ran.inside.status();
    let pool_bytes = needed(told, &together);
    let demand_bytes_peak = Figures::sum(told).demand_bytes_peak;
    if let Some(why) = &ran.without {
        tell!("bursar: {why}");
    }
    if !options.quiet {
        for note in notes {
            tell!("bursar: {note}");
        }
        if status.code() != 0 {
            tell!("bursar: the command ended with status {}: the pool may be too small.", status.code());
        }
        match pool_bytes {
            0 => tell!("It asked for nothing that a pool serves."),
            bytes => tell!(
                "A pool of {} serves all of it: for each process the most it asked for, in whole segments; of processes \
                 that ran together the sum, as if all had their most at the same time.\n\n    bursar pool create {}M\n",
                Bytes(bytes),
                Bytes(bytes).mib_ceil()
            ),
        }
    }
    if let Some(path) = &options.json {
        let exit_status = status.code();
        let wall_seconds = ran.inside.wall_seconds;
        write_json(path, &Needed { pool_bytes, demand_bytes_peak, exit_status, wall_seconds, processes: told })?;
    }
    Ok(status)
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
fn variables(options: &Provision) -> Vec<(String, OsString)> {
    let size = options.size.map(|size| ("BURSAR_POOL_SIZE", size.0.to_string().into()));
    let fail = (options.on_exhaustion == OnExhaustion::Fail).then(|| ("BURSAR_POOL_FAIL", "1".into()));
    let pin = options.pin.then(|| ("BURSAR_PIN", "1".into()));
    let set = [size, fail, pin].into_iter().flatten();
    set.map(|(name, value)| (name.to_string(), value)).collect()
}

/// Runs the command to its end. `look` is called from time to time with the folder that processes tell in.
fn run(
    command: &[OsString],
    pool: Option<&str>,
    mut variables: Vec<(String, OsString)>,
    begun: Instant,
    look: Option<&mut dyn FnMut(&Path)>,
) -> anyhow::Result<Ran> {
    let serving = Serving::start(pool);
    variables.extend(serving.variables());
    let mut look = look.map(|look| |_| look(serving.folder().path()));
    let look = look.as_mut().map(|look| look as &mut dyn FnMut(i32));
    let inside = inside::run(command, Purpose::Provision, variables, serving.folder(), begun, look)?;
    let served = serving.end();
    let without = inside.why_without(command, Purpose::Provision, !served.told.is_empty());
    Ok(Ran { inside, served, without })
}

/// One to six lines for people.
fn summary(ran: &Ran, figures: &Figures, pool: Option<&str>) -> Vec<String> {
    let Served { told, notes, .. } = &ran.served;
    let passed = |reason| figures.passed_to_linux.get(&reason).copied().unwrap_or_default();
    let mut lines = Vec::new();
    let mut run = match ran.inside.page_faults {
        Some(faults) => format!("{faults} page faults in {}", seconds(ran.inside.wall_seconds)),
        None => format!("ran for {}", seconds(ran.inside.wall_seconds)),
    };
    if ran.inside.before_exec_seconds > WORTH_TELLING_SECONDS {
        run += &format!(", after {} of preparation", seconds(ran.inside.before_exec_seconds));
    }
    let huge = Bytes(passed(Reason::NoPool).bytes);
    lines.push(match pool {
        _ if told.is_empty() && notes.is_empty() && ran.without.is_none() => {
            format!("nothing was served: no process loaded bursar's library, as when LD_PRELOAD is cleared; {run}")
        }
        _ if figures.served_bytes == 0 && huge.0 == 0 => format!("nothing was served; {run}"),
        Some(name) => format!("{}; {run}", from_pool(name, figures)),
        None => {
            format!("no pool answers: {huge} from the kernel's huge pages; {run}")
        }
    });
    let told_already = |reason: Reason| reason == Reason::NoPool && pool.is_none();
    let mut reasons: Vec<(Reason, Amount)> = figures
        .passed_to_linux
        .iter()
        .map(|(r, a)| (*r, *a))
        .filter(|(r, a)| a.bytes > 0 && !told_already(*r))
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
        lines.push(format!("left to Linux: {}", left.join(", ")));
    }
    lines.extend(pool.and_then(|_| too_small(figures)));
    lines.extend(pool.and_then(|_| unwritten(figures)));
    lines.extend(pool.and_then(|_| copied(figures)));
    let alone = |why| told.iter().filter(|told| told.left_alone == Some(why)).count();
    let kinds = [
        (LeftAlone::Sanitizer, "built with a sanitizer, or in valgrind"),
        (LeftAlone::Libc, "with a libc that is not known"),
    ];
    let alone = kinds.map(|(why, what)| (alone(why), what)).into_iter().filter(|(count, _)| *count > 0);
    lines.extend(alone.map(|(count, what)| format!("not served: {count} process(es) {what}")));
    lines.extend(notes.iter().cloned());
    lines
}
