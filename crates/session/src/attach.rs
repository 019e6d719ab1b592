//! The record of something that runs already. Nothing is written to it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use linux::bpf::Rung;
use linux::cgroup::Cgroup;
use linux::procfs::{self, Stat};
use linux::rights;
use model::{Evidence, Exit, Observation, ProcessRecord, RecordKind, RunRole, Target};
use record::{Entry, Record};
use sample::{Options, Sampler, Scope};

use crate::bench::{Bench, References, unix_ns};
use crate::observe::{add_file_demand, record_row};
use crate::sink::{Sink, finish_run};
use crate::target::Found;

/// Longest time until Ctrl-C is noticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Watches until the target has ended, Ctrl-C, or it is over; what was seen, and where it is kept.
pub fn follow(
    target: Target,
    scope: Scope,
    record: Option<&Path>,
    interval: Option<Duration>,
    is_over: &dyn Fn(Duration) -> bool,
) -> anyhow::Result<(Record, Option<PathBuf>)> {
    let bench = Bench::set_up(Some(Rung::Filemap), References::Traced)?;
    let header = bench.header(RecordKind::Attach, &[], "as the target's own");
    let (mut sink, no_record) = Sink::create(record, &header)?;
    let (started, origin) = (Instant::now(), procfs::monotonic_ns());
    let started_unix_ns = unix_ns();
    let cache_state = "as found".to_string();
    let (role, run) = (RunRole::Plain, 0);
    let mut append = |entry| sink.append(entry);
    append(Entry::RunBegin {
        run,
        role,
        target: target.clone(),
        limit_bytes: None,
        cache_state: cache_state.clone(),
        started_unix_ns,
    })?;
    let mut notes = vec![peaks_from_before(&target)];
    notes.extend(no_record);
    let found = pids(&scope);
    let before: Vec<Stat> = found.iter().filter_map(|pid| procfs::stat(*pid).ok()).collect();
    let mut sampler =
        Sampler::new(scope.clone(), Options { interval, io_wait: bench.io_wait, shared_by_us_bytes: 0 }, started);
    let tracker = bench.track(&found, origin, &mut notes);
    let mut exit = Exit::StillRunning;
    loop {
        record_row(sampler.sample(), run, &mut append)?;
        if !alive(&scope) {
            exit = Exit::Status(0);
            break;
        }
        let due = Instant::now() + sampler.interval();
        let is_over = || bench.signals.interrupted() || is_over(started.elapsed());
        while Instant::now() < due && !is_over() {
            std::thread::sleep(PATIENCE.min(due.saturating_duration_since(Instant::now())));
        }
        if is_over() {
            break;
        }
    }
    let tracked = tracker.and_then(|tracker| tracker.finish().map_err(|error| notes.push(error.to_string())).ok());
    let mut sampled = sampler.finish();
    for process in &mut sampled.processes {
        let is_it = |stat: &&Stat| (stat.pid, stat.starttime) == (process.key.pid, process.key.start_ticks);
        if let Some(before) = before.iter().find(is_it) {
            take_off(process, before);
        }
    }
    if exit != Exit::StillRunning {
        notes.push("The target ended while it was watched; its exit status belongs to its parent.".into());
    }
    let mut observation = Observation {
        exit,
        wall_seconds: started.elapsed().as_secs_f64(),
        kept: sampled.kept,
        series: sampled.series,
        processes: sampled.processes,
        sources: sampled.sources,
        notes,
        // Of processes that were there before, no count of page faults bounds what they filled.
        evidence: Evidence {
            files_in_memory: sampled.files_in_memory,
            with_files_in_memory_bytes: sampled.with_files_in_memory_bytes,
            unmapped_shared_bytes: sampled.unmapped_shared_bytes,
            ..Evidence::default()
        },
        ..Observation::begun(run, role, target, cache_state, started_unix_ns)
    };
    if let Some(tracked) = tracked {
        add_file_demand(&mut observation, &tracked, &track::Mapped::default(), 0);
    }
    let mut record = Record::new(header);
    finish_run(&mut sink, &mut record, observation, Vec::new())?;
    Ok((record, sink.seal()))
}

/// The kernel counts from a process's start on.
fn take_off(process: &mut ProcessRecord, before: &Stat) {
    process.user_seconds = process.user_seconds.map(|all| (all - procfs::seconds_of(before.utime)).max(0.0));
    process.system_seconds = process.system_seconds.map(|all| (all - procfs::seconds_of(before.stime)).max(0.0));
    process.minor_faults = process.minor_faults.map(|all| all.saturating_sub(before.minflt));
    process.major_faults = process.major_faults.map(|all| all.saturating_sub(before.majflt));
}

/// What is observed of what was found. `tree`: of a process, all its descendants, too.
///
/// # Errors
/// A sentence if it may not be observed.
pub fn resolve(found: &Found, tree: bool) -> anyhow::Result<(Target, Scope)> {
    let pid = match found {
        Found::Process(pid) => *pid,
        Found::Cgroup(path) => {
            let group = Cgroup::at(path)?;
            refuse_others(&group)?;
            return Ok((Target::Cgroup(path.to_string_lossy().into()), Scope::Cgroup(group)));
        }
    };
    match procfs::stat(pid) {
        Err(_) => {
            bail!("there is no process {pid} that this user may observe; see `ps -e`, or name a cgroup by its path")
        }
        Ok(stat) if stat.is_kernel => return Err(track::pages::Error::Kernel(pid).into()),
        Ok(_) if !rights::may_observe(pid) => bail!(rights::refusal(pid)),
        Ok(_) => {}
    }
    Ok(if tree {
        (Target::Tree(pid), Scope::Tree { root: pid, within: None })
    } else {
        (Target::Process(pid), Scope::Process(pid))
    })
}

/// With rights that the program file lends, a cgroup is observed only if all in it are the user's.
fn refuse_others(group: &Cgroup) -> anyhow::Result<()> {
    let others = group.processes().unwrap_or_default().into_iter().find(|pid| !rights::may_observe(*pid));
    others.map_or(Ok(()), |pid| bail!(rights::refusal(pid)))
}

fn pids(scope: &Scope) -> Vec<i32> {
    match scope {
        Scope::Cgroup(group) => group.processes().unwrap_or_default(),
        Scope::Tree { root, .. } => std::iter::once(*root).chain(procfs::descendants(*root)).collect(),
        Scope::Process(pid) => vec![*pid],
    }
}

fn alive(scope: &Scope) -> bool {
    match scope {
        Scope::Cgroup(group) => group.processes().is_ok_and(|pids| !pids.is_empty()),
        Scope::Tree { root: pid, .. } | Scope::Process(pid) => procfs::stat(*pid).is_ok_and(|stat| stat.state != 'Z'),
    }
}

fn peaks_from_before(target: &Target) -> String {
    let kept = match target {
        Target::Cgroup(_) => "The cgroup's peak charge",
        _ => "The processes' peak RSS (VmHWM)",
    };
    format!(
        "{kept} may be from before the attachment: the kernel keeps it since the start. All else is from the attachment on."
    )
}
