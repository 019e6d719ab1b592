//! `bursar report`: a record, looked at again.

use ::report::Watched;
use anyhow::ensure;
use model::RecordKind;
use record::Record;

use crate::advise;
use crate::attribute::{self, notes};
use crate::cli::report::Report;
use crate::faults;
use crate::opened;
use crate::results::{accounts, style, view, write_html, write_page};
use crate::say;
use crate::status::Status;
use crate::watch::recorded;

pub fn report(options: &Report) -> anyhow::Result<Status> {
    let record = opened::open(&options.record)?;
    match record.header.kind {
        RecordKind::Watch => return watched(options),
        RecordKind::Attribute => return attributed(options, &record),
        RecordKind::Faults => return faulted(options, &record),
        RecordKind::Advise => return advised(options, &record),
        RecordKind::Run | RecordKind::Attach | RecordKind::Budget => {}
    }
    let accounts = accounts(&record);
    match &options.html {
        Some(path) => write_html(path, &record, &accounts)?,
        None => {
            let view = view(&record, &accounts);
            let text = match record.header.kind {
                RecordKind::Budget => ::report::terminal::budget(&view, style()),
                _ => ::report::terminal::run(&view, style()),
            };
            say::page_result(&text)?;
        }
    }
    Ok(Status::of(0))
}

fn attributed(options: &Report, record: &Record) -> anyhow::Result<Status> {
    let notes = notes(record);
    let attributed = attribute::attributed(record, &notes);
    match &options.html {
        Some(path) => write_page(path, &::report::html::attribution(&attributed))?,
        None => say::page_result(&::report::terminal::attribution(&attributed, style()))?,
    }
    Ok(Status::of(0))
}

fn faulted(options: &Report, record: &Record) -> anyhow::Result<Status> {
    let faulted = faults::faulted(record);
    match &options.html {
        Some(path) => write_page(path, &::report::html::faults(&faulted))?,
        None => say::page_result(&::report::terminal::faults(&faulted, style()))?,
    }
    Ok(Status::of(0))
}

fn advised(options: &Report, record: &Record) -> anyhow::Result<Status> {
    ensure!(options.html.is_none(), "{} is of bursar advise, of which there is no page", options.record.display());
    say::result(format_args!("{}", advise::explain::table(record.advice.iter().flat_map(|advice| &advice.explained))))?;
    Ok(Status::of(0))
}

fn watched(options: &Report) -> anyhow::Result<Status> {
    let record = recorded(&options.record)?;
    let watched = Watched { header: &record.header, rounds: &record.pages, notes: &record.notes };
    match &options.html {
        Some(path) => write_page(path, &::report::html::watch(&watched))?,
        None => say::page_result(&::report::terminal::watch(&watched, style()))?,
    }
    Ok(Status::of(0))
}
