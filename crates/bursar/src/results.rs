//! Where results go: the record, JSON, HTML, the summary.

use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use linux::secure_file::{Folder, Output};
use model::{Header, RecordKind, RunAccount};
use record::{Entry, Record, Resumable, Writer};
use report::View;
use report::terminal::Style;
use report::terminal::short::{self, Aside};
use serde::Serialize;

use crate::bench::unix_ns;
use crate::cli::Results;
use crate::input::is_dash;
use crate::prune::{Keep, prune};
use crate::replace::replace;
use crate::say::{self, tell};

/// The record being written, if there is a place for it.
pub struct Sink {
    writer: Option<Writer>,
}

impl Sink {
    /// Begins the record: at the person's path, else at a new one under the state folder. Where nothing can be written (a
    /// container on a read-only image), there is no record, and the second value says why.
    pub fn create(path: Option<&Path>, header: &Header) -> anyhow::Result<(Sink, Option<String>)> {
        if let Some(path) = path {
            let writer = Writer::create(path, header).context("nothing was run")?;
            return Ok((Sink { writer: Some(writer) }, None));
        }
        let made = Keep::of_environment().and_then(|keep| {
            let path = default_path(header)?;
            let writer = Writer::create(&path, header)?;
            // Records that cannot be removed are not in the way of this one.
            let _ = path.parent().map(|folder| prune(folder, keep));
            Ok(writer)
        });
        match made {
            Ok(writer) => Ok((Sink { writer: Some(writer) }, None)),
            Err(error) => {
                Ok((Sink { writer: None }, Some(format!("No record is kept: {error:#}; name one with --record."))))
            }
        }
    }

    /// Begins the record at the person's path; without one there is no record.
    pub fn at(path: Option<&Path>, header: &Header) -> anyhow::Result<Sink> {
        Ok(Sink { writer: path.map(|path| Writer::create(path, header)).transpose()? })
    }

    /// No record.
    pub fn none() -> Sink {
        Sink { writer: None }
    }

    /// Where it is; `None`: there is none, or none any more.
    pub fn path(&self) -> Option<&Path> {
        self.writer.as_ref().map(Writer::path)
    }

    /// Goes on with a record.
    pub fn resume(record: Resumable) -> anyhow::Result<Sink> {
        Ok(Sink { writer: Some(record.resume()?) })
    }

    /// Appends; without a record, does nothing. A record that cannot be written any more (a full disk) is given up with
    /// one sentence, and the run goes on.
    pub fn append(&mut self, entry: Entry) -> anyhow::Result<()> {
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.append(&entry)) {
            tell!("bursar: the record ends here: {error}");
            self.writer = None;
        }
        Ok(())
    }

    /// Seals it; gives its path.
    pub fn seal(self) -> Option<PathBuf> {
        let writer = self.writer?;
        let path = writer.path().to_path_buf();
        match writer.seal() {
            Ok(sealed) => Some(sealed),
            Err(error) => {
                tell!("bursar: {error}");
                Some(path)
            }
        }
    }
}

/// Root's state where `HOME` and `XDG_STATE_HOME` are another user's than whoever called sudo.
const OF_ROOT: &str = "/var/lib/bursar";

/// Whether what is made there belongs to this user, or to whoever called sudo.
fn may_use(folder: &Path) -> bool {
    let there = folder.ancestors().find_map(|folder| std::fs::metadata(folder).ok());
    !rustix::process::geteuid().is_root() || there.is_some_and(|there| linux::secure_file::is_trusted(there.uid()))
}

/// `~/.local/state/bursar`, by XDG_STATE_HOME where set.
pub fn state_path() -> anyhow::Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|p| p.is_absolute()).or_else(home);
    let folder = state.context("neither HOME nor XDG_STATE_HOME is set")?.join("bursar");
    Ok(if may_use(&folder) { folder } else { PathBuf::from(OF_ROOT) })
}

/// The folder of [`state_path`], made if it is not there. Under sudo, what is made in a folder of the calling user is that user's.
pub fn state_folder() -> anyhow::Result<PathBuf> {
    let folder = state_path()?;
    Folder::create_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

/// `COMMAND-TIME.bursar` in the state folder.
fn default_path(header: &Header) -> anyhow::Result<PathBuf> {
    let folder = state_folder()?;
    let what = match header.kind {
        RecordKind::Run => "run",
        RecordKind::Attach => "attach",
        RecordKind::Budget => "budget",
        RecordKind::Watch => "watch",
        RecordKind::Attribute => "attribute",
        RecordKind::Faults => "faults",
        RecordKind::Advise => "advise",
    };
    let command = header.command.first().map(|c| Path::new(c).file_name().unwrap_or_default().to_string_lossy());
    let command: String = command
        .as_deref()
        .unwrap_or("job")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '_' })
        .take(40)
        .collect();
    let stamp = humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(unix_ns()));
    let stamp = stamp.to_string().replace(['-', ':'], "").replace('T', "-").replace('Z', "");
    let plain = folder.join(format!("{what}-{command}-{stamp}.bursar"));
    // Several ranks on a node begin at once.
    let plain = match header.options.get(crate::rank::RANK) {
        Some(rank) => folder.join(format!("{what}-{command}-{stamp}-rank{rank}.bursar")),
        None => plain,
    };
    let pid = std::process::id();
    Ok(if std::fs::symlink_metadata(&plain).is_ok() {
        folder.join(format!("{what}-{command}-{stamp}-{pid}.bursar"))
    } else {
        plain
    })
}

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
    let text = report::printable_json(&serde_json::to_string_pretty(value)?) + "\n";
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
