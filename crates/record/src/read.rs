//! Reading a record, whichever form it has.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use linux::secure_file::Folder;
use model::{
    Advice, Attribution, BudgetReport, DemandPoint, Faults, ForeignFile, Header, Observation, PagesRound, ProcessKey,
    ProcessRecord, RunAccount, Series, Trial,
};
use rusqlite::Connection;
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::form::{Form, form_of, form_of_file};
use crate::guard::{self, Allowance};
use crate::rows::{Fields, RowError, Table};
use crate::schema;
use crate::seal::{FillError, fill, open_copy, seal};
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
    /// Notes, as sentences.
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
        match form_of(path)? {
            Form::Sealed => {
                let (database, bytes) = guard::open(path)?;
                Record::of_database(path, &database, bytes)
            }
            Form::Framed => {
                let io = |cause| Error::Io { path: path.into(), doing: "read", cause };
                let (database, bytes) = in_memory(path, &File::open(path).map_err(io)?)?;
                Record::of_database(path, &database, bytes)
            }
        }
    }

    /// The same of an open file, whatever has its name by now.
    pub(crate) fn of_file(path: &Path, file: &File) -> Result<Record> {
        match form_of_file(path, file)? {
            Form::Sealed => {
                let (_private, database, bytes) = open_copy(path, file)?;
                Record::of_database(path, &database, bytes)
            }
            Form::Framed => {
                let (database, bytes) = in_memory(path, file)?;
                Record::of_database(path, &database, bytes)
            }
        }
    }

    fn of_database(path: &Path, database: &Connection, bytes: u64) -> Result<Record> {
        let stored = Stored::new(database, path, bytes);
        let (mut parts, mut series) = (stored.parts()?, stored.series_with_points()?);
        let mut runs = Vec::new();
        for run in stored.runs()? {
            let mut observation = parts.join(run.observation);
            observation.series = series.remove(&observation.run).unwrap_or_default();
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

    /// Whether something may be appended to the file: it is not sealed, and its writer is not known to be dead.
    pub fn may_be_written(path: &Path) -> bool {
        let writer = || survey(&File::open(path).ok()?).ok()?.session;
        form_of(path).is_ok_and(|form| form == Form::Framed)
            && writer().is_some_and(|session| session.life() != Life::Dead)
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
        let (folder, name) = Folder::of(path).map_err(io)?;
        let file = folder.open_file(&name, OFlags::RDONLY).map_err(io)?;
        let writer = survey(&file).map_err(io)?.session;
        if writer.is_none_or(|session| session.life() != Life::Dead) {
            return Ok(false);
        }
        seal(path, &folder, &name, &file)?;
        Ok(true)
    }
}

/// The tables of a framed record, and the bytes they take.
fn in_memory(path: &Path, file: &File) -> Result<(Connection, u64)> {
    let io = |cause| Error::Io { path: path.into(), doing: "read", cause };
    let damaged = |error: rusqlite::Error| Error::Damaged { path: path.into(), what: error.to_string() };
    let database = Connection::open_in_memory().map_err(damaged)?;
    guard::allow_steps(&database, guard::steps_for(file.metadata().map_err(io)?.len()));
    fill(&database, file).map_err(|error| match error {
        FillError::NoHeader => Error::NoHeader(path.into()),
        FillError::Io(cause) => io(cause),
        FillError::Sqlite(error) => Error::Damaged { path: path.into(), what: guard::sentence(&error) },
    })?;
    let pragma = |name| database.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let bytes = pragma("page_count").and_then(|count| Ok(count * pragma("page_size")?)).map_err(damaged)?;
    guard::allow_steps(&database, guard::steps_for(bytes));
    Ok((database, bytes))
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
    database: &'a Connection,
    path: &'a Path,
    allowance: Allowance,
}

/// What is kept of the runs in tables of its own, by run.
pub(crate) struct Parts {
    processes: BTreeMap<u32, Vec<ProcessRecord>>,
    points: BTreeMap<u32, Vec<DemandPoint>>,
    foreign: BTreeMap<u32, Vec<ForeignFile>>,
}

impl Parts {
    /// The run with its processes and its whole file demand.
    pub(crate) fn join(&mut self, mut observation: Observation) -> Observation {
        let run = observation.run;
        observation.processes = self.processes.remove(&run).unwrap_or_default();
        if let Some(demand) = &mut observation.file_demand {
            demand.points = self.points.remove(&run).unwrap_or_default();
            demand.foreign = self.foreign.remove(&run).unwrap_or_default();
        }
        observation
    }
}

impl<'a> Stored<'a> {
    /// The tables of a file of this many bytes.
    pub(crate) fn new(database: &'a Connection, path: &'a Path, bytes: u64) -> Stored<'a> {
        Stored { database, path, allowance: Allowance::of(bytes) }
    }

    pub(crate) fn header(&self) -> Result<Header> {
        let header = self.all("header", |_| {})?.pop();
        header.ok_or_else(|| Error::NoHeader(self.path.into()))
    }

    pub(crate) fn sessions(&self) -> Result<Vec<(i64, Session)>> {
        let rows = self.rows("session")?;
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
        self.rows("run")?.into_iter().map(parse).collect()
    }

    /// What belongs to the runs, each table read once.
    pub(crate) fn parts(&self) -> Result<Parts> {
        let processes = self.by_run("process", |row| {
            let key = json!({"pid": row.get("pid"), "start_ticks": row.get("start_ticks")});
            row.insert("key".into(), key);
        })?;
        Ok(Parts {
            processes,
            points: self.by_run("file_demand", |_| {})?,
            foreign: self.by_run("foreign_file", |_| {})?,
        })
    }

    /// The series of each run with their ids, without points.
    pub(crate) fn series(&self) -> Result<BTreeMap<u32, Vec<(u32, Series)>>> {
        let key = |row: &Fields| -> Option<ProcessKey> {
            Some(ProcessKey { pid: row.get("pid")?.as_i64()? as i32, start_ticks: row.get("start_ticks")?.as_u64()? })
        };
        let mut series: BTreeMap<u32, Vec<(u32, Series)>> = BTreeMap::new();
        for mut row in self.rows("series")? {
            row.insert("process".into(), json!(key(&row)));
            row.insert("points".into(), json!([]));
            let id = row.get("id").and_then(Value::as_u64).unwrap_or_default() as u32;
            series.entry(run_of(&row)).or_default().push((id, self.parse("series", row)?));
        }
        Ok(series)
    }

    fn series_with_points(&self) -> Result<BTreeMap<u32, Vec<Series>>> {
        let mut points = self.points().map_err(|error| self.damaged(error))?;
        let with_points = |(id, mut series): (u32, Series)| {
            series.points = points.remove(&id).unwrap_or_default();
            series
        };
        let mut with_points = with_points;
        let of_run = |(run, series): (u32, Vec<_>)| (run, series.into_iter().map(&mut with_points).collect());
        Ok(self.series()?.into_iter().map(of_run).collect())
    }

    /// The points of each series by its id, in order of time.
    fn points(&self) -> Result<BTreeMap<u32, Vec<(u64, f64)>>, RowError> {
        let mut statement = self.database.prepare("SELECT series, t_ns, value FROM sample ORDER BY series, t_ns")?;
        let mut rows = statement.query([])?;
        let mut points: BTreeMap<u32, Vec<(u64, f64)>> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            if !self.allowance.take_row(0) {
                return Err(RowError::MoreThanTheFile { table: "sample" });
            }
            points.entry(row.get(0)?).or_default().push((row.get::<_, i64>(1)? as u64, row.get(2)?));
        }
        Ok(points)
    }

    pub(crate) fn trials(&self) -> Result<Vec<Trial>> {
        self.all("trial", |_| {})
    }

    pub(crate) fn budget(&self) -> Result<Option<BudgetReport>> {
        Ok(self.all("budget", |_| {})?.pop())
    }

    pub(crate) fn pages(&self) -> Result<Vec<PagesRound>> {
        self.all("pages", |_| {})
    }

    pub(crate) fn attributions(&self) -> Result<Vec<Attribution>> {
        let mut attributions: Vec<Attribution> = self.all("attribution", |_| {})?;
        attributions.sort_by_key(|attribution| attribution.run);
        Ok(attributions)
    }

    pub(crate) fn faults(&self) -> Result<Vec<Faults>> {
        let mut faults: Vec<Faults> = self.all("faults", |_| {})?;
        faults.sort_by_key(|faults| faults.run);
        Ok(faults)
    }

    pub(crate) fn advice(&self) -> Result<Vec<Advice>> {
        let mut advice: Vec<Advice> = self.all("advice", |_| {})?;
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
        self.rows("account")?.into_iter().map(parse).collect()
    }

    pub(crate) fn notes(&self) -> Result<Vec<String>> {
        let text = |row: Fields| row.get("note").and_then(Value::as_str).unwrap_or_default().to_string();
        Ok(self.rows("note")?.into_iter().map(text).collect())
    }

    fn complete(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'complete' AND value = '1')";
        self.database.query_row(sql, [], |row| row.get(0)).map_err(|error| self.damaged(error))
    }

    /// All rows of a table, each put right by `amend` before it is parsed.
    fn all<T: DeserializeOwned>(&self, table: &'static str, amend: impl Fn(&mut Fields)) -> Result<Vec<T>> {
        let parse = |mut row: Fields| {
            amend(&mut row);
            self.parse(table, row)
        };
        self.rows(table)?.into_iter().map(parse).collect()
    }

    /// All rows of a table that has the column `run`, by run.
    fn by_run<T: DeserializeOwned>(
        &self,
        table: &'static str,
        amend: impl Fn(&mut Fields),
    ) -> Result<BTreeMap<u32, Vec<T>>> {
        let mut by_run: BTreeMap<u32, Vec<T>> = BTreeMap::new();
        for mut row in self.rows(table)? {
            amend(&mut row);
            by_run.entry(run_of(&row)).or_default().push(self.parse(table, row)?);
        }
        Ok(by_run)
    }

    fn rows(&self, table: &'static str) -> Result<Vec<Fields>> {
        let found = Table::of(self.database, table).map_err(|error| self.damaged(RowError::from(error)))?;
        if found.is_absent() && schema::is_optional(table) {
            return Ok(Vec::new());
        }
        found.rows(self.database, &self.allowance).map_err(|error| self.damaged(error))
    }

    fn parse<T: DeserializeOwned>(&self, table: &'static str, row: Fields) -> Result<T> {
        serde_json::from_value(Value::Object(row)).map_err(|cause| self.damaged(RowError::Json { table, cause }))
    }

    fn damaged(&self, error: impl ToString) -> Error {
        Error::Damaged { path: self.path.into(), what: error.to_string() }
    }
}

/// The run that a row belongs to.
fn run_of(row: &Fields) -> u32 {
    row.get("run").and_then(Value::as_u64).and_then(|run| u32::try_from(run).ok()).unwrap_or(u32::MAX)
}
