//! `bursar faults`: how long the command's page faults take.

use session::faulting::{self, faulted, figures};
use session::say::{self, tell};
use session::status::Status;

use crate::cli;
use crate::results::{style, write_json, write_page};

pub fn faults(options: &cli::faults::Faults) -> anyhow::Result<Status> {
    let results = &options.results;
    let (record, path, status) =
        faulting::faults(&options.command, options.beside.as_deref(), results.record.as_deref())?;
    let faulted = faulted(&record);
    if !results.quiet {
        let report = if results.verbose { ::report::terminal::faults } else { ::report::terminal::short_faults };
        say::page(&report(&faulted, style()));
        match path {
            Some(path) if results.verbose => tell!("record: {}", path.display()),
            Some(path) => say::page(&::report::terminal::short::details(&path, style())),
            None => {}
        }
    }
    if let Some(path) = &results.json {
        write_json(path, &figures(&record)?)?;
    }
    if let Some(path) = &results.html {
        write_page(path, &::report::html::faults(&faulted))?;
    }
    Ok(status)
}
