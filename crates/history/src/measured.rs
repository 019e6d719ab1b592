//! Runs in records that others are compared with: of one record, or of all in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use model::{Attribution, Bytes, Exit, Header, Observation, RecordKind, RunAccount, RunRole};
use record::Record;

/// Runs of one record that came to their end.
pub struct Measured {
    /// The header of the record.
    pub header: Header,
    /// Each with its account.
    pub runs: Vec<(Observation, RunAccount)>,
    /// Of `bursar attribute`.
    pub attributions: Vec<Attribution>,
    /// The answer of `bursar budget`.
    pub budget_bytes: Option<u64>,
}

/// What a path names.
pub struct Set {
    /// The path.
    pub name: String,
    /// At least one, each with at least one run.
    pub records: Vec<Measured>,
    /// Records of a folder that are not used, with the reason.
    pub left_out: Vec<(PathBuf, String)>,
}

impl Set {
    /// Reads a record, or those of a folder. `is_wanted` says why a record cannot be used.
    ///
    /// # Errors
    /// A sentence, if nothing is left.
    pub fn read(path: &Path, is_wanted: &dyn Fn(&Measured) -> Result<(), String>) -> anyhow::Result<Set> {
        let name = path.display().to_string();
        let found = fs::metadata(path).with_context(|| format!("cannot read {name}"))?;
        if !found.is_dir() {
            let measured = of_record(path)?;
            if let Err(why) = is_wanted(&measured) {
                bail!("{name} cannot be compared: {why}");
            }
            return Ok(Set { name, records: vec![measured], left_out: Vec::new() });
        }
        let entries = fs::read_dir(path).with_context(|| format!("cannot read {name}"))?;
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "bursar"));
        files.sort();
        let (mut records, mut left_out) = (Vec::new(), Vec::new());
        for file in files {
            let measured = of_record(&file).map_err(|error| format!("{error:#}"));
            match measured.and_then(|measured| is_wanted(&measured).map(|()| measured)) {
                Ok(measured) => records.push(measured),
                Err(why) => left_out.push((file, why)),
            }
        }
        match (records.is_empty(), left_out.first()) {
            (true, None) => bail!("the folder {name} holds no record (*.bursar)"),
            (true, Some((file, why))) => {
                bail!("no record in {name} can be used ({} there); {}: {why}", left_out.len(), file.display())
            }
            (false, _) => Ok(Set { name, records, left_out }),
        }
    }

    /// Those of all records.
    pub fn runs(&self) -> impl Iterator<Item = &(Observation, RunAccount)> {
        self.records.iter().flat_map(|record| &record.runs)
    }

    /// Of the first record.
    pub fn header(&self) -> &Header {
        &self.records[0].header
    }
}

/// Reads the runs of a record that were not held back by a trial's limit.
///
/// # Errors
/// A sentence, if it has no end, is of another kind, or one of its runs did not come to its end: the figures of such a run are lower bounds.
fn of_record(path: &Path) -> anyhow::Result<Measured> {
    let name = path.display();
    let Record { header, runs, budget, attributions, complete, .. } =
        Record::open(path).with_context(|| format!("cannot read {name}"))?;
    if !complete {
        bail!("{name} has no end: it is still being written, or was cut off");
    }
    if !matches!(header.kind, RecordKind::Run | RecordKind::Budget | RecordKind::Attribute) {
        bail!("{name} is no record of bursar run, check, budget or attribute");
    }
    let plain = |run: &Observation| matches!(run.role, RunRole::Plain | RunRole::Reference);
    let runs: Vec<(Observation, RunAccount)> = runs
        .into_iter()
        .filter(plain)
        .map(|run| {
            let account = account::account(&run, &header);
            (run, account)
        })
        .collect();
    if runs.is_empty() {
        bail!("{name} holds no run");
    }
    if let Some((run, why)) = runs.iter().find_map(|(run, account)| Some((run.run, unfinished(run, account)?))) {
        bail!("run {run} of {name} {why}: its figures are lower bounds");
    }
    let budget_bytes = budget.and_then(|budget| budget.answer.budget_bytes);
    Ok(Measured { header, runs, attributions, budget_bytes })
}

/// Why a run's figures are lower bounds: what ended it before its work was done. `None`: it came to its end.
pub fn unfinished(run: &Observation, account: &RunAccount) -> Option<String> {
    if account.oom_kills.is_some_and(|kills| kills > 0) {
        let limit = account.limit_bytes.map_or(String::new(), |limit| format!(" at its limit of {}", Bytes(limit)));
        return Some(format!("was killed for lack of memory{limit}"));
    }
    match run.exit {
        Exit::Status(0) => account.cut_short.as_ref().map(|why| format!("was cut short ({why})")),
        Exit::Status(status) => Some(format!("failed with status {status}")),
        Exit::Signal(signal) => Some(format!("was ended by signal {signal}")),
        Exit::TimedOut => Some("was ended by its time-out".into()),
        Exit::StoppedEarly => Some("was stopped early".into()),
        Exit::StillRunning => Some("did not come to its end".into()),
    }
}
