//! `bursar provision`: a command on memory that is there when it asks for it; and the pool that it would take.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::provision::state::segment_bytes;
use ::provision::told::{Amount, Error, Figures, LeftAlone, Reason, Told};
use anyhow::{Context, bail};
use job::{Command, Forwarding, Output, Prepared, preload};
use linux::perf::Counter;
use linux::{pools, procfs};
use model::{Bytes, Exit};
use report::seconds;
use serde::Serialize;

use crate::cli;
use crate::launch::{Launch, Launcher, launch};
use crate::rank::Rank;
use crate::results::write_json;
use crate::status::{OWN_FAILURE, Status};
use crate::unseen::{self, Purpose};

/// Pages of a pool, unless others are asked for.
const PAGE_BYTES: u64 = 2 << 20;
/// Preparations longer than this are worth a word.
const WORTH_TELLING_SECONDS: f64 = 0.01;
/// How often it is looked which processes there are, where that matters.
const TICK: Duration = Duration::from_millis(20);

/// What `--stats` writes.
#[derive(Serialize)]
struct Stats<'a> {
    #[serde(flatten)]
    figures: &'a Figures,
    page_faults: Option<u64>,
    pool: Option<&'a str>,
    exit_status: i32,
    wall_seconds: f64,
    before_exec_seconds: f64,
    processes: &'a [Told],
}

/// What `bursar budget --provisioned --json` writes.
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
    launcher: Option<Launcher>,
    exit: Exit,
    wall_seconds: f64,
    before_exec_seconds: f64,
    /// From user space, in all its processes on this node; `None`: refused, or not below us.
    page_faults: Option<u64>,
    told: Vec<Told>,
    /// Files that could not be read, and what was not served, as sentences.
    notes: Vec<String>,
}

pub fn provision(options: &cli::Provision) -> anyhow::Result<Status> {
    let begun = Instant::now();
    let pool = match &options.pool {
        Some(name) => {
            check(name)?;
            Some(name.as_str())
        }
        None => Some(pools::DEFAULT).filter(|name| pools::answers(&pools::socket(name)).is_ok()),
    };
    let ran = run(&options.command, variables(options, pool), begun, None)?;
    let status = status_of(ran.exit);
    let figures = Figures::sum(&ran.told);
    let rank = Rank::find().filter(|_| ran.launcher.is_none());
    if !options.quiet {
        let lines = summary(&ran, &figures, pool);
        let whose = rank.as_ref().map(|rank| format!("rank {}: ", rank.number)).unwrap_or_default();
        for line in lines {
            eprintln!("bursar: {whose}{line}");
        }
    }
    if let Some(path) = &options.stats {
        let stats = Stats {
            figures: &figures,
            page_faults: ran.page_faults,
            pool,
            exit_status: status.code(),
            wall_seconds: ran.wall_seconds,
            before_exec_seconds: ran.before_exec_seconds,
            processes: &ran.told,
        };
        write_json(&of_rank(path, rank.as_ref()), &stats)?;
    }
    Ok(status)
}

/// `bursar budget --provisioned`
pub fn budget(options: &cli::Budget) -> anyhow::Result<Status> {
    // Processes that were there at the same time, at each look.
    let mut together: BTreeSet<BTreeSet<(u64, u64)>> = BTreeSet::new();
    let mut look = |folder: &Path| {
        let (told, _) = read(folder);
        together.insert(told.iter().filter(|told| is_alive(told)).map(|told| (told.pid, told.ticks)).collect());
    };
    let ran = run(&options.command, Vec::new(), Instant::now(), Some(&mut look))?;
    let status = status_of(ran.exit);
    let pool_bytes = needed(&ran.told, &together);
    let demand_bytes_peak = Figures::sum(&ran.told).demand_bytes_peak;
    if !options.results.quiet {
        for note in &ran.notes {
            eprintln!("bursar: {note}");
        }
        if status.code() != 0 {
            eprintln!("bursar: the command ended with status {}: the pool may be too small.", status.code());
        }
        match pool_bytes {
            0 => eprintln!("It asked for nothing that a pool serves."),
            bytes => eprintln!(
                "A pool of {} serves all of it: for each process the most it asked for, in whole segments; of processes \
                 that ran together the sum, as if all had their most at the same time.\n\n    bursar pool create {}M\n",
                Bytes(bytes),
                Bytes(bytes).mib_ceil()
            ),
        }
    }
    if let Some(path) = &options.results.json {
        let exit_status = status.code();
        let wall_seconds = ran.wall_seconds;
        write_json(path, &Needed { pool_bytes, demand_bytes_peak, exit_status, wall_seconds, processes: &ran.told })?;
    }
    Ok(status)
}

/// Whether a pool that was asked for is there.
fn check(name: &str) -> anyhow::Result<()> {
    let names = pools::names();
    if !names.iter().any(|there| there == name) {
        let others = match names.is_empty() {
            true => "and no other; `bursar pool create` makes one".into(),
            false => format!("but there are: {}", names.join(", ")),
        };
        bail!("there is no pool {name} in {}, {others}", pools::folder().display());
    }
    let socket = pools::socket(name);
    let answered = pools::answers(&socket);
    if answered.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
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

/// What the runtime reads (`preload/pool.h`), but for the folder it tells in.
fn variables(options: &cli::Provision, pool: Option<&str>) -> Vec<(String, OsString)> {
    let socket = pool.map(|name| ("BURSAR_POOL", pools::socket(name).into_os_string()));
    let size = options.size.map(|size| ("BURSAR_POOL_SIZE", size.0.to_string().into()));
    let fail = (options.on_exhaustion == cli::OnExhaustion::Fail).then(|| ("BURSAR_POOL_FAIL", "1".into()));
    let pin = options.pin.then(|| ("BURSAR_PIN", "1".into()));
    let set = [socket, size, fail, pin].into_iter().flatten();
    set.map(|(name, value)| (name.to_string(), value)).collect()
}

/// Runs the command to its end. `look` is called from time to time with the folder that processes tell in.
fn run(
    command: &[OsString],
    mut variables: Vec<(String, OsString)>,
    begun: Instant,
    mut look: Option<&mut dyn FnMut(&Path)>,
) -> anyhow::Result<Ran> {
    let launcher = Launcher::of(command);
    let folder = tempfile::Builder::new()
        .prefix("bursar-provision-")
        .tempdir()
        .context("no folder for what the processes tell can be made; set TMPDIR to one of yours")?;
    variables.push(("BURSAR_PROVISION".into(), folder.path().into()));
    let sanitizer = unseen::sanitizer(command, launcher, Purpose::Provision);
    let Launch { words, environment } = match sanitizer {
        Some(_) => Launch { words: command.to_vec(), environment: Vec::new() },
        None => launch(command, launcher, &preload::unpack()?, variables),
    };
    let prepared = Prepared::new(&Command { words, environment, output: Output::Inherited })?;
    let signals = Forwarding::start()?;
    // Slurm's daemons start what `srun` is asked for: it is not below us.
    let is_ours = launcher != Some(Launcher::Srun);
    let mut faults = Counter::page_faults_from_exec(prepared.pid()).ok().filter(|_| is_ours);
    let before_exec_seconds = begun.elapsed().as_secs_f64();
    let running = prepared.go()?;
    signals.set_target(running.pid());
    let patience = if look.is_some() { TICK } else { Duration::from_secs(3600) };
    let (ended, wall_seconds) = loop {
        if let Some(ended) = running.wait(patience)? {
            break ended;
        }
        if let Some(look) = &mut look {
            look(folder.path());
        }
    };
    signals.set_target(0);
    let (told, mut notes) = read(folder.path());
    let of_file = || unseen::obstacle(command, launcher, Purpose::Provision).filter(|_| told.is_empty());
    notes.extend(sanitizer.or_else(of_file));
    let page_faults = faults.as_mut().map(Counter::read);
    Ok(Ran { launcher, exit: ended.exit, wall_seconds, before_exec_seconds, page_faults, told, notes })
}

/// What the processes have told, and in sentences what of it cannot be read.
fn read(folder: &Path) -> (Vec<Told>, Vec<String>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let (mut told, mut troubles) = (Vec::new(), Vec::new());
    for path in paths {
        match std::fs::read(&path).map_err(anyhow::Error::from).and_then(|bytes| Ok(Told::read(&bytes)?)) {
            Ok(one) => told.push(one),
            // Killed before it had told anything.
            Err(error) if error.downcast_ref() == Some(&Error::NothingYet) => {}
            Err(error) => troubles.push(format!("{}: {error}", path.display())),
        }
    }
    (told, troubles)
}

fn is_alive(told: &Told) -> bool {
    procfs::stat(told.pid as i32).is_ok_and(|stat| stat.starttime == told.ticks)
}

/// The pool that processes take that were there at the same time: each the most it came to, in whole segments. One that
/// no look saw was short, and is counted as if it had been there beside the others, but alone of its kind.
fn needed(told: &[Told], together: &BTreeSet<BTreeSet<(u64, u64)>>) -> u64 {
    let key = |told: &Told| (told.pid, told.ticks);
    let most = told.iter().map(|told| told.figures.demand_bytes_peak).max().unwrap_or(0);
    let mut segment = segment_bytes(0, PAGE_BYTES);
    loop {
        // A process may tell any number.
        let whole = |told: &Told| told.figures.demand_bytes_peak.checked_next_multiple_of(segment).unwrap_or(u64::MAX);
        let sum = |there: &BTreeSet<(u64, u64)>| {
            told.iter().filter(|told| there.contains(&key(told))).map(whole).fold(0, u64::saturating_add)
        };
        let seen: u64 = together.iter().map(sum).max().unwrap_or(0);
        let is_unseen = |told: &&Told| !together.iter().any(|there| there.contains(&key(told)));
        let unseen = told.iter().filter(is_unseen).map(whole).max().unwrap_or(0);
        let pool = seen.saturating_add(unseen);
        // A larger pool has larger segments, which leave more unused; more processes than segments never come to an end.
        match segment_bytes(pool, PAGE_BYTES) {
            larger if larger > segment && segment < most => segment = larger,
            _ => return pool,
        }
    }
}

/// One to four lines for people.
fn summary(ran: &Ran, figures: &Figures, pool: Option<&str>) -> Vec<String> {
    let passed = |reason| figures.passed_to_linux.get(&reason).copied().unwrap_or_default();
    let mut lines = Vec::new();
    let mut run = match ran.page_faults {
        Some(faults) => format!("{faults} page faults in {}", seconds(ran.wall_seconds)),
        None => format!("ran for {}", seconds(ran.wall_seconds)),
    };
    if ran.before_exec_seconds > WORTH_TELLING_SECONDS {
        run += &format!(", after {} of preparation", seconds(ran.before_exec_seconds));
    }
    let present = format!("made present in {}", seconds(figures.populate_seconds));
    let huge = Bytes(passed(Reason::NoPool).bytes);
    lines.push(match pool {
        _ if ran.told.is_empty() && ran.notes.is_empty() => {
            format!("nothing was served: no process loaded bursar's library, as when LD_PRELOAD is cleared; {run}")
        }
        _ if figures.served_bytes == 0 && huge.0 == 0 => format!("nothing was served; {run}"),
        Some(name) => {
            let peak = Bytes(figures.pool_bytes_peak);
            format!("{peak} at most from pool {name}, {} in all, {present}; {run}", Bytes(figures.served_bytes))
        }
        None => format!("no pool answers: {huge} in all from the kernel's huge pages, {present}; {run}"),
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
        largest.iter().map(|(reason, amount)| format!("{} {}", Bytes(amount.bytes), reason.describe())).collect();
    let rest = others.iter().map(|(_, amount)| amount.bytes).fold(0, u64::saturating_add);
    left.extend((rest > 0).then(|| format!("{} else", Bytes(rest))));
    if !left.is_empty() {
        lines.push(format!("left to Linux: {}", left.join(", ")));
    }
    if pool.is_some() && figures.fallbacks > 0 {
        let failed = match figures.failed {
            0 => String::new(),
            calls => format!(", {calls} of which failed"),
        };
        lines.push(format!(
            "the pool was too small for {} calls{failed}; {} would have served all",
            figures.fallbacks,
            Bytes(figures.demand_bytes_peak)
        ));
    }
    let alone = |why| ran.told.iter().filter(|told| told.left_alone == Some(why)).count();
    let kinds = [(LeftAlone::Sanitizer, "built with a sanitizer"), (LeftAlone::Libc, "with a libc that is not known")];
    let alone = kinds.map(|(why, what)| (alone(why), what)).into_iter().filter(|(count, _)| *count > 0);
    lines.extend(alone.map(|(count, what)| format!("not served: {count} process(es) {what}")));
    lines.extend(ran.notes.iter().cloned());
    lines
}

fn status_of(exit: Exit) -> Status {
    match exit {
        Exit::Status(code) => Status::Code(code),
        Exit::Signal(signal) => Status::Signal(signal),
        Exit::TimedOut | Exit::StoppedEarly | Exit::StillRunning => Status::Code(OWN_FAILURE),
    }
}

/// Each rank has its launcher, and a file of its own.
fn of_rank(path: &Path, rank: Option<&Rank>) -> PathBuf {
    match rank {
        Some(rank) if path != Path::new("-") => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}", rank.number));
            name.into()
        }
        _ => path.into(),
    }
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
            rank: None,
            node: None,
            left_alone: None,
            figures: Figures { demand_bytes_peak, ..Figures::default() },
        }
    }

    #[test]
    fn a_pool_is_for_those_that_ran_together_in_whole_segments() {
        let processes = [told(1, 65 << 20), told(2, 1 << 20), told(3, 200 << 20)];
        let seen = |sets: &[&[u64]]| sets.iter().map(|set| set.iter().map(|pid| (*pid, 7)).collect()).collect();
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
        let all = [processes.iter().map(|told| (told.pid, told.ticks)).collect()].into();
        // 40 times 576 MiB in segments of 64; a pool of that has some of 128, of which each takes five.
        assert_eq!(needed(&processes, &all), 40 * (640 << 20));
    }

    #[test]
    fn statistics_of_ranks_stand_side_by_side() {
        let rank = Rank { number: 3, ranks: 4, job: "j".into() };
        assert_eq!(of_rank(Path::new("a.json"), Some(&rank)), Path::new("a.json.3"));
        assert_eq!(of_rank(Path::new("-"), Some(&rank)), Path::new("-"));
        assert_eq!(of_rank(Path::new("a.json"), None), Path::new("a.json"));
    }
}
