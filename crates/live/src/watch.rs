//! `bursar watch`: reports the memory use of a running program while it runs.

use std::fs::File;
use std::io::{Seek, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use job::{Command, Forwarding, Output, Prepared, Running};
use linux::cgroup::{Cgroup, ThreadedCgroup};
use linux::endings::Tree;
use model::{Exit, RecordKind};
use session::bench::header;
use session::kept;
use session::phases::Phases;
use session::say::tell;
use session::sink::Sink;
use session::status::Status;
use session::stop::Whole;
use session::target::Found;
use session::unwatched::{self, Beside};
use track::pages::{Error, Pages, Scope, Settings};

use crate::options::Options;
use crate::outputs::{Destinations, Outputs, has_view};
use crate::view::Key;

const SIGINT: i32 = 2;

/// Maximum delay until a key, Ctrl-C or the command's end is noticed.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A start of watching this long after the command is reported.
const REPORTED_DELAY: Duration = Duration::from_millis(100);

/// Watches until the target or the command ends, or the user ends it. Returns bursar's exit status.
///
/// # Errors
/// A sentence if the target cannot be watched, the command cannot be started, or output cannot be written.
pub fn watch(options: &Options, signals: &Forwarding) -> anyhow::Result<Status> {
    let has_view = has_view(options.quiet, options.json.as_deref());
    let sink = options.record.as_deref().map(|path| sink(path, options)).transpose()?;
    // The command's output would spoil the view.
    let mut kept = if has_view && options.target.is_none() { Some(kept::file()?) } else { None };
    let mut outputs = Outputs::to(&Destinations {
        json: options.json.as_deref(),
        has_lines: !options.quiet,
        has_view,
        has_command: options.target.is_none(),
    })?;
    outputs.sink = sink;
    let ended = match &options.target {
        Some(found) => follow(options, Target::Found(scope_of(found)?), outputs, signals),
        None => follow(options, start(options, kept.as_ref(), signals)?, outputs, signals),
    };
    if let Some(kept) = &mut kept {
        // The terminal may be closed by now; the command's status counts.
        let _ = kept.rewind().and_then(|()| std::io::copy(kept, &mut stdout()));
    }
    Ok(match ended? {
        Some(Exit::Status(status)) => Status::of(status),
        Some(Exit::Signal(signal)) => Status::Signal(signal),
        _ => Status::of(0),
    })
}

fn sink(path: &Path, options: &Options) -> anyhow::Result<Sink> {
    let mut header = header(RecordKind::Watch, &options.command);
    header.options = [
        ("target", options.target.as_ref().map(Found::to_string)),
        ("interval", Some(options.interval.as_secs_f64().to_string())),
        ("overhead", Some(options.overhead.to_string())),
        ("always", Some(options.always.to_string())),
        ("hot-set", Some(options.hot_set.to_string())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_string(), value?)))
    .collect();
    Ok(Sink::create(Some(path), &header)?.0)
}

/// What is watched.
enum Target {
    Found(Scope),
    Started(Running, Tree),
}

fn start(options: &Options, kept: Option<&File>, signals: &Forwarding) -> anyhow::Result<Target> {
    let output = match kept {
        Some(kept) => Output::Kept { both: kept.try_clone()? },
        None => Output::Inherited,
    };
    // Orphaned processes become children of bursar, which goes on watching them.
    linux::children::adopt_orphans()?;
    let command = Command { words: options.command.clone(), environment: Vec::new(), output, cgroup: None };
    let tree = Tree::new();
    Ok(Target::Started(Prepared::new(&command)?.go(signals)?, tree))
}

fn scope_of(found: &Found) -> anyhow::Result<Scope> {
    Ok(match found {
        Found::Process(pid) => Scope::Tree(*pid),
        Found::Cgroup(path) => match ThreadedCgroup::at(path) {
            Some(threaded) => Scope::Threads(threaded),
            None => Scope::Cgroup(Cgroup::at(path)?),
        },
    })
}

/// A note about what is watched.
fn note_of(scope: &Scope) -> Option<String> {
    let Scope::Threads(cgroup) = scope else { return None };
    Some(format!(
        "{} is a threaded cgroup: the processes with threads in it are watched as a whole, and their memory is charged to {}",
        cgroup.dir().display(),
        cgroup.domain().display()
    ))
}

/// Reports interval by interval until the end. Returns how a started command ended.
fn follow(
    options: &Options,
    target: Target,
    mut outputs: Outputs,
    signals: &Forwarding,
) -> anyhow::Result<Option<Exit>> {
    let (scope, running) = match target {
        Target::Found(scope) => (scope, None),
        Target::Started(running, tree) => (Scope::Command(running.pid()), Some((running, tree))),
    };
    let note = note_of(&scope);
    let begun = Instant::now();
    let settings = Settings {
        overhead: options.overhead,
        intrusive: options.intrusive,
        hot_set: options.hot_set,
        ..Settings::default()
    };
    let pages = match Pages::start(scope, settings) {
        Ok(pages) => Some(pages),
        // The command has ended before it could be scanned; its exit status is still needed.
        Err(Error::NoProcess(_)) if running.is_some() => None,
        // The command goes on even if it cannot be watched.
        Err(error) if running.is_some() => {
            tell!("bursar: {error}; the command goes on, and is not watched");
            outputs.has_summary = false;
            None
        }
        Err(error) => return Err(error.into()),
    };
    let late = Some(begun.elapsed()).filter(|late| running.is_some() && pages.is_some() && *late >= REPORTED_DELAY);
    let late = late.map(|late| {
        let late = report::seconds(late.as_secs_f64());
        format!("watching began {late} after the command: memory that it accessed only before that is in no figure")
    });
    note.iter().chain(&late).try_for_each(|note| outputs.note(note))?;
    let ended = report_intervals(options, pages.as_ref(), running.as_ref(), outputs, signals);
    if let (Err(_), Some((running, _))) = (&ended, &running) {
        // After an output error, wait for the command anyway. It may have ended, and have been waited for, before.
        while let Ok(None) = running.wait(POLL_INTERVAL) {}
    }
    ended
}

fn report_intervals(
    options: &Options,
    pages: Option<&Pages>,
    started: Option<&(Running, Tree)>,
    mut outputs: Outputs,
    signals: &Forwarding,
) -> anyhow::Result<Option<Exit>> {
    if let Some(why) = pages.and_then(Pages::fallback) {
        outputs.note(&format!(
            "by mapping, from smaps, not page by page, and without files that are read or written: {why}"
        ))?;
    }
    if let Some(why) = pages.and_then(Pages::without_files) {
        outputs.note(&format!("without files that are read or written: {why}"))?;
    }
    let running = started.map(|(running, _)| running);
    let mut was_asked_to_end = false;
    let mut phases = Phases::new(options.always).certain();
    let mut beside = match options.target {
        Some(Found::Process(pid)) => Beside::of(pid),
        _ => None,
    };
    loop {
        let next = wait(running, signals, &mut outputs, options.interval)?;
        if let Some(note) = beside.as_ref().and_then(Beside::note) {
            outputs.note(&note)?;
            beside = None;
        }
        let round = pages.map(|pages| Ok::<_, Error>((pages, pages.round()?))).transpose()?;
        let is_last = matches!((&next, running), (Next::Ended(_), _) | (Next::Quit, None));
        match round {
            Some((pages, Some(round))) if is_last => outputs.report_last(phases.round(pages, round))?,
            Some((pages, Some(round))) => outputs.report(phases.round(pages, round))?,
            _ if running.is_none() => {
                outputs.summary(pages.and_then(remedy))?;
                return Ok(None);
            }
            _ => {}
        }
        match (next, started) {
            (Next::Interval, _) => {}
            (Next::Ended(exit), _) => {
                if let Some(note) = unwatched::left() {
                    outputs.note(&note)?;
                }
                outputs.summary(pages.and_then(remedy))?;
                return Ok(Some(exit));
            }
            (Next::Quit, None) => {
                outputs.summary(pages.and_then(remedy))?;
                return Ok(None);
            }
            (Next::Quit, Some((_, tree))) if was_asked_to_end => Whole::Tree(tree).kill(),
            (Next::Quit, Some((running, _))) => {
                was_asked_to_end = true;
                running.signal(SIGINT);
            }
        }
    }
}

/// What to do to see more, if there is something.
fn remedy(pages: &Pages) -> Option<&'static str> {
    let lacks_rights = pages.fallback().or(pages.without_files()).is_some() && !rustix::process::geteuid().is_root();
    lacks_rights.then_some("run it as root, which sees each page, and reads and writes of files")
}

/// Why an interval is over.
enum Next {
    Interval,
    Ended(Exit),
    Quit,
}

fn wait(
    running: Option<&Running>,
    signals: &Forwarding,
    outputs: &mut Outputs,
    interval: Duration,
) -> anyhow::Result<Next> {
    let due = Instant::now() + interval;
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Next::Interval);
        }
        let patience = POLL_INTERVAL.min(left);
        // Wait for the view or for the command; only poll the other.
        if outputs.view.is_some() {
            if outputs.wait(patience)? == Some(Key::Quit) {
                return Ok(Next::Quit);
            }
        } else if running.is_none() {
            std::thread::sleep(patience);
        }
        match running {
            Some(running) => {
                let patience = if outputs.view.is_some() { Duration::ZERO } else { patience };
                if let Some((ended, _)) = running.wait(patience)? {
                    return Ok(Next::Ended(ended.exit));
                }
            }
            // A started command gets the signal itself.
            None if signals.interrupted() => return Ok(Next::Quit),
            None => {}
        }
    }
}
