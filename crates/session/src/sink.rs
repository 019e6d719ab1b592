//! The record of a command while it is written.

use std::path::{Path, PathBuf};

use anyhow::Context;
use model::{Header, Observation, RecordKind, Series};
use record::{Entry, Record, Resumable, Writer};

use crate::bench::unix_ns;
use crate::rank::RANK;
use crate::say::tell;
use history::prune::{Keep, prune};
use history::state::state_folder;

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

    /// Removes it where no run has ended, else seals it: a command could not be started.
    pub fn end_without(self, record: &Record) {
        let path = self.path().filter(|_| record.runs.is_empty()).map(Path::to_path_buf);
        match path {
            Some(path) => _ = std::fs::remove_file(path),
            None => _ = self.seal(),
        }
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

/// Records the end of a run with its account, and keeps both. `late`: time lines that are known only now.
pub fn finish_run(
    sink: &mut Sink,
    record: &mut Record,
    mut observation: Observation,
    late: Vec<Series>,
) -> anyhow::Result<()> {
    let account = account::account(&observation, &record.header);
    let run = observation.run;
    let ended = Observation { series: late.clone(), ..observation.clone() };
    observation.series.extend(late);
    sink.append(Entry::RunEnd(Box::new(ended)))?;
    sink.append(Entry::Account { run, account: Box::new(account.clone()) })?;
    record.accounts.insert(run, account);
    record.runs.push(observation);
    Ok(())
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
    let plain = match header.options.get(RANK) {
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
