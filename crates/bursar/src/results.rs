//! Where results go: JSON, HTML, the summary.

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, anyhow};
use history::input::is_dash;
use linux::secure_file::Output;
use model::{RecordKind, RunAccount};
use record::Record;
use report::View;
use report::terminal::Style;
use report::terminal::short::{self, Aside};
use serde::Serialize;
use session::say::{self, tell};

use crate::cli::Results;
use session::replace::replace;

/// How text on the terminal is laid out.
pub fn style() -> Style {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    Style { width: columns().unwrap_or(100).clamp(40, 200), color }
}

/// The width of lines: as `COLUMNS` says, else the terminal's.
pub fn columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let of_terminal = rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| usize::from(size.ws_col));
    [said, of_terminal].into_iter().flatten().find(|columns| *columns > 0)
}

/// Finds out before the first run whether the files that are to be written at the end can be.
pub fn check(results: &Results) -> anyhow::Result<()> {
    check_json(results.json.as_deref())?;
    check_html(results.html.as_deref())
}

/// The same of the page.
pub fn check_html(path: Option<&Path>) -> anyhow::Result<()> {
    path.map_or(Ok(()), |path| check_file("report", path))
}

/// The same of JSON; `-` is standard output.
pub fn check_json(path: Option<&Path>) -> anyhow::Result<()> {
    path.filter(|path| !is_dash(path)).map_or(Ok(()), |path| check_file("JSON", path))
}

/// Finds out whether a file can be written.
pub fn check_file(what: &str, path: &Path) -> anyhow::Result<()> {
    Output::check(path).map_err(|error| {
        anyhow!(
            "cannot write the {what} to {}: {error}. Nothing was run: name a file in a folder that is there and that you may \
             write to",
            path.display()
        )
    })
}

/// Writes a value as JSON to a file, or to standard output for `-`.
pub fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let text = model::printable_json(&serde_json::to_string_pretty(value)?) + "\n";
    if is_dash(path) {
        let out = linux::standard_output::open();
        out.and_then(|mut out| out.write_all(text.as_bytes())).context("standard output cannot be written")
    } else {
        replace(path, |out| out.write_all(text.as_bytes()))
            .with_context(|| format!("the JSON could not be written to {}", path.display()))
    }
}

/// Writes the HTML report of a record.
pub fn write_html(path: &Path, record: &Record, accounts: &[RunAccount]) -> anyhow::Result<()> {
    write_page(path, &report::html::page(&view(record, accounts)))
}

/// Writes an HTML page.
pub fn write_page(path: &Path, page: &str) -> anyhow::Result<()> {
    replace(path, |out| out.write_all(page.as_bytes()))
        .with_context(|| format!("the report could not be written to {}", path.display()))
}

/// The account of every run of a record.
pub fn accounts(record: &Record) -> Vec<RunAccount> {
    record.runs.iter().map(|run| account::account(run, &record.header)).collect()
}

/// A record as reports see it.
pub fn view<'a>(record: &'a Record, accounts: &'a [RunAccount]) -> View<'a> {
    View {
        header: &record.header,
        runs: record.runs.iter().zip(accounts).collect(),
        budget: record.budget.as_ref(),
        trials: &record.trials,
        notes: &record.notes,
        complete: record.complete,
    }
}

/// Prints the summary, writes JSON and HTML, and says where the record is.
pub fn deliver(results: &Results, record: &Record, aside: &Aside, json: &impl Serialize) -> anyhow::Result<()> {
    let accounts = accounts(record);
    if !results.quiet {
        let view = view(record, &accounts);
        let text = match (record.header.kind, results.verbose) {
            (RecordKind::Budget, false) => short::budget(&view, aside, style()),
            (_, false) => short::run(&view, aside, style()),
            (RecordKind::Budget, true) => report::terminal::budget(&view, style()),
            (_, true) => report::terminal::run(&view, style()),
        };
        say::page(&text);
        if let Some(path) = aside.record.filter(|_| results.verbose) {
            tell!("record: {}", path.display());
        }
    }
    if let Some(path) = &results.json {
        write_json(path, json)?;
    }
    if let Some(path) = &results.html {
        write_html(path, record, &accounts)?;
    }
    Ok(())
}
