//! Who inside a command holds its memory: runs with bursar's library in them, and what their logs show.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use attribute::Options as OfRun;
use job::preload::{self, Library};
use model::{Attribution, Axis, Bytes, Named, Observation, OtherProcess, RecordKind, RunRole, Target, UNMATCHED_NOTE};
use record::{Entry, Record};
use report::Attributed;
use rustix::process::{Resource, getrlimit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bench::{Bench, References, header};
use crate::launch::{Launch, Launcher, launch};
use crate::logs::{Folder, Found, of_one_job};
use crate::observe::{Plan, observe};
use crate::rank::Rank;
use crate::say::tell;
use crate::sink::{Sink, finish_run};
use crate::spool::without_library;
use crate::status::{Status, ended};
use crate::unseen::{self, Purpose};
use crate::without_log::{here, kernel_peaks, large, strangers, strangers_note};

/// What MPI libraries are called: Open MPI, MPICH and those made of it, the MPI-5 ABI; with their Fortran and C++ parts.
const MPI: [&str; 8] = [
    "libmpi.so*",
    "libmpi_*.so*",
    "libmpich*.so*",
    "libmpichf*.so*",
    "libmpifort*.so*",
    "libmpicxx*.so*",
    "libpmpi*.so*",
    "libpmpich*.so*",
];

/// How the library begins what matters to `--by-library` alone.
const OF_LIBRARIES: &str = "by library: ";
/// The library's `COMPONENTS` less the application and MPI, and its `GLOBS` less those of MPI.
const MOST_COMPONENTS: usize = 14;
const MOST_GLOBS: usize = 56;

/// The figures of one run.
#[derive(JsonSchema, Serialize)]
pub struct RunFigures<'a> {
    exit_status: Option<i32>,
    wall_seconds: f64,
    /// Processes that went on when the command ended.
    went_on: &'a [Named],
    /// Charged to the job, in files in memory that no process had mapped.
    files_in_memory_bytes: u64,
    #[serde(flatten)]
    attribution: &'a Attribution,
}

/// The figures of a record.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Figures<'a> {
    /// Of its run.
    Run(Box<RunFigures<'a>>),
    /// Of its runs with several numbers of ranks.
    Scaling {
        /// One for each.
        scaling: Vec<RunFigures<'a>>,
    },
}

/// What is attributed, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Names of components, each with a pattern of shared objects.
    pub components: Vec<(String, String)>,
    /// The rule by which memory is a component's.
    pub by: Axis,
    /// Whether every component is broken down by shared object.
    pub by_library: bool,
    /// Whether messages and bytes between ranks are counted.
    pub comm_matrix: bool,
    /// Whether it is measured how long each function takes.
    pub times: bool,
    /// Time between looks at a process's memory, at the fastest.
    pub interval: Duration,
    /// The most that each process may log.
    pub log_limit: Bytes,
    /// Numbers that take the place of every `{}` in the command, each in a run; empty: one run of the command as it is.
    pub scaling: Vec<u32>,
    /// Ends the command and all that it has started.
    pub timeout: Option<Duration>,
    /// Where the record is kept; `None`: a new file in the state folder.
    pub record: Option<PathBuf>,
}

/// What came of it.
pub enum Outcome {
    /// A record, where it is kept, and what bursar ends with.
    Recorded(Box<Record>, Option<PathBuf>, Status),
    /// Another rank has the record, or the command could not be started; what bursar ends with.
    Nothing(Status),
}

/// Runs the command, once or for each number of `scaling`, with bursar's library in it.
///
/// # Errors
/// A sentence if the options contradict each other, or if the command cannot be observed or recorded.
pub fn attribute(options: &Options) -> anyhow::Result<Outcome> {
    if options.by == Axis::Touch && options.by_library {
        bail!("--by-library shows whose call obtained memory; use it with --by owner");
    }
    let names: BTreeSet<&str> =
        options.components.iter().map(|(name, _)| name.as_str()).filter(|n| *n != "mpi").collect();
    if names.len() > MOST_COMPONENTS || options.components.len() > MOST_GLOBS {
        bail!(
            "{} components with {} patterns, and at most {MOST_COMPONENTS} with {MOST_GLOBS} can be told apart; give several \
             patterns one name",
            names.len(),
            options.components.len()
        );
    }
    let launcher = Launcher::of(&options.command);
    // Under a launcher every rank has its bursar; one of them is told what all have logged. Where we start the launcher,
    // whatever we were started by is another job's.
    let rank = if launcher.is_some() { None } else { Rank::find() };
    if !options.scaling.is_empty() && rank.is_some() {
        bail!("--scaling starts the launcher itself: bursar attribute --scaling 1,2,4 -- mpirun -n {{}} ./app");
    }
    let has_place = |word: &OsString| word.to_str().is_some_and(|text| text.contains("{}"));
    if !options.scaling.is_empty() && !options.command.iter().any(has_place) {
        bail!("--scaling puts each number in place of {{}}, and the command has no {{}}: mpirun -n {{}} ./app");
    }
    // What is referenced in files is no part of its report.
    let bench = Bench::set_up(None, References::Traced)?;
    let mut header = bench.header(RecordKind::Attribute, &options.command, "as the machine allows");
    header.options = saved(options);
    let is_first = rank.as_ref().is_none_or(|rank| rank.number == 0);
    let (mut sink, no_record) =
        if is_first { Sink::create(options.record.as_deref(), &header)? } else { (Sink::none(), None) };
    let mut record = Record { notes: bench.notes(), ..Record::new(header) };
    record.notes.extend(no_record);
    let library = preload::unpack(Library::Runtime).map_err(|error| without_library(&error.to_string()));
    let wanted = Wanted { by: options.by, comm_matrix: options.comm_matrix, by_library: options.by_library };
    let mut status = Status::of(0);
    let commands = commands(options);
    for (run, command) in (0u32..).zip(&commands) {
        // Only the first of several ranks has a record.
        let own = sink.path().filter(|_| rank.is_none());
        let beside = options.record.as_deref().or(own);
        let (folder, nowhere) = match Folder::create(beside, rank.as_ref(), launcher) {
            Ok(folder) => (folder, None),
            Err(error) => (Folder::nowhere(), Some(without_library(&format!("{error:#}")))),
        };
        let kept_out = unseen::sanitizer(command, launcher, Purpose::Attribute).or(nowhere);
        let library = kept_out.map_or(library.as_ref().map_err(String::clone), Err);
        let launch = match library {
            Ok(library) => launch(command, launcher, library, variables(options, folder.path())),
            Err(_) => Launch { words: command.clone(), environment: Vec::new() },
        };
        let plan = Plan {
            run,
            role: RunRole::Plain,
            command: &launch.words,
            environment: launch.environment,
            inherit: true,
            input: None,
            limit_bytes: None,
            fast_tier: None,
            cache_state: if run == 0 { "as found" } else { "as the run before left it" }.into(),
            timeout: options.timeout,
            interval: None,
            over_nodes: false,
            clean_up: false,
        };
        let observed = match observe(&bench, &plan, &mut |entry| sink.append(entry), &mut |_| false) {
            Ok(observed) => observed,
            Err(error) => {
                // The others of a job go on with theirs.
                if rank.is_none() && folder.read().logs.is_empty() {
                    folder.remove();
                }
                return Err(error);
            }
        };
        let mut observation = observed.observation;
        let mut absent = None;
        status = ended(&observation);
        if let Some(rank) = &rank {
            folder.tell_end(rank);
            if !is_first {
                return Ok(Outcome::Nothing(status));
            }
            absent = folder.wait_for_others(rank, &bench.signals);
            observation.notes.extend(absent.clone());
        }
        if let Some(error) = observed.not_started {
            tell!("bursar: {error}");
            folder.remove();
            sink.end_without(&record);
            return Ok(Outcome::Nothing(Status::of(error.exit_status())));
        }
        let mut found = folder.read();
        attribute::identify(&mut found.logs, &observation.processes, &here(&observation));
        let why = || unseen::why(command, launcher, bench.signals.interrupted());
        let unseen = library.err().or_else(|| found.logs.is_empty().then(why));
        for sentence in found.troubles.iter().chain(&unseen) {
            tell!("bursar: {sentence}");
        }
        observation.notes.extend(unseen);
        observation.notes.extend(few_addresses());
        let without = strangers(&observation.processes, &found);
        let note = strangers_note(&without, &found);
        let without = large(&record.header.host, &without, &observation.processes);
        observation.notes.extend(note);
        observation.notes.extend(attribute::unmatched(&found.logs, &options.components));
        let peaks = kernel_peaks(&observation, &found.logs);
        attribute::add_kernel_peaks(&mut found.logs, &peaks);
        let is_kept = keep(&wanted, &mut sink, &mut record, observation, &found, without)?;
        // With the logs of the others a report of all can be made.
        if (is_kept || folder.is_in_memory()) && found.troubles.is_empty() && absent.is_none() {
            folder.remove()
        } else {
            folder.tell_where()
        }
        if status.code() != 0 || bench.signals.interrupted() {
            break;
        }
    }
    record.notes.extend_from_slice(bench.machine_notes(&record));
    Ok(Outcome::Recorded(Box::new(record), sink.seal(), status))
}

/// A record of the logs that runs have left which could not tell of them themselves. It is kept at `kept`.
///
/// # Errors
/// A sentence if there is no log that can be read, or if they are of several jobs.
pub fn of_logs(folders: &[PathBuf], kept: Option<&Path>) -> anyhow::Result<(Record, Option<PathBuf>)> {
    let folders = folders.iter().map(|path| Folder::left(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let found = of_one_job(&folders)?;
    for sentence in &found.troubles {
        tell!("bursar: {sentence}");
    }
    let first = found.logs.iter().min_by_key(|log| log.started.unix_ns);
    let first = &first
        .with_context(|| format!("{}: there is no log in it that can be read", folders[0].path().display()))?
        .started;
    let words: Vec<OsString> = first.arguments.iter().map(Into::into).collect();
    let mut header = header(RecordKind::Attribute, &words);
    (header.host, header.started_unix_ns) = (first.host.clone(), first.unix_ns);
    let mut sink = Sink::at(kept, &header)?;
    let mut record = Record::new(header);
    let observation = Observation::begun(0, RunRole::Plain, Target::Command, "not known".into(), first.unix_ns);
    sink.append(Entry::begin(&observation))?;
    // What was followed is in the logs.
    let wanted = Wanted {
        by: if found.logs.iter().all(|log| log.touched.is_empty()) { Axis::Owner } else { Axis::Touch },
        comm_matrix: found.logs.iter().any(|log| !log.sent.is_empty()),
        by_library: false,
    };
    keep(&wanted, &mut sink, &mut record, observation, &found, Vec::new())?;
    Ok((record, sink.seal()))
}

/// The command, or one for each number of `--scaling`.
fn commands(options: &Options) -> Vec<Vec<OsString>> {
    let with = |number: &u32| {
        let replaced = |word: &OsString| match word.to_str() {
            Some(text) => text.replace("{}", &number.to_string()).into(),
            None => word.clone(),
        };
        options.command.iter().map(replaced).collect()
    };
    if options.scaling.is_empty() { vec![options.command.clone()] } else { options.scaling.iter().map(with).collect() }
}

/// What the library reads.
fn variables(options: &Options, folder: &Path) -> Vec<(String, OsString)> {
    let mut components = vec![("mpi", MPI.to_vec())];
    for (name, glob) in &options.components {
        match components.iter_mut().find(|(known, _)| known == name) {
            Some((_, globs)) => globs.push(glob),
            None => components.push((name, vec![glob])),
        }
    }
    let components: Vec<String> =
        components.iter().map(|(name, globs)| format!("{name}={}", globs.join(":"))).collect();
    let switch = |name: &str, on: bool| on.then(|| (name.to_string(), OsString::from("1")));
    let mut variables = vec![
        ("BURSAR_RUN".into(), folder.into()),
        ("BURSAR_COMPONENTS".into(), components.join(";").into()),
        ("BURSAR_INTERVAL_MS".into(), options.interval.as_millis().max(1).to_string().into()),
        ("BURSAR_LOG_LIMIT".into(), options.log_limit.0.to_string().into()),
    ];
    variables.extend(switch("BURSAR_TOUCH", options.by == Axis::Touch));
    variables.extend(switch("BURSAR_COMM", options.comm_matrix));
    variables.extend(switch("BURSAR_TIMES", options.times));
    variables
}

/// The options that its record is read by.
fn saved(options: &Options) -> BTreeMap<String, String> {
    let library = options.by_library.then(|| (report::BY_LIBRARY.to_string(), "yes".to_string()));
    let numbers: Vec<String> = options.scaling.iter().map(u32::to_string).collect();
    let scaling = (!numbers.is_empty()).then(|| (report::SCALING.to_string(), numbers.join(", ")));
    library.into_iter().chain(scaling).collect()
}

/// What the library itself reserves may be what the program then lacks.
fn few_addresses() -> Option<String> {
    let limit = getrlimit(Resource::As).current?;
    Some(format!(
        "Addresses are limited to {} (ulimit -v), and the library reserves 65 MiB of them for each GiB that the program's \
         memory lies in: the program may be refused memory that it has without it.",
        Bytes(limit)
    ))
}

/// What of the logs is wanted.
struct Wanted {
    by: Axis,
    comm_matrix: bool,
    by_library: bool,
}

/// Records a run with what its logs show; whether the record has it.
fn keep(
    wanted: &Wanted,
    sink: &mut Sink,
    record: &mut Record,
    observation: Observation,
    found: &Found,
    without_library: Vec<OtherProcess>,
) -> anyhow::Result<bool> {
    let of_run = OfRun {
        run: observation.run,
        started_unix_ns: observation.started_unix_ns,
        by: wanted.by,
        comm_matrix: wanted.comm_matrix,
    };
    let mut attributed = attribute::attribute(&found.logs, of_run);
    attributed.attribution.without_library = without_library;
    attributed.attribution.notes.retain(|note| wanted.by_library || !note.starts_with(OF_LIBRARIES));
    finish_run(sink, record, observation, attributed.series)?;
    sink.append(Entry::Attribution(Box::new(attributed.attribution.clone())))?;
    record.attributions.push(attributed.attribution);
    Ok(sink.path().is_some())
}

/// The figures of a record, of one run or of several.
///
/// # Errors
/// If no run was made.
pub fn figures(record: &Record, several: bool) -> anyhow::Result<Figures<'_>> {
    let mut runs = record.attributions.iter().map(|attribution| run_figures(record, attribution));
    if several {
        return Ok(Figures::Scaling { scaling: runs.collect() });
    }
    Ok(Figures::Run(Box::new(runs.next().context("no run was made")?)))
}

/// A record as its report sees it.
pub fn attributed<'a>(record: &'a Record, notes: &'a [String]) -> Attributed<'a> {
    let Record { header, attributions, runs, .. } = record;
    Attributed { header, attributions, runs, notes }
}

/// What the reader should know of the record and of its runs. First come patterns that match nothing, said once of all runs: their
/// components are in no table.
pub fn notes(record: &Record) -> Vec<String> {
    let all = || record.notes.iter().chain(record.runs.iter().flat_map(|run| &run.notes)).cloned();
    let mut notes: Vec<String> = Vec::new();
    for note in all().filter(|note| note.starts_with(UNMATCHED_NOTE)) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes.extend(all().filter(|note| !note.starts_with(UNMATCHED_NOTE)));
    notes
}

fn run_figures<'a>(record: &'a Record, attribution: &'a Attribution) -> RunFigures<'a> {
    let run = record.runs.iter().find(|run| run.run == attribution.run);
    RunFigures {
        exit_status: run.and_then(Observation::exit_status),
        wall_seconds: run.map_or(0.0, |run| run.wall_seconds),
        went_on: run.map_or(&[], |run| &run.evidence.went_on),
        files_in_memory_bytes: run.map_or(0, |run| report::files_in_memory(attribution, run).bytes()),
        attribution,
    }
}
