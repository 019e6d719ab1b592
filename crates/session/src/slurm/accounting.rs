//! What jobs should ask for, by what sacct says of past ones, or has said in a file.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, anyhow, bail, ensure};
use model::JobsMemory;
use slurm::{By, COLUMNS, Error, Gatherer, Gathering, Printed, Version, Wanted, of_the_input, parse};

use super::config;
use crate::bench::unix_ns;
use history::input::{self, name};

/// What is asked of the accounting.
#[derive(Clone, Debug)]
pub struct Options {
    /// What jobs are one kind; `None`: by name.
    pub by: Option<String>,
    /// What sacct printed; `None`: it is asked.
    pub from: Option<PathBuf>,
    /// Whose jobs; `None`: all of a file, or this user's.
    pub user: Option<String>,
    /// How many days back sacct is asked for.
    pub days: u32,
    /// The share of the runs that must not be killed.
    pub percentile: f64,
    /// What gathered the figures; `None`: as the site's configuration or the figures show.
    pub gatherer: Option<Gatherer>,
    /// The version of Slurm that gathered them; `None`: as sacct says.
    pub slurm_version: Option<Version>,
}

/// Recommends from what the accounting says.
///
/// # Errors
/// A sentence if there is no job to go by, or if sacct cannot be asked or its answer not be read.
pub fn recommend(options: &Options) -> anyhow::Result<JobsMemory> {
    let by = By::of(options.by.as_deref())?;
    let wanted = wanted(options)?;
    let (mut printed, site) = match &options.from {
        Some(path) => {
            let bytes = input::bytes(path)?;
            ensure!(
                !bytes.trim_ascii().is_empty(),
                "{} is empty. Write what sacct prints to it: sacct --json, or sacct -P -o {}",
                name(path),
                COLUMNS
            );
            let printed = parse(&bytes, &by).with_context(|| format!("{} is not what sacct prints", name(path)))?;
            (printed, Gathering::default())
        }
        None => (ask(options, &by)?, site()),
    };
    printed.select(&wanted);
    let gathering = Gathering {
        gatherer: options.gatherer.or(site.gatherer),
        version: options.slurm_version.or(printed.version).or(site.version),
        ..site
    };
    slurm::recommend(printed, options.percentile, &gathering, &by).map_err(|error| match error {
        Error::NoJob { unfinished, notes } => anyhow!("{}{}", no_job(unfinished, options), of_the_input(&notes)),
        error => error.into(),
    })
}

/// All jobs of a file, unless a user is named; else what sacct would print of this user's last days.
fn wanted(options: &Options) -> anyhow::Result<Wanted> {
    if options.from.is_some() {
        return Ok(Wanted { user: options.user.clone(), since_seconds: 0 });
    }
    let is_root = rustix::process::geteuid().is_root();
    let user = match &options.user {
        None if !is_root => Some(own_name()?),
        user => user.clone(),
    };
    let now_seconds = unix_ns() / 1_000_000_000;
    let since_seconds = now_seconds.saturating_sub(u64::from(options.days) * 86_400);
    Ok(Wanted { user, since_seconds })
}

fn own_name() -> anyhow::Result<String> {
    let output = linux::children::output(Command::new("id").arg("-un"))
        .context("id could not be run; --user USER says who you are")?;
    ensure!(output.status.success(), "your user has no name here; --user USER says who you are");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Why there is nothing to go by.
fn no_job(unfinished: u64, options: &Options) -> String {
    let source = options.from.as_deref().map_or("sacct's answer".to_string(), name);
    let user = options.user.as_deref().map_or(String::new(), |user| format!(" of user {user}"));
    let what_to_do = match &options.from {
        Some(_) => "Print jobs that have ended, such as those of the last 30 days: sacct -S now-30days".to_string(),
        None => format!(
            "sacct was asked for the last {} days; --days asks for more, --user for another user's",
            options.days
        ),
    };
    match unfinished {
        0 => format!("{source} has no job{user}. {what_to_do}"),
        1 => format!("{source} has one job{user}, and it has not ended. {what_to_do}"),
        more => format!("{source} has {more} jobs{user}, and none has ended. {what_to_do}"),
    }
}

/// Asks sacct, as text where it is older than its JSON (Slurm 21.08).
fn ask(options: &Options, by: &By) -> anyhow::Result<Printed> {
    let columns = match by.column().filter(|by| !["jobname", "comment", "user"].contains(by)) {
        Some(by) => format!("{COLUMNS},{by}"),
        None => COLUMNS.to_string(),
    };
    let bytes = match sacct(options, &["--json"]) {
        Err(error) if error.to_string().contains("json") => sacct(options, &["--parsable2", "--format", &columns]),
        bytes => bytes,
    };
    let bytes = bytes.map_err(|error| {
        anyhow!(
            "{error:#}. Where sacct works: sacct --json -S now-{}days >jobs.json; then anywhere: bursar recommend --from jobs.json",
            options.days
        )
    })?;
    parse(&bytes, by).context("what sacct prints could not be read")
}

fn sacct(options: &Options, form: &[&str]) -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new("sacct");
    command.args(form).arg(format!("--starttime=now-{}days", options.days));
    command.args(options.user.iter().map(|user| format!("--user={user}")));
    let output = linux::children::output(&mut command).context("sacct could not be run")?;
    if !output.status.success() {
        bail!("sacct failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// What the site's configuration and its sacct say of who gathers the figures.
fn site() -> Gathering {
    let version = linux::children::output(Command::new("sacct").arg("--version")).ok();
    let version = version.and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse().ok());
    match config() {
        Ok(config) => Gathering { version, ..config.gathering() },
        Err(_) => Gathering { version, ..Gathering::default() },
    }
}
