//! Reading a record, whichever form it has.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use model::{
    Advice, Attribution, BudgetReport, Faults, Header, Observation, PagesRound, ProcessKey, RunAccount, Series, Trial,
};
use rusqlite::{Connection, OpenFlags};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::form::{Form, form_of};
use crate::rows::{Fields, RowError, Table};
use crate::schema;
use crate::seal::{FillError, fill, open_database, seal};
use crate::session::{Life, Session};
use crate::writer::survey;

/// All that was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where and when it was made.
    pub header: Header,
    /// The runs, by number. One that was cut off is [`model::Exit::StillRunning`] and says so in its notes.
    pub runs: Vec<Observation>,
    /// The runs of a budget, judged, in the order they were made.
    pub trials: Vec<Trial>,
    /// What the budget found, if it came to an answer.
    pub budget: Option<BudgetReport>,
    /// The intervals of `bursar watch`.
    pub pages: Vec<PagesRound>,
    /// Who held the memory of the runs, by their numbers.
    pub attributions: Vec<Attribution>,
    /// The page faults of the runs, by their numbers.
    pub faults: Vec<Faults>,
    /// What was advised in the runs, by their numbers.
    pub advice: Vec<Advice>,
    /// Accounts by run, where the writer left them. They can always be made again from `runs`.
    pub accounts: BTreeMap<u32, RunAccount>,
    /// What the reader should know, as sentences.
    pub notes: Vec<String>,
    /// The writer came to its end. False if it was killed, if the file was cut or damaged, or while it is being written.
    pub complete: bool,
}

/// What a run that was cut off says of itself.
const CUT_OFF: &str = "The recording of this run was cut off before its end; what was seen until then is shown.";

impl Record {
    /// One that nothing has come to yet.
    pub fn new(header: Header) -> Record {
        Record {
            header,
            runs: Vec::new(),
            trials: Vec::new(),
            budget: None,
            pages: Vec::new(),
            attributions: Vec::new(),
            faults: Vec::new(),
            advice: Vec::new(),
            accounts: BTreeMap::new(),
            notes: Vec::new(),
            complete: true,
        }
    }

    /// Reads a record, framed or sealed. Of a framed one that is cut or damaged, everything before the damage.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::NotARecord`], [`Error::Newer`], [`Error::NoHeader`], [`Error::Damaged`], and [`Error::Io`]
    /// if the file cannot be read.
    pub fn open(path: &Path) -> Result<Record> {
        let database = match form_of(path)? {
            Form::Sealed => open_sealed(path)?,
            Form::Framed => {
                let io = |cause| Error::Io { path: path.into(), doing: "read", cause };
                let database = Connection::open_in_memory()
                    .map_err(|error| Error::Damaged { path: path.into(), what: error.to_string() })?;
                fill(&database, &File::open(path).map_err(io)?).map_err(|error| match error {
                    FillError::NoHeader => Error::NoHeader(path.into()),
                    FillError::Io(cause) => io(cause),
                    FillError::Sqlite(error) => Error::Damaged { path: path.into(), what: error.to_string() },
                })?;
                database
            }
        };
        let stored = Stored { database: &database, path };
        let mut runs = Vec::new();
        for run in stored.runs()? {
            let mut observation = stored.with_parts(run.observation)?;
            observation.series = stored.series_with_points(observation.run)?;
            if !run.finished {
                observation.notes.push(CUT_OFF.into());
            }
            runs.push(observation);
        }
        Ok(Record {
            header: stored.header()?,
            runs,
            trials: stored.trials()?,
            budget: stored.budget()?,
            pages: stored.pages()?,
            attributions: stored.attributions()?,
            faults: stored.faults()?,
            advice: stored.advice()?,
            accounts: stored.accounts()?,
            notes: stored.notes()?,
            complete: stored.complete()?,
        })
    }

    /// Seals a record whose writer is known to be dead. False, and nothing is done, if it is sealed already, or if the
    /// writer lives or cannot be looked up from here (another machine, another container).
    ///
    /// # Errors
    /// [`Error::Seal`], such as in a folder that may not be written: the record can be read all the same.
    pub fn seal_if_possible(path: &Path) -> Result<bool> {
        if form_of(path)? == Form::Sealed {
            return Ok(false);
        }
        let io = |cause| Error::Io { path: path.into(), doing: "read", cause };
        let file = File::open(path).map_err(io)?;
        let writer = survey(&file).map_err(io)?.session;
        if writer.is_none_or(|session| session.life() != Life::Dead) {
            return Ok(false);
        }
        seal(path, &file)?;
        Ok(true)
    }
}

/// Opens the tables of a sealed record, to read them.
pub(crate) fn open_sealed(path: &Path) -> Result<Connection> {
    let damaged = |error: rusqlite::Error| Error::Damaged { path: path.into(), what: error.to_string() };
    let database = open_database(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(damaged)?;
    schema::check(&database, path)?;
    Ok(database)
}

/// A run as its table has it.
pub(crate) struct StoredRun {
    /// Without series, processes, and the points and files of its file demand.
    pub(crate) observation: Observation,
    pub(crate) finished: bool,
    pub(crate) session: Option<i64>,
}

/// The tables, read back into the types they were made from.
pub(crate) struct Stored<'a> {
    pub(crate) database: &'a Connection,
    pub(crate) path: &'a Path,
}

impl Stored<'_> {
    pub(crate) fn header(&self) -> Result<Header> {
        let header = self.all("header", "1", |_| {})?.pop();
        header.ok_or_else(|| Error::NoHeader(self.path.into()))
    }

    pub(crate) fn sessions(&self) -> Result<Vec<(i64, Session)>> {
        let rows = self.rows("session", "1")?;
        let id = |row: &Fields| row.get("id").and_then(Value::as_i64).unwrap_or_default();
        let parse = |row: Fields| Ok((id(&row), self.parse("session", row)?));
        rows.into_iter().map(parse).collect()
    }

    pub(crate) fn runs(&self) -> Result<Vec<StoredRun>> {
        let parse = |mut row: Fields| {
            row.insert("series".into(), json!([]));
            row.insert("processes".into(), json!([]));
            if let Some(Value::Object(demand)) = row.get_mut("file_demand") {
                demand.insert("points".into(), json!([]));
                demand.insert("foreign".into(), json!([]));
            }
            let finished = row.get("finished") == Some(&Value::Bool(true));
            let session = row.get("session").and_then(Value::as_i64);
            Ok(StoredRun { observation: self.parse("run", row)?, finished, session })
        };
        self.rows("run", "1")?.into_iter().map(parse).collect()
    }

    /// The run with its processes and its whole file demand.
    pub(crate) fn with_parts(&self, mut observation: Observation) -> Result<Observation> {
        let of_run = format!("run = {}", observation.run);
        observation.processes = self.all("process", &of_run, |row| {
            let key = json!({"pid": row.get("pid"), "start_ticks": row.get("start_ticks")});
            row.insert("key".into(), key);
        })?;
        if let Some(demand) = &mut observation.file_demand {
            demand.points = self.all("file_demand", &of_run, |_| {})?;
            demand.foreign = self.all("foreign_file", &of_run, |_| {})?;
        }
        Ok(observation)
    }

    /// The series of a run by their ids, without points.
    pub(crate) fn series(&self, run: u32) -> Result<Vec<(u32, Series)>> {
        let parse = |mut row: Fields| {
            let key = |row: &Fields| -> Option<ProcessKey> {
                Some(ProcessKey {
                    pid: row.get("pid")?.as_i64()? as i32,
                    start_ticks: row.get("start_ticks")?.as_u64()?,
                })
            };
            row.insert("process".into(), json!(key(&row)));
            row.insert("points".into(), json!([]));
            let id = row.get("id").and_then(Value::as_u64).unwrap_or_default() as u32;
            Ok((id, self.parse("series", row)?))
        };
        self.rows("series", &format!("run = {run}"))?.into_iter().map(parse).collect()
    }

    fn series_with_points(&self, run: u32) -> Result<Vec<Series>> {
        let with_points = |(id, mut series): (u32, Series)| {
            let sql = "SELECT t_ns, value FROM sample WHERE series = ? ORDER BY t_ns";
            let mut statement = self.database.prepare_cached(sql)?;
            let points = statement.query_map([id], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)))?;
            series.points = points.collect::<Result<_, _>>()?;
            Ok(series)
        };
        let series = self.series(run)?.into_iter().map(with_points).collect::<rusqlite::Result<_>>();
        series.map_err(|error| self.damaged(error))
    }

    pub(crate) fn trials(&self) -> Result<Vec<Trial>> {
        self.all("trial", "1", |_| {})
    }

    pub(crate) fn budget(&self) -> Result<Option<BudgetReport>> {
        Ok(self.all("budget", "1", |_| {})?.pop())
    }

    pub(crate) fn pages(&self) -> Result<Vec<PagesRound>> {
        self.all_if_there("pages")
    }

    pub(crate) fn attributions(&self) -> Result<Vec<Attribution>> {
        let mut attributions: Vec<Attribution> = self.all_if_there("attribution")?;
        attributions.sort_by_key(|attribution| attribution.run);
        Ok(attributions)
    }

    pub(crate) fn faults(&self) -> Result<Vec<Faults>> {
        let mut faults: Vec<Faults> = self.all_if_there("faults")?;
        faults.sort_by_key(|faults| faults.run);
        Ok(faults)
    }

    pub(crate) fn advice(&self) -> Result<Vec<Advice>> {
        let mut advice: Vec<Advice> = self.all_if_there("advice")?;
        advice.sort_by_key(|advice| advice.run);
        Ok(advice)
    }

    pub(crate) fn accounts(&self) -> Result<BTreeMap<u32, RunAccount>> {
        let parse = |mut row: Fields| {
            let run = row.get("run").and_then(Value::as_u64).unwrap_or_default() as u32;
            let account = row.remove("json").unwrap_or_default();
            let account = serde_json::from_value(account).map_err(|cause| RowError::Json { table: "account", cause });
            Ok((run, account.map_err(|error| self.damaged(error))?))
        };
        self.rows("account", "1")?.into_iter().map(parse).collect()
    }

    pub(crate) fn notes(&self) -> Result<Vec<String>> {
        let text = |row: Fields| row.get("note").and_then(Value::as_str).unwrap_or_default().to_string();
        Ok(self.rows("note", "1")?.into_iter().map(text).collect())
    }

    fn complete(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'complete' AND value = '1')";
        self.database.query_row(sql, [], |row| row.get(0)).map_err(|error| self.damaged(error))
    }

    /// All rows of a table that older versions do not have.
    fn all_if_there<T: DeserializeOwned>(&self, table: &'static str) -> Result<Vec<T>> {
        let there = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)";
        let there = self.database.query_row(there, [table], |row| row.get(0)).map_err(|error| self.damaged(error))?;
        if there { self.all(table, "1", |_| {}) } else { Ok(Vec::new()) }
    }

    /// All rows of a table that hold the condition, each put right by `amend` before it is parsed.
    fn all<T: DeserializeOwned>(
        &self,
        table: &'static str,
        condition: &str,
        amend: impl Fn(&mut Fields),
    ) -> Result<Vec<T>> {
        let parse = |mut row: Fields| {
            amend(&mut row);
            self.parse(table, row)
        };
        self.rows(table, condition)?.into_iter().map(parse).collect()
    }

    fn rows(&self, table: &'static str, condition: &str) -> Result<Vec<Fields>> {
        let rows = Table::of(self.database, table).map_err(RowError::from);
        rows.and_then(|table| table.rows(self.database, condition)).map_err(|error| self.damaged(error))
    }

    fn parse<T: DeserializeOwned>(&self, table: &'static str, row: Fields) -> Result<T> {
        serde_json::from_value(Value::Object(row)).map_err(|cause| self.damaged(RowError::Json { table, cause }))
    }

    fn damaged(&self, error: impl ToString) -> Error {
        Error::Damaged { path: self.path.into(), what: error.to_string() }
    }
}
