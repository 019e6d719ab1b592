//! `bursar report`: records, looked at again.

use std::path::{Path, PathBuf};

use ::report::{BY_LIBRARY, Watched};
use anyhow::{Context, bail, ensure};
use controller::huge_pages::of_stats;
use history::prune::newest;
use history::state::state_path;
use history::tasks;
use model::{Explained, RecordKind};
use record::Record;
use session::attribution::{self, notes};
use session::faulting;
use session::merge;
use session::opened;
use session::redact::redacted;
use session::say::{self, show, tell};
use session::status::Status;

use crate::cli::Results;
use crate::cli::report::Report;
use crate::export::export;
use crate::replay;
use crate::results::{accounts, style, view, write_html, write_json, write_page};

pub fn report(options: &Report) -> anyhow::Result<Status> {
    let results = &options.results;
    if options.records.is_empty() {
        list()?;
    } else if options.phases.phases {
        replay::replay(options)?;
    } else if tasks::are_folders(&options.records) {
        tasks_by_rule(options)?;
    } else if let Some(explained) = stats(&options.records)? {
        ensure!(options.format.is_none(), "--format writes records, and {} is none", options.records[0].display());
        decisions(&explained, &options.records[0], results)?;
    } else if options.format == Some(::export::Format::Vpa) {
        let records = options.records.iter().map(|path| open(path)).collect::<anyhow::Result<Vec<_>>>()?;
        export(&records, ::export::Format::Vpa, options.output.as_deref())?;
    } else {
        let mut record = record(options)?;
        if options.by_library {
            record.header.options.insert(BY_LIBRARY.to_string(), "yes".to_string());
        }
        match options.format {
            Some(format) => export(&[record], format, options.output.as_deref())?,
            None => show(options, record)?,
        }
    }
    Ok(Status::of(0))
}

/// Records that are listed.
const MOST_LISTED: usize = 10;

/// Lists the newest records that nobody named.
fn list() -> anyhow::Result<()> {
    let folder = state_path()?;
    let newest = newest(&folder, MOST_LISTED);
    ensure!(!newest.is_empty(), "name a record: there is none in {}", folder.display());
    show!("The newest records, the last one first:")?;
    newest.iter().try_for_each(|path| show!("  bursar report {}", ::report::shell_word(&path.to_string_lossy())))
}

/// The decisions in what `bursar advise --stats` wrote, if that is what was named.
fn stats(paths: &[PathBuf]) -> anyhow::Result<Option<Vec<Explained>>> {
    match paths {
        [path] => of_stats(path),
        _ => Ok(None),
    }
}

/// Prints the tasks of a workflow by rule, or writes them as JSON.
fn tasks_by_rule(options: &Report) -> anyhow::Result<()> {
    let results = &options.results;
    ensure!(options.format.is_none() && results.html.is_none(), "of folders of records there is the table and --json");
    ensure!(results.record.is_none(), "--record keeps a record made of several of one job; these are of many tasks");
    let tasks = tasks::of_folders(&options.records);
    if !results.quiet && results.json.is_none() {
        say::page_result(&::report::terminal::tasks(&tasks, style()))?;
    }
    match &results.json {
        Some(json) => write_json(json, &tasks),
        None => Ok(()),
    }
}

/// The one record that the report is of.
fn record(options: &Report) -> anyhow::Result<Record> {
    let kept = options.results.record.as_deref();
    let (record, path) = match &options.records[..] {
        folders if folders.iter().any(|path| path.is_dir()) => attribution::of_logs(folders, kept)?,
        [path] if kept.is_none() => (open(path)?, None),
        paths => {
            let records = paths.iter().map(|path| Ok((path.clone(), open(path)?))).collect::<anyhow::Result<_>>()?;
            merge::merged(records, kept)?
        }
    };
    if let Some(path) = path {
        tell!("record: {}", path.display());
    }
    Ok(record)
}

/// A record without what is to be kept out of its report.
pub fn open(path: &Path) -> anyhow::Result<Record> {
    let mut record = opened::open(path)?;
    record.header.command.iter_mut().for_each(|word| *word = redacted(word));
    if let Some(prepare) = record.header.options.get_mut("prepare") {
        *prepare = redacted(prepare);
    }
    Ok(record)
}

/// Prints the report, or writes it as JSON or as a page.
fn show(options: &Report, record: Record) -> anyhow::Result<()> {
    let (results, path) = (&options.results, &options.records[0]);
    let prints = !results.quiet && results.json.is_none() && results.html.is_none();
    if options.replay {
        return live::replay(live::checked(record, path)?, results.json.as_deref(), results.quiet);
    }
    match record.header.kind {
        RecordKind::Watch => {
            let record = live::checked(record, path)?;
            let watched = Watched { header: &record.header, rounds: &record.pages, notes: &record.notes };
            if prints {
                say::page_result(&::report::terminal::watch(&watched, style()))?;
            }
            if let Some(path) = &results.html {
                write_page(path, &::report::html::watch(&watched))?;
            }
            if let Some(path) = &results.json {
                live::write_json(record, path)?;
            }
        }
        RecordKind::Attribute => {
            let notes = notes(&record);
            let attributed = attribution::attributed(&record, &notes);
            if prints {
                say::page_result(&::report::terminal::attribution(&attributed, style()))?;
            }
            if let Some(path) = &results.html {
                write_page(path, &::report::html::attribution(&attributed))?;
            }
            if let Some(path) = &results.json {
                write_json(path, &attribution::figures(&record, record.attributions.len() > 1)?)?;
            }
        }
        RecordKind::Faults => {
            let faulted = faulting::faulted(&record);
            if prints {
                say::page_result(&::report::terminal::faults(&faulted, style()))?;
            }
            if let Some(path) = &results.html {
                write_page(path, &::report::html::faults(&faulted))?;
            }
            if let Some(path) = &results.json {
                write_json(path, &faulting::figures(&record)?)?;
            }
        }
        RecordKind::Advise => {
            let explained: Vec<Explained> = record.advice.into_iter().flat_map(|advice| advice.explained).collect();
            decisions(&explained, path, results)?;
        }
        RecordKind::Run | RecordKind::Attach | RecordKind::Budget => {
            let accounts = accounts(&record);
            let view = view(&record, &accounts);
            if prints {
                say::page_result(&match record.header.kind {
                    RecordKind::Budget => ::report::terminal::budget(&view, style()),
                    _ => ::report::terminal::run(&view, style()),
                })?;
            }
            if let Some(path) = &results.html {
                write_html(path, &record, &accounts)?;
            }
            match (&results.json, record.header.kind, &record.budget) {
                (None, ..) => {}
                (Some(json), RecordKind::Budget, Some(report)) => write_json(json, report)?,
                (Some(_), RecordKind::Budget, None) => bail!(
                    "{} was interrupted before it had an answer; --format json writes the runs that it has",
                    path.display()
                ),
                (Some(json), _, _) if merge::is_merged(&record) => {
                    write_json(json, &merge::figures(&record, &accounts)?)?
                }
                (Some(json), _, _) => {
                    let figures = ::report::run_figures(&record.header, &record.runs, &accounts);
                    write_json(json, &figures.with_context(|| format!("{} holds no run", path.display()))?)?;
                }
            }
        }
    }
    Ok(())
}

/// The decisions of `bursar advise run` or `attach`.
fn decisions(explained: &[Explained], path: &Path, results: &Results) -> anyhow::Result<()> {
    let name = path.display();
    ensure!(results.html.is_none(), "{name} is of bursar advise, of which there is no page");
    if !results.quiet && results.json.is_none() {
        say::result(format_args!("{}", ::report::decisions(explained)))?;
    }
    match &results.json {
        Some(json) => write_json(json, &::report::DecisionsJson { explained }),
        None => Ok(()),
    }
}
