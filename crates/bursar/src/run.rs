//! `bursar run`: the account of one command, or of what runs already.

use anyhow::Context;
use report::run_figures;
use report::terminal::short::Aside;
use session::attach::{follow, resolve};
use session::runs::{self, Options, Ran};
use session::say::tell;
use session::status::Status;

use crate::cli::run::Run;
use crate::cli::target::Target;
use crate::results::deliver;

/// The account of something that runs already. Nothing is written to it.
pub fn attach(options: &Run, wanted: &Target) -> anyhow::Result<Status> {
    let found = wanted.find()?;
    let (target, scope) = resolve(&found, options.tree)?;
    if !options.results.quiet {
        tell!("watching {found}; Ctrl-C ends and prints the account");
    }
    let is_over = |watched| options.timeout.is_some_and(|limit| watched >= limit);
    let (record, path) = follow(target, scope, options.results.record.as_deref(), options.interval, &is_over)?;
    let accounts: Vec<_> = record.accounts.values().cloned().collect();
    let json = run_figures(&record.header, &record.runs, &accounts).context("nothing was seen")?;
    let aside = Aside { warnings: &[], notes: &record.notes, record: path.as_deref() };
    deliver(&options.results, &record, &aside, &json)?;
    Ok(Status::of(0))
}

pub fn run(options: Run) -> anyhow::Result<Status> {
    let results = options.results;
    let asked = Options {
        command: options.command,
        runs: options.runs,
        limit: options.limit,
        features: options.feature,
        timeout: options.timeout,
        interval: options.interval,
        record: results.record.clone(),
    };
    let (record, path, no_record, status) = match runs::run(&asked)? {
        Ran::Recorded { record, path, no_record, status } => (record, path, no_record, status),
        Ran::Nothing(status) => return Ok(status),
    };
    let accounts: Vec<_> = record.accounts.values().cloned().collect();
    let json = run_figures(&record.header, &record.runs, &accounts).context("no run was made")?;
    let notes: Vec<String> = no_record.into_iter().chain(record.notes.iter().cloned()).collect();
    let aside = Aside { warnings: &[], notes: &notes, record: path.as_deref() };
    deliver(&results, &record, &aside, &json)?;
    Ok(status)
}
