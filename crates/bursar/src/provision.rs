//! `bursar provision`: a command on memory that is there when it asks for it; and the pool that it would take.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ::provision::prezero::Prezero;
use ::provision::state::{Directory, segment_bytes};
use ::provision::told::{Amount, Error, Figures, LeftAlone, Reason, Told, describe};
use anyhow::{Context, bail};
use linux::own_numbers::{OwnNumber, OwnNumbers};
use linux::pools;
use model::Bytes;
use report::seconds;
use serde::Serialize;
use session::inside::{self, Inside};
use session::say::tell;
use session::spool::PerhapsSpool;
use session::status::Status;
use session::unseen::Purpose;

use crate::cli::pool::PoolSize;
use crate::cli::provision::{OnExhaustion, Provision};
use crate::results::{check_json, write_json};

/// Pages of a pool, unless others are asked for.
const PAGE_BYTES: u64 = 2 << 20;
/// Preparations longer than this are worth a word.
const WORTH_TELLING_SECONDS: f64 = 0.01;
/// Memory of a pool that was never written is said from this on, if it is a quarter of what was taken.
const LEAST_UNWRITTEN_BYTES: u64 = 16 << 20;
/// Copies that forks have made are said from this on.
const LEAST_COPIED_BYTES: u64 = 16 << 20;

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

/// Where the processes of a command tell what they were served, and who zeroes beside them what they give back.
pub struct Serving {
    folder: PerhapsSpool,
    socket: Option<PathBuf>,
    /// Where it cannot be had, what is used again is zeroed when it is.
    prezero: Option<Prezero>,
}

/// What the processes of a command were served.
pub struct Served {
    pub told: Vec<Told>,
    /// Processor time of what zeroed beside it; `None`: nothing could.
    pub zeroing_cpu_seconds: Option<f64>,
    /// Files that could not be read, as sentences.
    pub notes: Vec<String>,
}

impl Serving {
    /// From a pool that was checked; else the kernel serves, with its huge pages.
    pub fn start(pool: Option<&str>) -> Serving {
        let folder = PerhapsSpool::create("bursar-provision-");
        let prezero =
            pool.filter(|_| folder.trouble().is_none()).and_then(|_| Prezero::start(folder.path()).ok().flatten());
        Serving { folder, socket: pool.map(pools::socket), prezero }
    }

    /// What the runtime reads of it (`preload/abi.h`).
    pub fn variables(&self) -> Vec<(String, OsString)> {
        let folder = ("BURSAR_PROVISION".to_string(), self.folder.path().into());
        let socket = self.socket.as_ref().map(|socket| ("BURSAR_POOL".to_string(), socket.into()));
        socket.into_iter().chain([folder]).collect()
    }

    /// When the command has ended.
    pub fn end(self) -> Served {
        let zeroing_cpu_seconds = self.prezero.map(|prezero| prezero.end().as_secs_f64());
        let (told, notes) = read(self.folder.path());
        Served { told, zeroing_cpu_seconds, notes }
    }
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
            check(name)?;
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
        let (told, _) = read(folder);
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

/// Whether a pool that was asked for is there.
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
    let mut look = look.map(|look| |_| look(serving.folder.path()));
    let look = look.as_mut().map(|look| look as &mut dyn FnMut(i32));
    let inside = inside::run(command, Purpose::Provision, variables, &serving.folder, begun, look)?;
    let served = serving.end();
    let without = inside.why_without(command, Purpose::Provision, !served.told.is_empty());
    Ok(Ran { inside, served, without })
}

/// What the processes have told, and in sentences what of it cannot be read.
fn read(folder: &Path) -> (Vec<Told>, Vec<String>) {
    inside::told(folder, "provision.", |bytes| match Told::read(bytes) {
        Err(Error::NothingYet) => Ok(None),
        read => read.map(Some),
    })
}

fn own_number(told: &Told) -> OwnNumber {
    OwnNumber { pid: told.pid as i32, namespace: told.namespace, start_ticks: told.ticks }
}

/// The pool that processes take that were there at the same time: each the most it came to, in whole segments. One that
/// no look saw was short, and is counted as if it had been there beside the others, but alone of its kind.
fn needed(told: &[Told], together: &BTreeSet<BTreeSet<OwnNumber>>) -> u64 {
    let most = told.iter().map(|told| told.figures.demand_bytes_peak).max().unwrap_or(0);
    let mut segment = segment_bytes(0, PAGE_BYTES);
    loop {
        // A process may tell any number.
        let whole = |told: &Told| told.figures.demand_bytes_peak.checked_next_multiple_of(segment).unwrap_or(u64::MAX);
        let sum = |there: &BTreeSet<OwnNumber>| {
            told.iter().filter(|told| there.contains(&own_number(told))).map(whole).fold(0, u64::saturating_add)
        };
        let seen: u64 = together.iter().map(sum).max().unwrap_or(0);
        let is_unseen = |told: &&Told| !together.iter().any(|there| there.contains(&own_number(told)));
        let unseen = told.iter().filter(is_unseen).map(whole).max().unwrap_or(0);
        let pool = seen.saturating_add(unseen);
        // A larger pool has larger segments, which leave more unused; more processes than segments never come to an end.
        match segment_bytes(pool, PAGE_BYTES) {
            larger if larger > segment && segment < most => segment = larger,
            _ => return pool,
        }
    }
}

/// What came from a pool, in half a sentence.
pub fn from_pool(name: &str, figures: &Figures) -> String {
    let present = format!("made present in {}", seconds(figures.populate_seconds));
    let beside = match Bytes(figures.zeroed_beside_bytes) {
        Bytes(0) => String::new(),
        bytes => format!(", {bytes} zeroed beside it"),
    };
    let (peak, all) = (Bytes(figures.pool_bytes_peak), Bytes(figures.served_bytes));
    match peak < all {
        true => format!("up to {peak} at a time from pool {name}, {all} over the run, {present}{beside}"),
        false => format!("{peak} from pool {name}, {present}{beside}"),
    }
}

/// How much larger a pool should have been, as a sentence.
pub fn too_small(figures: &Figures) -> Option<String> {
    let failed = match figures.failed {
        0 => String::new(),
        calls => format!(", {calls} of which failed"),
    };
    let (calls, wanted) = (figures.fallbacks, Bytes(figures.demand_bytes_peak));
    let noun = if calls == 1 { "call" } else { "calls" };
    (calls > 0).then(|| format!("the pool was too small for {calls} {noun}{failed}; {wanted} would have served all"))
}

/// How much of a pool was taken and never written, as a sentence; `None`: not enough to matter.
pub fn unwritten(figures: &Figures) -> Option<String> {
    let (bytes, peak) = (figures.unwritten_bytes, figures.pool_bytes_peak);
    let matters = bytes >= LEAST_UNWRITTEN_BYTES && bytes >= peak / 4;
    let why = if figures.fallbacks > 0 { "; what came later found the pool empty for it" } else { "" };
    matters.then(|| {
        format!(
            "about {} of {} from the pool was never written: the program asks for more than it uses{why}",
            Bytes(bytes),
            Bytes(peak)
        )
    })
}

/// How much memory children have as copies that they would share without a pool, as a sentence.
pub fn copied(figures: &Figures) -> Option<String> {
    let (copies, peak) = (Bytes(figures.copied_bytes), Bytes(figures.pool_bytes_peak));
    let matters = copies.0 >= LEAST_COPIED_BYTES;
    matters.then(|| {
        format!(
            "{copies} were copied at forks, beside {peak} of the pool: each child of a process with several threads has a copy of all, \
             where without a pool it would share it"
        )
    })
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
    let (largest, others) = reasons.split_at(reasons.len().min(3));
    let mut left: Vec<String> =
        largest.iter().map(|(reason, amount)| format!("{} {}", Bytes(amount.bytes), describe(*reason))).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pid: u64, demand_bytes_peak: u64) -> Told {
        Told {
            executable: "a".into(),
            pid,
            parent: 1,
            ticks: 7,
            namespace: 0,
            rank: None,
            node: None,
            left_alone: None,
            figures: Figures { demand_bytes_peak, ..Figures::default() },
        }
    }

    #[test]
    fn one_call_that_a_pool_did_not_serve_is_in_the_singular() {
        let of = |fallbacks| too_small(&Figures { fallbacks, demand_bytes_peak: 4 << 20, ..Figures::default() });
        assert_eq!(of(1).unwrap(), "the pool was too small for 1 call; 4.00 MiB would have served all");
        assert!(of(2).unwrap().contains("for 2 calls") && of(0).is_none());
    }

    #[test]
    fn a_pool_is_for_those_that_ran_together_in_whole_segments() {
        let processes = [told(1, 65 << 20), told(2, 1 << 20), told(3, 200 << 20)];
        let of = |pid: &u64| own_number(&told(*pid, 0));
        let seen = |sets: &[&[u64]]| sets.iter().map(|set| set.iter().map(of).collect()).collect();
        assert_eq!(needed(&processes, &seen(&[&[1, 2], &[3]])), 256 << 20);
        assert_eq!(needed(&processes, &seen(&[&[1, 2], &[2, 3]])), 320 << 20);
        assert_eq!(needed(&processes, &seen(&[&[1, 2]])), (128 + 64 + 256) << 20, "the third was too short to be seen");
        assert_eq!(needed(&[], &BTreeSet::new()), 0);
        let wrong = [told(1, u64::MAX), told(2, u64::MAX)];
        assert_eq!(needed(&wrong, &seen(&[&[1, 2]])), u64::MAX, "what a process tells may be any number");
    }

    #[test]
    fn a_large_pool_has_larger_segments() {
        let processes: Vec<Told> = (0..40).map(|pid| told(pid, 520 << 20)).collect();
        let all = [processes.iter().map(own_number).collect()].into();
        // 40 times 576 MiB in segments of 64; a pool of that has some of 128, of which each takes five.
        assert_eq!(needed(&processes, &all), 40 * (640 << 20));
    }
}
