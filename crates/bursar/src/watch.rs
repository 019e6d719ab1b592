//! `bursar watch`: what a running program does with its mapped memory, told while it runs.

mod view;

use std::fs::File;
use std::io::{IsTerminal, Seek, Write, stderr, stdin, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use job::{Command, Forwarding, Output, Prepared, Running};
use linux::cgroup::Cgroup;
use model::{Bytes, Exit, MissPoint, PagesRound, WatchInterval};
use track::pages::{Error, Pages, Scope, Settings};

use crate::cli;
use crate::status::Status;
use view::View;

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// Longest time until a key, Ctrl-C or the command's end is noticed.
const PATIENCE: Duration = Duration::from_millis(50);

pub fn watch(options: &cli::Watch) -> anyhow::Result<Status> {
    let signals = Forwarding::start()?;
    let has_view = !options.quiet
        && options.json.as_deref() != Some(Path::new("-"))
        && stdin().is_terminal()
        && stdout().is_terminal();
    // What the command prints would spoil the picture.
    let mut kept = if has_view && options.target.is_none() { Some(tempfile::tempfile()?) } else { None };
    let target = match &options.target {
        Some(target) => Target::Found(scope_of(target)?),
        None => Target::Started(start(options, kept.as_ref(), &signals)?),
    };
    let ended = follow(options, target, has_view, &signals);
    if let Some(kept) = &mut kept {
        kept.rewind()?;
        std::io::copy(kept, &mut stdout())?;
    }
    Ok(match ended? {
        Some(Exit::Status(status)) => Status::of(status),
        Some(Exit::Signal(signal)) => Status::Signal(signal),
        _ => Status::of(0),
    })
}

/// What is watched.
enum Target {
    Found(Scope),
    Started(Running),
}

fn start(options: &cli::Watch, kept: Option<&File>, signals: &Forwarding) -> anyhow::Result<Running> {
    let output = match kept {
        Some(kept) => Output::Kept { both: kept.try_clone()? },
        None => Output::Inherited,
    };
    let running = Prepared::new(&Command { words: options.command.clone(), output })?.go()?;
    signals.set_target(running.pid());
    Ok(running)
}

fn scope_of(target: &str) -> anyhow::Result<Scope> {
    match target.parse() {
        Ok(pid) => Ok(Scope::Tree(pid)),
        Err(_) => Ok(Scope::Cgroup(Cgroup::at(Path::new(target))?)),
    }
}

/// Tells interval by interval, until the end; how a command that was started ended.
fn follow(options: &cli::Watch, target: Target, has_view: bool, signals: &Forwarding) -> anyhow::Result<Option<Exit>> {
    let (scope, running) = match target {
        Target::Found(scope) => (scope, None),
        Target::Started(running) => (Scope::Tree(running.pid()), Some(running)),
    };
    let settings = Settings { overhead: options.overhead, intrusive: options.intrusive, ..Settings::default() };
    let pages = match Pages::start(scope, settings) {
        Ok(pages) => Some(pages),
        // It has ended before it could be looked at; its status is still what is wanted.
        Err(Error::NoProcess(_)) if running.is_some() => None,
        Err(error) => {
            if let Some(running) = &running {
                running.signal(SIGTERM);
            }
            return Err(error.into());
        }
    };
    let mut told = Told::to(options, has_view)?;
    told.note(pages.as_ref().and_then(Pages::fallback))?;
    loop {
        let next = wait(running.as_ref(), signals, &mut told, options.interval)?;
        match pages.as_ref().map(Pages::round).transpose()?.flatten() {
            Some(round) => told.tell(&round)?,
            None if running.is_none() => return Ok(None),
            None => {}
        }
        match (next, &running) {
            (Next::Interval, _) => {}
            (Next::Ended(exit), _) => return Ok(Some(exit)),
            (Next::Quit, None) => return Ok(None),
            (Next::Quit, Some(running)) => running.signal(SIGINT),
        }
    }
}

/// Why an interval is over.
enum Next {
    Interval,
    Ended(Exit),
    Quit,
}

fn wait(running: Option<&Running>, signals: &Forwarding, told: &mut Told, interval: Duration) -> anyhow::Result<Next> {
    let due = Instant::now() + interval;
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Next::Interval);
        }
        let patience = PATIENCE.min(left);
        // One of the two is waited for; the other is only asked.
        if let Some(view) = &mut told.view {
            if view.wait(patience)? {
                return Ok(Next::Quit);
            }
        } else if running.is_none() {
            std::thread::sleep(patience);
        }
        match running {
            Some(running) => {
                let patience = if told.view.is_some() { Duration::ZERO } else { patience };
                if let Some((ended, _)) = running.wait(patience)? {
                    return Ok(Next::Ended(ended.exit));
                }
            }
            // A command gets the signal itself.
            None if signals.interrupted() => return Ok(Next::Quit),
            None => {}
        }
    }
}

/// Where it is told, and what was told before.
struct Told {
    view: Option<View>,
    lines: Option<Box<dyn Write>>,
    json: Option<Box<dyn Write>>,
    peak: Option<u64>,
}

impl Told {
    /// The view has the terminal to itself. Lines go to standard error where something else goes to standard output.
    fn to(options: &cli::Watch, has_view: bool) -> anyhow::Result<Told> {
        let mut is_taken = options.target.is_none();
        let json: Option<Box<dyn Write>> = match options.json.as_deref() {
            None => None,
            Some(path) if path == Path::new("-") => {
                is_taken = true;
                Some(Box::new(stdout()))
            }
            Some(path) => {
                let file = File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
                Some(Box::new(file))
            }
        };
        let lines: Option<Box<dyn Write>> = match is_taken {
            _ if options.quiet || has_view => None,
            false => Some(Box::new(stdout())),
            true => Some(Box::new(stderr())),
        };
        let view = if has_view { Some(View::open()?) } else { None };
        Ok(Told { view, lines, json, peak: None })
    }

    fn note(&mut self, fallback: Option<&str>) -> std::io::Result<()> {
        match (&mut self.lines, fallback) {
            (Some(lines), Some(why)) => writeln!(lines, "by mapping, from smaps, not page by page: {why}"),
            _ => Ok(()),
        }
    }

    fn tell(&mut self, round: &PagesRound) -> anyhow::Result<()> {
        self.peak = self.peak.max(round.wss_bytes);
        let line = line(round, self.peak);
        if let Some(lines) = &mut self.lines {
            writeln!(lines, "{line}")?;
        }
        if let Some(json) = &mut self.json {
            writeln!(json, "{}", serde_json::to_string(&WatchInterval::of(round, self.peak))?)?;
            json.flush()?;
        }
        if let Some(view) = &mut self.view {
            view.show(round, line)?;
        }
        Ok(())
    }
}

/// One interval in one line.
fn line(round: &PagesRound, peak: Option<u64>) -> String {
    let needs = match (round.wss_bytes, peak) {
        (Some(now), Some(peak)) => format!("needs about {} now, {} at peak", Bytes(now), Bytes(peak)),
        _ => "what it needs cannot be told yet".into(),
    };
    let less = round.wss_bytes.map(|now| now / 2).filter(|half| *half >= round.blind_below.max(1));
    let less = less.map_or(String::new(), |half| {
        format!("; {} would cost {:.0} refaults/s", Bytes(half), misses_at(&round.misses, half))
    });
    let blind = match round.blind_bytes {
        0 => String::new(),
        blind => format!("; {} cannot be seen", Bytes(blind)),
    };
    format!(
        "{:.0} s: {needs}{less}; {} of {} touched{blind}; looking costs {:.1} %",
        round.t_ns as f64 / 1e9,
        Bytes(round.touched_bytes),
        Bytes(round.tracked_bytes),
        round.overhead.share() * 100.0
    )
}

fn misses_at(curve: &[MissPoint], bytes: u64) -> f64 {
    let after = curve.partition_point(|point| point.bytes <= bytes);
    after.checked_sub(1).map_or(0.0, |at| curve[at].misses_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_it_needs_and_what_less_would_cost() {
        let point = |bytes, misses_per_second| MissPoint { bytes, misses_per_second };
        let round = PagesRound {
            t_ns: 7_000_000_000,
            wss_bytes: Some(64 << 20),
            tracked_bytes: 100 << 20,
            touched_bytes: 60 << 20,
            misses: vec![point(0, 900.0), point(16 << 20, 400.0), point(64 << 20, 0.0)],
            ..PagesRound::default()
        };
        assert_eq!(
            line(&round, Some(80 << 20)),
            "7 s: needs about 64.0 MiB now, 80.0 MiB at peak; 32.0 MiB would cost 400 refaults/s; 60.0 MiB of 100 MiB touched; looking \
             costs 0.0 %"
        );
        let blind = PagesRound { blind_below: 40 << 20, blind_bytes: 1 << 20, ..round };
        assert!(!line(&blind, None).contains("would cost"), "below that nothing is known");
        assert!(line(&PagesRound::default(), None).contains("cannot be told yet"));
    }
}
