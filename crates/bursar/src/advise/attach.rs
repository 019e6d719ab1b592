//! `bursar advise attach`: an agent that makes huge pages of what a running program uses much, and splits those that it does not.

use anyhow::{Context, bail};
use controller::huge_pages::{Agent, Kept, NEEDS, SCAN_SHARE, Settings};
use job::Forwarding;
use linux::cgroup::Cgroup;
use linux::procfs;
use model::{Exit, Target};
use session::say::tell;
use session::status::Status;
use session::target::Found;
use track::pages::Scope;
use track::regions::Regions;

use crate::cli::advise::Attach;
use crate::results::write_json;

pub fn attach(options: &Attach) -> anyhow::Result<Status> {
    let found = options.target.find()?;
    let (scope, target) = match &found {
        Found::Process(pid) => (Scope::Tree(*pid), Target::Tree(*pid)),
        Found::Cgroup(path) => (Scope::Cgroup(Cgroup::at(path)?), Target::Cgroup(found.to_string())),
    };
    if procfs::kernel_version() < (6, 1) {
        bail!(
            "Linux {} cannot make huge pages of another process's memory, which came with 6.1",
            procfs::kernel_release()
        );
    }
    let needs = || format!("advise attach {NEEDS}");
    let regions = Regions::of(scope, SCAN_SHARE).map_err(|error| match error {
        track::regions::Error::Target(error) if error.is_of_target() => anyhow::Error::new(error),
        error => anyhow::Error::new(error).context(needs()),
    })?;
    let kept = options.record.as_deref().map(|path| Kept::begin(path, &[], target)).transpose()?;
    let signals = Forwarding::start()?;
    let settings = Settings { interval: options.interval, rate: options.rate, dry_run: options.dry_run };
    let agent = Agent::of(regions, settings);
    if !options.quiet {
        tell!("advising {found}; Ctrl-C ends");
    }
    let is_over = |advised| signals.interrupted() || options.duration.is_some_and(|longest| advised >= longest);
    let stats = agent.advise(&is_over).context(needs())?;
    if !options.quiet {
        stats.summary().iter().for_each(|line| tell!("bursar: {line}"));
    }
    if let Some(kept) = kept {
        kept.end(Exit::StillRunning, stats.wall_seconds, stats.advice())?;
    }
    if let Some(path) = &options.stats {
        write_json(path, &stats)?;
    }
    Ok(Status::of(0))
}
