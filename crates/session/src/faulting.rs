//! How long a command's page faults take.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use job::{Command, Forwarding, Output, Prepared};
use linux::children::{self, Awaited};
use linux::endings::Tree;
use linux::faults::{Counted, Tracer};
use linux::procfs;
use model::{
    CallFigures, FaultFigures, FaultKind, Faults, MemoryCall, Observation, RecordKind, RunRole, SlowFault, Target,
    TracerCost,
};
use record::{Entry, Record};
use report::Faulted;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bench::{header, unix_ns};
use crate::say::tell;
use crate::sink::Sink;
use crate::status::{Status, ended};

/// How often what was seen is taken in: the programs keep 8 s, counters are read as finely as they are shown.
const TICK: Duration = Duration::from_secs(1);
const TICK_COUNTED: Duration = Duration::from_millis(20);

/// Runs the load over and over for as long as bursar, its parent, is there.
const LOAD: &str = r#"while kill -0 "$PPID" 2>/dev/null; do (eval "$1") || exit; done"#;

/// What `--json` prints. The faults over time and the histograms are in the record.
#[derive(JsonSchema, Serialize)]
pub struct Figures<'a> {
    exit_status: Option<i32>,
    wall_seconds: f64,
    rung: &'a str,
    kinds: BTreeMap<FaultKind, FaultFigures>,
    overall: FaultFigures,
    calls: &'a BTreeMap<MemoryCall, CallFigures>,
    unfinished_count: Option<u64>,
    untimed_count: Option<u64>,
    tracer: Option<TracerCost>,
    slowest: &'a [SlowFault],
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Box<Figures<'a>>>,
}

/// What sees the faults, best first.
enum Seeing {
    Timed(Box<Tracer>),
    Counted(Counted),
    /// What `wait4` says in the end.
    Told,
}

/// Runs the command, and with `beside` once more beside that load; the record, where it is kept, and what bursar ends with.
///
/// # Errors
/// A sentence if the command or the load cannot be started, or if what is seen cannot be recorded.
pub fn faults(
    command: &[OsString],
    beside: Option<&str>,
    kept: Option<&Path>,
) -> anyhow::Result<(Record, Option<PathBuf>, Status)> {
    let signals = Forwarding::start()?;
    let header = header(RecordKind::Faults, command);
    let (mut sink, no_record) = Sink::create(kept, &header)?;
    let mut record = Record { notes: no_record.into_iter().collect(), ..Record::new(header) };
    let mut status = Status::of(0);
    for (run, load) in (0u32..).zip([None].into_iter().chain(beside.map(Some))) {
        // Before the load, which would disturb what it measures.
        let tracer = Tracer::load();
        let load = load.map(Load::start).transpose()?;
        let (observation, mut faults) = follow(run, command, tracer, &signals, &mut sink)?;
        if let Some(load) = load {
            faults.notes.extend(load.end());
            faults.beside = beside.map(String::from);
        }
        status = ended(&observation);
        sink.append(Entry::RunEnd(Box::new(observation.clone())))?;
        sink.append(Entry::Faults(Box::new(faults.clone())))?;
        record.runs.push(observation);
        record.faults.push(faults);
        if status.code() != 0 || signals.interrupted() {
            break;
        }
    }
    Ok((record, sink.seal(), status))
}

/// Runs the command once, and sees its faults by the best means there is.
fn follow(
    run: u32,
    command: &[OsString],
    tracer: Result<Tracer, linux::faults::Error>,
    signals: &Forwarding,
    sink: &mut Sink,
) -> anyhow::Result<(Observation, Faults)> {
    let prepared = Prepared::new(&Command {
        words: command.to_vec(),
        environment: Vec::new(),
        output: Output::Inherited,
        cgroup: None,
    })?;
    let mut notes = Vec::new();
    let mut seeing = match tracer.and_then(|tracer| tracer.follow(prepared.pid()).map(|()| tracer)) {
        Ok(tracer) => Seeing::Timed(Box::new(tracer)),
        Err(error) => {
            notes.push(format!("How long faults take is not seen: {error}."));
            match Counted::from_exec(prepared.pid()) {
                Ok(counted) => Seeing::Counted(counted),
                Err(error) => {
                    notes.push(format!("Nor are they counted one by one: perf_event_open refuses it ({error})."));
                    Seeing::Told
                }
            }
        }
    };
    let cache_state = if run == 0 { "as found" } else { "as the run before left it" }.into();
    let mut observation = Observation::begun(run, RunRole::Plain, Target::Command, cache_state, unix_ns());
    sink.append(Entry::begin(&observation))?;
    let running = prepared.go(signals)?;
    let begin_ns = procfs::monotonic_ns() - running.started().elapsed().as_nanos() as u64;
    let tick = if matches!(seeing, Seeing::Counted(_)) { TICK_COUNTED } else { TICK };
    let (end, wall_seconds) = loop {
        let due = Instant::now() + tick;
        if let Some(end) = running.wait(tick)? {
            break end;
        }
        // An interrupted wait is no tick.
        if Instant::now() >= due {
            match &mut seeing {
                Seeing::Timed(tracer) => tracer.poll()?,
                Seeing::Counted(counted) => counted.poll(),
                Seeing::Told => {}
            }
        }
    };
    signals.set_target(0);
    let seen = match seeing {
        Seeing::Timed(tracer) => tracer.finish(begin_ns)?,
        Seeing::Counted(counted) => counted.finish(begin_ns),
        Seeing::Told => {
            let (minor, major) = (end.rusage.minor_faults, end.rusage.major_faults);
            let overall = FaultFigures { count: minor + major, major_count: Some(major), ..FaultFigures::default() };
            let rung = "wait4: of the command and the descendants that it waited for";
            Faults { rung: rung.into(), overall, ..Faults::default() }
        }
    };
    (observation.exit, observation.wall_seconds, observation.rusage) = (end.exit, wall_seconds, Some(end.rusage));
    observation.sources.insert("faults".into(), seen.rung.clone());
    notes.extend(seen.notes);
    Ok((observation, Faults { run, notes, ..seen }))
}

/// What runs beside the command, over and over.
struct Load {
    shell: Child,
    _awaited: Awaited,
}

impl Load {
    fn start(load: &str) -> anyhow::Result<Load> {
        let mut shell = Process::new("sh");
        shell.args(["-c", LOAD, "sh", load]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // So that it can be ended with all that it started.
        let started = children::spawn_reaper(shell.process_group(0));
        let (shell, _awaited) = started.context("the load could not be started")?;
        Ok(Load { shell, _awaited })
    }

    /// Ends it; says so if it had ended before.
    fn end(mut self) -> Option<String> {
        let before = self.shell.try_wait().ok().flatten();
        self.kill();
        before.map(|status| format!("The load failed, and did not run beside the command to its end ({status})."))
    }

    fn kill(&mut self) {
        let pid = self.shell.id() as i32;
        let Some(group) = Pid::from_raw(pid) else { return };
        if let Ok(None) = self.shell.try_wait() {
            // It starts nothing more, and is there to be the parent of orphans.
            let _ = kill_process(group, Signal::STOP);
            if let Err(error) = Tree::beneath(pid).kill_all() {
                tell!("bursar: of the load: {error}");
            }
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.shell.wait();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The figures of a record: those of the command alone, and in them those beside a load.
///
/// # Errors
/// If no run was made.
pub fn figures(record: &Record) -> anyhow::Result<Figures<'_>> {
    let mut runs = record.runs.iter().zip(&record.faults).map(|(run, faults)| of_run(run, faults));
    let mut alone = runs.next().context("no run was made")?;
    alone.beside = runs.next().map(Box::new);
    Ok(alone)
}

/// A record as its report sees it.
pub fn faulted(record: &Record) -> Faulted<'_> {
    Faulted { header: &record.header, runs: &record.faults, notes: &record.notes }
}

fn of_run<'a>(run: &Observation, faults: &'a Faults) -> Figures<'a> {
    let figures = |figures: &FaultFigures| FaultFigures { histogram: Default::default(), ..figures.clone() };
    Figures {
        exit_status: run.exit_status(),
        wall_seconds: run.wall_seconds,
        rung: &faults.rung,
        kinds: faults.kinds.iter().map(|(kind, of)| (*kind, figures(of))).collect(),
        overall: figures(&faults.overall),
        calls: &faults.calls,
        unfinished_count: faults.unfinished_count,
        untimed_count: faults.untimed_count,
        tracer: faults.tracer,
        slowest: &faults.slowest,
        notes: &faults.notes,
        load: faults.beside.as_deref(),
        beside: None,
    }
}
