//! `bursar slurm recommend`: what jobs should ask for, by what the accounting tells of past ones.

mod accounting;
mod json;
mod text;

use std::process::Command;

use anyhow::{Context, bail, ensure};
use model::JobsMemory;

use super::Config;
use crate::bench::unix_ns;
use crate::cli::slurm::{Gatherer, Recommend};
use crate::input::{is_dash, name, read};
use crate::results::{style, write_json};
use crate::say;
use crate::status::Status;
use accounting::{Accounting, Wanted};

pub fn recommend(options: &Recommend) -> anyhow::Result<Status> {
    let wanted = wanted(options)?;
    let accounting = match &options.from {
        Some(path) => {
            let told = read(path)?;
            parse(&told, &wanted).with_context(|| format!("{} is not what sacct prints", name(path)))?
        }
        None => ask(options, &wanted)?,
    };
    let found = advice(&accounting, options.percentile, wanted.gatherer)?;
    if !options.json.as_deref().is_some_and(is_dash) {
        say::result(format_args!("{}", report::terminal::jobs(&found, style())))?;
    }
    if let Some(path) = &options.json {
        write_json(path, &found)?;
    }
    Ok(Status::of(0))
}

/// All that a file tells, unless a user is named; else what sacct would tell this user of the last days.
fn wanted(options: &Recommend) -> anyhow::Result<Wanted> {
    if options.from.is_some() {
        return Ok(Wanted { user: options.user.clone(), since_seconds: 0, gatherer: options.gatherer });
    }
    let is_root = rustix::process::geteuid().is_root();
    let user = match &options.user {
        None if !is_root => Some(own_name()?),
        user => user.clone(),
    };
    let now_seconds = unix_ns() / 1_000_000_000;
    let since_seconds = now_seconds.saturating_sub(u64::from(options.days) * 86_400);
    Ok(Wanted { user, since_seconds, gatherer: options.gatherer.or_else(site_gatherer) })
}

fn own_name() -> anyhow::Result<String> {
    let output = Command::new("id").arg("-un").output().context("id could not be run; --user USER says who you are")?;
    ensure!(output.status.success(), "your user has no name here; --user USER says who you are");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn advice(accounting: &Accounting, percentile: f64, gatherer: Option<Gatherer>) -> anyhow::Result<JobsMemory> {
    ensure!(
        !accounting.jobs.is_empty(),
        "sacct tells of no job that has ended; --user and --days say whose and how old"
    );
    let (jobs, unmeasured) = budget::jobs::recommend(&accounting.jobs, percentile);
    ensure!(
        !jobs.is_empty(),
        "sacct tells of {unmeasured} jobs that have ended, and of none how much memory it had: they were shorter than the \
         accounting's interval, or the site does not gather it (JobAcctGatherType)"
    );
    let mut notes = Vec::new();
    if unmeasured > 0 {
        notes.push(format!("left out, for they ended before the accounting had looked at them: {unmeasured}"));
    }
    if accounting.unfinished > 0 {
        notes.push(format!("left out, for they have not ended: {}", accounting.unfinished));
    }
    notes.push(
        match gatherer {
            Some(Gatherer::Linux) => {
                "measured by jobacct_gather/linux: RSS, with what is mapped of files and shared; no other page cache is in it, and how much the \
                 jobs had is not known: bursar budget finds what of it is worth its memory"
            }
            Some(Gatherer::Cgroup) => {
                "measured by jobacct_gather/cgroup: heap; cache is the page cache beside it: bursar budget finds what of it is worth its memory"
            }
            None => {
                "who measured is not known: --gatherer linux or cgroup tells (scontrol show config, JobAcctGatherType); with cgroup, page cache is \
                 told apart"
            }
        }
        .to_string(),
    );
    let gatherer = gatherer.map(|gatherer| format!("jobacct_gather/{}", format!("{gatherer:?}").to_lowercase()));
    Ok(JobsMemory { percentile, gatherer, jobs, notes })
}

/// By what it begins with.
fn parse(told: &str, wanted: &Wanted) -> anyhow::Result<Accounting> {
    let told = told.trim_start_matches('\u{feff}');
    if told.trim_start().starts_with('{') { json::parse(told, wanted) } else { text::parse(told, wanted) }
}

/// Asks sacct, as text where it is older than its JSON (Slurm 21.08).
fn ask(options: &Recommend, wanted: &Wanted) -> anyhow::Result<Accounting> {
    let told = match sacct(options, &["--json"]) {
        Err(error) if error.to_string().contains("json") => {
            sacct(options, &["--parsable2", "--format", text::COLUMNS])?
        }
        told => told?,
    };
    parse(&told, wanted).context("what sacct prints is not understood")
}

fn sacct(options: &Recommend, form: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("sacct");
    command.args(form).arg(format!("--starttime=now-{}days", options.days));
    command.args(options.user.iter().map(|user| format!("--user={user}")));
    let output = command.output().context("sacct could not be run; --from FILE takes what it has told elsewhere")?;
    if !output.status.success() {
        bail!("sacct failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("sacct printed what is not UTF-8")
}

/// What the site's configuration says; `None`: neither of the two, or it cannot be asked.
fn site_gatherer() -> Option<Gatherer> {
    match Config::ask().ok()?.value("JobAcctGatherType")? {
        "jobacct_gather/linux" => Some(Gatherer::Linux),
        "jobacct_gather/cgroup" => Some(Gatherer::Cgroup),
        _ => None,
    }
}
