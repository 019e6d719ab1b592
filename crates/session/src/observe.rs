//! One run of a command, from before its first instruction to after its last, as an observation.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::{Duration, Instant};

use emulate::{Hold, Shared};
use job::{Command, Ended, Output, Prepared, Running};
use linux::bpf::Rung;
use linux::cgroup::{Cgroup, Swap};
use linux::endings::Tree;
use linux::numa::{self, Occupied};
use linux::procfs;
use linux::shared_memory::{Before, Used};
use model::{
    Buffers, Evidence, Exit, FileDemand, FileReference, KeptPeaks, LATER_THROUGH_MAPPINGS, Named, Observation, RunRole,
    Rusage, Target, names,
};
use record::Entry;
use rustix::process::Signal;
use sample::{ExitRecords, Options, Row, Sampler, Scope};
use serde::{Deserialize, Serialize};
use track::pages::Scope as PagesScope;
use track::{Follower, Mapped, MappedTracker, SHARED_BYTES, Tracked, Tracker};

use crate::bench::{Bench, unix_ns};
use crate::gathered::{Outside, went_on};
use crate::given::Given;
use crate::kept;
use crate::launch::Launch;
use crate::orphans;
use crate::processes::{self, Main};
use crate::references::{Inside, MUCH_MAPPED_BYTES};
use crate::stop::{Stop, Whole, lift_limit};
use crate::tier::FastTier;

/// How often it is asked whether the run has gone on for too long, however seldom it is sampled.
const TICK: Duration = Duration::from_millis(50);

/// What is to be run, and how.
#[derive(Clone)]
pub struct Plan<'a> {
    /// Number within the record.
    pub run: u32,
    /// What it is for.
    pub role: RunRole,
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// What is set in its environment beside what it inherits.
    pub environment: Vec<(String, OsString)>,
    /// Whether the command has our standard streams; else it has none, and the end of its standard error is kept.
    pub inherit: bool,
    /// Else its standard input; `None`: `/dev/null`.
    pub input: Option<&'a Given>,
    /// The limit: without swap, or of the fast memory.
    pub limit_bytes: Option<u64>,
    /// The fast memory, if there is slower.
    pub fast_tier: Option<FastTier>,
    /// The state of the page cache, in words.
    pub cache_state: String,
    /// End it after this time.
    pub timeout: Option<Duration>,
    /// Time between samples.
    pub interval: Option<Duration>,
    /// Whether agents on other nodes measure their parts of the job, which are in cgroups of the agents'.
    pub over_nodes: bool,
    /// Whether what it leaves behind (processes, page cache) is removed, as before a next trial.
    pub clean_up: bool,
}

/// How a run goes, while it goes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Since its start.
    pub elapsed: Duration,
    /// When the last sample was taken, which the figures below are of.
    pub sampled: Duration,
    /// Charge.
    pub charge_bytes: Option<u64>,
    /// File pages brought back so far.
    pub refaults: Option<u64>,
    /// Block I/O delay so far, seconds, all tasks.
    pub io_delay_seconds: Option<f64>,
    /// CPU time so far, seconds, all tasks.
    pub cpu_seconds: Option<f64>,
}

/// A run and what is not part of its observation.
pub struct Observed {
    /// What it showed.
    pub observation: Observation,
    /// The end of its standard error, if it did not inherit ours.
    pub errors: String,
    /// The sentence of a command that could not be started, with its status.
    pub not_started: Option<job::Error>,
}

/// Runs `plan.command` once. Every row goes to `sink` as it is made; `watch` sees each and may end the run by `true`.
pub fn observe(
    bench: &Bench,
    plan: &Plan<'_>,
    sink: &mut dyn FnMut(Entry) -> anyhow::Result<()>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> anyhow::Result<Observed> {
    let errors = if plan.inherit { None } else { Some(kept::file()?) };
    let output = match &errors {
        Some(file) => {
            Output::Quiet { input: plan.input.map(Given::for_a_run).transpose()?.flatten(), errors: file.try_clone()? }
        }
        None => Output::Inherited,
    };
    let name = format!("run-{}", plan.run);
    let group = if bench.emulates_limits { None } else { bench.place.new_cgroup(&bench.journal, &name)? };
    let emulated = bench.emulates_limits.then(|| Arc::new(Shared::default()));
    let tree = Tree::new();
    let whole = group.as_ref().map_or(Whole::Tree(&tree), Whole::Cgroup);
    let fast_node = plan.fast_tier.and_then(FastTier::node);
    if let Some(limit) = plan.limit_bytes.filter(|_| fast_node.is_none() && emulated.is_none()) {
        let Some(group) = &group else {
            anyhow::bail!(
                "a limit of {} cannot be enforced here: {}",
                model::Bytes(limit),
                bench.place.missing().join("; ")
            );
        };
        group.set_limit(Some(limit), plan.fast_tier.map_or(Swap::Forbidden, FastTier::swap))?;
    }

    let _preferred = fast_node.map(numa::Preferred::node).transpose()?;
    let cgroup = group.as_ref().map(|group| (**group).clone());
    let mut notes: Vec<String> = bench.not_own_cgroup.iter().filter(|_| group.is_none()).cloned().collect();
    let tracker_origin = procfs::monotonic_ns();
    let follower = || {
        let hold = Hold::new(plan.limit_bytes, plan.clean_up, emulated.clone()?);
        Some(Box::new(hold) as Box<dyn Follower>)
    };
    let is_limited = plan.limit_bytes.is_some();
    let start_inside = || Inside::start(plan.command, plan.environment.clone(), tracker_origin, follower());
    let inside = bench.references_inside.then(start_inside);
    if let (Some(Err(why)), true, true) = (&inside, is_limited, emulated.is_some()) {
        anyhow::bail!("no limit can be set here, and none emulated: {why}");
    }
    let (mut inside, launch) = inside.and_then(|inside| inside.map_err(|why| notes.push(why)).ok()).unzip();
    let Launch { words, environment } =
        launch.unwrap_or_else(|| Launch { words: plan.command.to_vec(), environment: plan.environment.clone() });
    let prepared = Prepared::new(&Command { words, environment, output, cgroup: cgroup.clone() })?;
    let stub = prepared.pid();
    let scope = match cgroup {
        Some(cgroup) => Scope::Cgroup(cgroup),
        // Without a cgroup to hold them together, processes that lose their parent come to us.
        None => {
            linux::children::adopt_orphans()?;
            // Those of a run before this one.
            drop(linux::children::take_orphans());
            // Where the page cache is counted file by file, a charge with what is others' in it says less.
            let within = bench.own_cgroup.clone().filter(|_| emulated.is_none());
            Scope::Tree { root: std::process::id() as i32, within }
        }
    };
    let shared_by_us_bytes = inside.as_ref().map_or(0, |_| SHARED_BYTES);
    let options = Options { interval: plan.interval, io_wait: bench.io_wait, shared_by_us_bytes };
    let mut sampler = Sampler::new(scope, options, Instant::now());
    if let Some(told) = inside.as_mut().and_then(Inside::files_in_memory) {
        sampler.hear_of_files_in_memory(told);
    }
    let tracker = bench.track(&[stub], tracker_origin, &mut notes);
    // Under a limit the job faults anew on what it references again.
    let is_scanned = tracker.is_some() && bench.sees_references() && plan.limit_bytes.is_none();
    let mapped = is_scanned.then(|| MappedTracker::start(mapped_scope(group.as_deref(), stub), tracker_origin));
    let mapped = mapped.and_then(|mapped| mapped.map_err(|error| notes.push(error.to_string())).ok());
    let mut exits = if tracker.is_some() { None } else { ExitRecords::start().ok() };
    // Last: what else begins here takes memory, and gives some of it back.
    let mut shared = Before::note(stub, group.as_deref().map(Cgroup::dir));
    let _occupied = fast_node.zip(plan.limit_bytes).map(|(node, limit)| Occupied::leaving(node, limit)).transpose()?;
    let started_unix_ns = unix_ns();
    sink(Entry::RunBegin {
        run: plan.run,
        role: plan.role,
        target: Target::Command,
        limit_bytes: plan.limit_bytes,
        cache_state: plan.cache_state.clone(),
        started_unix_ns,
    })?;
    record_row(sampler.sample(), plan.run, sink)?;

    let running = match prepared.go(&bench.signals) {
        Ok(running) => running,
        Err(error) => {
            let observation = nothing_ran(plan, started_unix_ns, &error);
            return Ok(Observed { observation, errors: String::new(), not_started: Some(error) });
        }
    };
    sampler.begin(running.started());
    let begin_ns = procfs::monotonic_ns() - running.started().elapsed().as_nanos() as u64;
    let own_group = group.as_ref().filter(|_| !plan.over_nodes);
    let mut outside = own_group.map(|group| Outside::of(group, running.pid()));
    let eyes = Eyes {
        sampler: &mut sampler,
        exits: exits.as_mut(),
        outside: outside.as_mut().map(|outside| (outside, tracker.as_ref())),
        shared: &mut shared,
        emulated: emulated.as_deref(),
        sink,
        watch,
    };
    let ended = follow(bench, plan, &running, whole, eyes)?;
    bench.signals.set_target(0);
    record_row(sampler.sample(), plan.run, sink)?;

    let is_ended_by_us = matches!(ended.exit, Exit::TimedOut | Exit::StoppedEarly);
    let evidence = Evidence {
        moved: ended.reaped.moved,
        outside: outside.map(Outside::finish).unwrap_or_default(),
        interrupted: bench.signals.interrupted(),
        waited_for_none: ended.reaped.waited_for_none,
        went_on: if is_ended_by_us { Vec::new() } else { went_on(group.as_deref()) },
        ..Evidence::default()
    };
    let mapped = mapped.map(MappedTracker::finish).unwrap_or_default();
    notes.extend(mapped.failure().map(|why| format!("Mapped pages are not scanned: {why}.")));
    let most_resident = ended.reaped.rusage.max_rss_bytes;
    let seen_inside = |inside: Inside| inside.finish(ended.reaped.moved, most_resident);
    let inside = inside.and_then(|inside| seen_inside(inside).map_err(|why| notes.push(why)).ok());
    let enlarged_bytes = inside.as_ref().map_or(0, |noted| noted.pipe_bytes);
    let (mut inside, own_resident_bytes) = inside.map_or((None, 0), |noted| (Some(noted.tracked), noted.own_bytes));
    let emulated = emulated.filter(|_| inside.is_some()).map(|emulated| emulated.emulated());
    let mut tracked = tracker.and_then(|tracker| tracker.finish().map_err(|error| notes.push(error.to_string())).ok());
    // The tracker was there before the run's time began.
    let lead_ns = begin_ns.saturating_sub(tracker_origin);
    for process in [&mut tracked, &mut inside].into_iter().flatten().flat_map(|tracked| &mut tracked.processes) {
        process.started_seconds = process.started_seconds.map(|seconds| seconds - lead_ns as f64 / 1e9);
    }
    let sampled = sampler.finish();
    let mut sources = sampled.sources;
    let main = Main { pid: running.pid(), stub, ended: &ended.reaped, wall_seconds: ended.wall_seconds };
    let mut told = tracked.as_ref().or(inside.as_ref()).map(|tracked| tracked.processes.clone());
    if let Some((records, lost)) = exits.map(|exits| exits.finish(main.pid)) {
        told = Some(records);
        notes.extend(lost.then(|| "Exit records were lost: some short-lived processes may be missing.".to_string()));
    }
    let mut processes = processes::merge(sampled.processes, told, &main, &mut sources);
    orphans::add(&mut processes, linux::children::take_orphans(), begin_ns as f64 / 1e9);
    let untold = processes::untold_faults(&processes, &ended.reaped, &sources);
    let are_to_tell = bench.references_inside;
    notes.extend(are_to_tell.then(|| processes::missing(untold, &ended.reaped.rusage, &sources)).flatten());
    let faulted_bytes = processes::faulted_bytes(&processes, &ended.reaped.rusage);
    let pids: HashSet<i32> = processes.iter().map(|process| process.key.pid).chain([main.pid]).collect();
    let shared = shared.used(&|pid| pids.contains(&pid));
    // A next trial must find neither this one's processes nor its page cache, which would stay, charged to the parent
    // (trap 1). After a single run, both are left as they would be without bursar.
    if plan.clean_up {
        let cleaned = match &group {
            Some(group) => group.kill_all().and_then(|()| group.reclaim_all()).map(drop),
            None => tree.kill_all(),
        };
        notes.extend(cleaned.err().map(|error| error.to_string()));
    }
    let rusage = Rusage { max_rss_bytes: most_resident - own_resident_bytes, ..ended.reaped.rusage };
    let mut observation = Observation {
        exit: ended.exit,
        wall_seconds: ended.wall_seconds,
        rusage: Some(rusage),
        kept: match ended.is_beyond_limit {
            true => KeptPeaks { oom_kills: Some(1), ..sampled.kept },
            false => sampled.kept,
        },
        series: sampled.series,
        processes,
        sources,
        notes,
        evidence: Evidence {
            shared_mapped_bytes: sampled.shared_mapped,
            hugetlb_mapped_bytes: sampled.hugetlb_mapped,
            files_in_memory: sampled.files_in_memory,
            with_files_in_memory_bytes: sampled.with_files_in_memory_bytes,
            unmapped_shared_bytes: sampled.unmapped_shared_bytes.map(|bytes| bytes.min(faulted_bytes)),
            buffers: Buffers {
                // What the processes write may be anything.
                pipe_bytes: sampled.buffers.pipe_bytes.saturating_add(enlarged_bytes),
                ..sampled.buffers
            },
            own_bytes: sampled.own_bytes,
            untold_bytes: untold.map(|faults| faults.saturating_mul(procfs::page_bytes())),
            emulated,
            ..evidence
        },
        ..begun(plan, started_unix_ns)
    };
    if let Some(tracked) = inside.or(tracked) {
        add_file_demand(&mut observation, &tracked, &mapped, lead_ns);
    }
    add_shared(&mut observation, shared);
    Ok(Observed { observation, errors: errors.map(end_of).unwrap_or_default(), not_started: None })
}

/// Files in memory that an observation lists one by one.
const LISTED_FILES: usize = 16;

/// Adds what memory of others the job used.
fn add_shared(observation: &mut Observation, used: Used) {
    let mapped = observation.evidence.shared_mapped_bytes.unwrap_or(0);
    let hidden = observation.file_demand.iter().flat_map(|demand| &demand.not_visible);
    let ramfs: Option<u64> = hidden.filter(|(name, _)| name == "ramfs").map(|(_, bytes)| *bytes).next().flatten();
    let sum = |files: &[Named]| files.iter().filter_map(|file| file.bytes).sum::<u64>();
    let evidence = &mut observation.evidence;
    let mut opened = used.by_job;
    match ramfs {
        // The tracker saw how much of ramfs the job itself referenced, not of which files.
        Some(bytes) if bytes < sum(&used.ramfs) / 2 => opened.extend(
            used.ramfs
                .into_iter()
                .take(1)
                .map(|file| Named { bytes: Some(bytes.min(file.bytes.unwrap_or(0))), ..file }),
        ),
        Some(_) => opened.extend(used.ramfs),
        None if observation.file_demand.is_none() => evidence.shared_before.extend(used.ramfs),
        None => {}
    }
    // What the job mapped and did not open may be a segment that somebody else used after it, or that is gone.
    let unexplained = mapped.saturating_sub(sum(&opened));
    for (segment, is_job) in used.segments {
        if is_job || segment.bytes.is_some_and(|bytes| bytes / 2 <= unexplained) {
            evidence.shared_before.push(segment);
        }
    }
    evidence.shared_before.extend(used.perhaps);
    opened.sort_by_key(|file| std::cmp::Reverse(file.bytes));
    let rest = opened.split_off(opened.len().min(LISTED_FILES));
    if !rest.is_empty() {
        opened.push(Named { name: format!("{} smaller files", rest.len()), bytes: Some(sum(&rest)) });
    }
    evidence.shared_opened = opened;
    evidence.shared_opened_is_incomplete = used.is_incomplete;
}

/// Whose mapped pages are scanned.
fn mapped_scope(group: Option<&Cgroup>, stub: i32) -> PagesScope {
    match group {
        Some(group) => PagesScope::Cgroup(group.clone()),
        None => PagesScope::Command(stub),
    }
}

/// How a run ended.
struct End {
    exit: Exit,
    reaped: Ended,
    wall_seconds: f64,
    /// What cannot be reclaimed grew beyond an emulated limit.
    is_beyond_limit: bool,
}

/// What looks at a run while it goes on, and who is told.
struct Eyes<'a> {
    sampler: &'a mut Sampler,
    exits: Option<&'a mut ExitRecords>,
    outside: Option<(&'a mut Outside, Option<&'a Tracker>)>,
    shared: &'a mut Before,
    emulated: Option<&'a Shared>,
    sink: &'a mut dyn FnMut(Entry) -> anyhow::Result<()>,
    watch: &'a mut dyn FnMut(Progress) -> bool,
}

/// Samples until the command ends, by itself or by us.
fn follow(bench: &Bench, plan: &Plan<'_>, running: &Running, whole: Whole<'_>, eyes: Eyes<'_>) -> anyhow::Result<End> {
    let Eyes { sampler, mut exits, mut outside, shared, emulated, sink, watch } = eyes;
    let mut is_beyond_limit = false;
    let mut stopped: Option<(Exit, Stop<'_>, Duration)> = None;
    let mut due = Instant::now() + sampler.interval();
    loop {
        let patience = due.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(1), TICK);
        if let Some((reaped, wall_seconds)) = running.wait(patience)? {
            return Ok(match stopped {
                None => End { exit: reaped.exit, reaped, wall_seconds, is_beyond_limit },
                // What it took to clean up is no part of the run.
                Some((exit, stop, after)) => {
                    stop.end_the_rest();
                    End { exit, reaped, wall_seconds: wall_seconds.min(after.as_secs_f64()), is_beyond_limit }
                }
            });
        }
        if Instant::now() >= due {
            record_row(sampler.sample(), plan.run, sink)?;
            if let Some((outside, tracker)) = &mut outside {
                outside.look(*tracker);
            }
            due = Instant::now() + sampler.interval();
        }
        if let Some(exits) = &mut exits {
            exits.collect();
        }
        shared.drain();
        let last = |name| sampler.last(name);
        let progress = Progress {
            elapsed: running.started().elapsed(),
            sampled: sampler.last_at(),
            charge_bytes: last(names::CHARGE).map(|v| v as u64),
            refaults: emulated.map(Shared::read_again_pages).or(last(names::REFAULTS_FILE).map(|v| v as u64)),
            io_delay_seconds: last(names::IO_DELAY),
            cpu_seconds: last(names::CPU),
        };
        if let Some(emulated) = emulated {
            let (least, most) = unreclaimable(&last);
            emulated.set_held(most);
            // The kernel would have killed it.
            is_beyond_limit |= stopped.is_none() && plan.limit_bytes.is_some_and(|limit| least > limit);
        }
        let why = match &mut stopped {
            Some((_, stop, _)) => {
                stop.insist(running);
                continue;
            }
            None if plan.timeout.is_some_and(|limit| progress.elapsed >= limit) => Exit::TimedOut,
            // As the kernel does.
            None if is_beyond_limit => Exit::Signal(Signal::KILL.as_raw()),
            None if watch(progress) || (!plan.inherit && bench.signals.interrupted()) => Exit::StoppedEarly,
            None => continue,
        };
        if let (Whole::Cgroup(group), Some(_)) = (whole, plan.limit_bytes) {
            lift_limit(group, plan.fast_tier);
        }
        let is_request = !plan.inherit && bench.signals.interrupted();
        stopped = Some((why, Stop::begin(running, whole, &bench.signals, is_request), progress.elapsed));
    }
}

/// What no reclaim takes of a tree now, without swap, bytes: the lower and the upper bound. `last`: of the last sample.
fn unreclaimable(last: &dyn Fn(&'static str) -> Option<f64>) -> (u64, u64) {
    let sum = |names: [&'static str; 4]| names.into_iter().filter_map(last).sum::<f64>() as u64;
    let most = sum([names::TREE_HEAP_MOST, names::TREE_SHARED_MOST, names::PAGE_TABLES, names::SOCKETS]);
    let least = |least, sum| last(least).or(last(sum)).unwrap_or(0.0) as u64;
    let heap = least(names::TREE_HEAP_LEAST, names::TREE_RSS_ANON);
    let sockets = last(names::SOCKETS).unwrap_or(0.0) as u64;
    (heap + least(names::TREE_SHARED_LEAST, names::TREE_RSS_SHARED) + sockets, most)
}

/// Appends a row of samples, and the series that are new in it.
///
/// # Errors
/// Those of `sink`.
pub(crate) fn record_row(row: Row, run: u32, sink: &mut dyn FnMut(Entry) -> anyhow::Result<()>) -> anyhow::Result<()> {
    for new in row.new {
        let name = new.name.to_string();
        sink(Entry::Series { id: new.id, run, process: new.process, name, unit: new.unit, rung: new.rung })?;
    }
    sink(Entry::Sample { t_ns: row.t_ns, values: row.values })
}

/// What a job maps of files, where it is more than programs and their libraries and was not scanned. Then only the first reference
/// through a mapping is seen, and where the kernel maps large folios not each first one.
fn read_through_mappings(observation: &Observation, mapped: &Mapped) -> Option<(String, Option<u64>)> {
    let all = observation.job_series(names::TREE_RSS_FILE)?.peak()? as u64;
    let is_unseen = all >= MUCH_MAPPED_BYTES && mapped.resident_bytes() < all / 4 * 3;
    is_unseen.then(|| (LATER_THROUGH_MAPPINGS.into(), Some(all)))
}

/// Adds the curve of what the page cache would cost, from what was referenced and what could not be reclaimed at the time.
/// `lead_ns`: how long before the observation's begin the tracker's time begins.
pub(crate) fn add_file_demand(observation: &mut Observation, tracked: &Tracked, mapped: &Mapped, lead_ns: u64) {
    observation.sources.insert("file_demand".into(), tracked.rung.clone());
    if tracked.rung == Rung::Processes.to_string() {
        observation.notes.push("This kernel has no tracepoint for references to the page cache.".into());
        return;
    }
    observation.kept.most_cached_bytes = tracked.most_cached_bytes;
    let heaps: Vec<(u64, u64)> =
        tracked.heaps.iter().map(|(t_ns, bytes)| (t_ns.saturating_sub(lead_ns), *bytes)).collect();
    let unreclaimable = account::with_heaps(account::unreclaimable_over_time(observation), &heaps);
    let at = |reference: FileReference| FileReference { t_ns: reference.t_ns.saturating_sub(lead_ns), ..reference };
    let references = tracked.joined(mapped).map(at);
    let is_told = tracked.not_visible.iter().any(|(name, _)| name == LATER_THROUGH_MAPPINGS);
    let through_mappings = read_through_mappings(observation, mapped).filter(|_| !is_told);
    observation.file_demand = Some(FileDemand {
        foreign: tracked.foreign.clone(),
        not_visible: tracked.not_visible.iter().cloned().chain(through_mappings).collect(),
        mapped_scanned_bytes: mapped.distinct_bytes(),
        lost_events: tracked.lost_events,
        rung: tracked.rung.clone(),
        ..curve::file_demand(references, &unreclaimable, procfs::page_bytes())
    });
}

fn begun(plan: &Plan<'_>, started_unix_ns: u64) -> Observation {
    let begun = Observation::begun(plan.run, plan.role, Target::Command, plan.cache_state.clone(), started_unix_ns);
    Observation { limit_bytes: plan.limit_bytes, ..begun }
}

fn nothing_ran(plan: &Plan<'_>, started_unix_ns: u64, error: &job::Error) -> Observation {
    let begun = begun(plan, started_unix_ns);
    let notes = vec![error.to_string()];
    match error {
        // Under a limit, nothing else kills what is about to become the command.
        job::Error::Killed { signal, .. } if plan.limit_bytes.is_some() => {
            let kept = KeptPeaks { oom_kills: Some(1), ..begun.kept };
            Observation { exit: Exit::Signal(*signal), kept, notes, ..begun }
        }
        _ => Observation { exit: Exit::Status(error.exit_status()), notes, ..begun },
    }
}

/// The last 4 KiB of what a command wrote to its standard error.
fn end_of(mut file: File) -> String {
    let mut end = Vec::new();
    let length = file.seek(SeekFrom::End(0)).unwrap_or(0);
    if file.seek(SeekFrom::Start(length.saturating_sub(4096))).is_ok() {
        let _ = file.read_to_end(&mut end);
    }
    String::from_utf8_lossy(&end).into_owned()
}
