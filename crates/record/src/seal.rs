//! From frames to tables.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use linux::secure_file::Folder;
use linux::temporary::TemporaryFolder;
use model::Observation;
use rusqlite::{Connection, OpenFlags, params};

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::frame::{Frames, HEADER_BYTES, VERSION};
use crate::guard;
use crate::rows::{Fields, Table, fields, remove_nulls};
use crate::schema;
use crate::session::Session;

/// A framed file below this is sealed with small pages.
const SMALL_BYTES: u64 = 1 << 20;

/// Why a framed file did not become tables.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FillError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("its header is missing")]
    NoHeader,
}

/// The tables in a [`TemporaryFolder`]: SQLite opens files by path and follows links.
const DATABASE: &str = "record";

/// Rewrites the framed `file`, which has this `name` in `folder`, into a sealed one of the same name.
pub(crate) fn seal(path: &Path, folder: &Folder, name: &OsStr, file: &File) -> Result<()> {
    let sealed = || -> Result<(), FillError> {
        let private = TemporaryFolder::create_near(folder_of(path))?;
        write_sealed(file, &private.path().join(DATABASE))?;
        Ok(private.move_to(DATABASE, folder, name)?)
    };
    sealed().map_err(|error| Error::Seal { path: path.into(), cause: error.to_string() })
}

/// The tables of a sealed record by its open file, whatever has its name by now, and their bytes. They are a copy, which goes
/// with the folder.
pub(crate) fn open_copy(path: &Path, mut file: &File) -> Result<(TemporaryFolder, Connection, u64)> {
    let io = |cause| Error::Io { path: path.into(), doing: "copied to be read", cause };
    let private = TemporaryFolder::create_near(folder_of(path)).map_err(io)?;
    let mut copy = Folder::open(private.path()).map_err(io)?.create_new(OsStr::new(DATABASE), 0o600).map_err(io)?;
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    io::copy(&mut file, &mut copy).map_err(io)?;
    let (database, bytes) = guard::open_as(&private.path().join(DATABASE), path)?;
    Ok((private, database, bytes))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a database without file locks, which not every network file system has: a sealed record never changes.
pub(crate) fn open_database(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags_and_vfs(path, flags, "unix-none")
}

fn write_sealed(mut file: &File, temporary: &Path) -> Result<(), FillError> {
    let database = open_database(temporary, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    // Each of a dozen tables takes a page at least, and most have few rows in a small record.
    if file.metadata()?.len() < SMALL_BYTES {
        database.execute_batch("PRAGMA page_size = 512")?;
    }
    // the file has its name only when it is whole, so that it needs no journal
    database.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -4096")?;
    file.seek(SeekFrom::Start(0))?;
    fill(&database, file)?;
    database.close().map_err(|(_, error)| error.into())
}

/// Fills an empty database from a framed file, as far as that is whole. One transaction, one entry in memory at a time.
/// What is appended meanwhile is left out, or a reader might never catch up.
pub(crate) fn fill(database: &Connection, file: &File) -> Result<(), FillError> {
    let mut input = BufReader::new(file.take(file.metadata()?.len()));
    input.read_exact(&mut [0; HEADER_BYTES as usize])?;
    let mut frames = Frames::new(input);
    let transaction = database.unchecked_transaction()?;
    schema::create(&transaction)?;
    let mut filler = Filler::new(&transaction);
    while let Some(payload) = frames.next()? {
        filler.ended = false;
        // whole, but of a kind this bursar does not know: the rest is still worth having
        if let Ok(entry) = serde_json::from_slice(payload) {
            filler.entry(entry)?;
        }
    }
    filler.finish()?;
    Ok(transaction.commit()?)
}

struct Filler<'a> {
    database: &'a Connection,
    /// Those that have had a row.
    tables: HashMap<&'static str, Table>,
    /// The last one and its row.
    session: Option<(i64, Session)>,
    header: bool,
    /// The run that has begun and not ended.
    open: Option<Observation>,
    /// The open run's series: id in the frames → id in the tables.
    ids: HashMap<u32, i64>,
    last_id: i64,
    /// The runs of which something is in the tables: of others there is nothing to forget.
    begun: HashSet<u32>,
    ended: bool,
}

impl<'a> Filler<'a> {
    fn new(database: &'a Connection) -> Self {
        Filler {
            database,
            tables: HashMap::new(),
            session: None,
            header: false,
            open: None,
            ids: HashMap::new(),
            last_id: 0,
            begun: HashSet::new(),
            ended: false,
        }
    }

    fn insert(&mut self, name: &'static str, row: Fields) -> rusqlite::Result<()> {
        let table = match self.tables.entry(name) {
            Slot::Occupied(slot) => slot.into_mut(),
            Slot::Vacant(slot) => {
                schema::create_optional(self.database, name)?;
                slot.insert(Table::of(self.database, name)?)
            }
        };
        table.insert(self.database, row)
    }

    fn entry(&mut self, entry: Entry) -> rusqlite::Result<()> {
        self.begun.extend(match &entry {
            Entry::Series { run, .. } | Entry::Account { run, .. } => Some(*run),
            Entry::RunEnd(observation) => Some(observation.run),
            Entry::Trial(trial) => Some(trial.run),
            Entry::Attribution(attribution) => Some(attribution.run),
            Entry::Faults(faults) => Some(faults.run),
            Entry::Advice(advice) => Some(advice.run),
            _ => None,
        });
        match entry {
            Entry::Session(session) => self.session(session)?,
            Entry::Header(header) => {
                self.header = true;
                self.insert("header", fields(&header))?;
            }
            Entry::RunBegin { run, role, target, limit_bytes, cache_state, started_unix_ns } => {
                self.close_open_run()?;
                self.forget(run)?;
                let begun = Observation::begun(run, role, target, cache_state, started_unix_ns);
                self.open = Some(Observation { limit_bytes, ..begun });
            }
            Entry::Series { id, run, process, name, unit, rung } => {
                let series = model::Series { name, process, unit, rung, points: Vec::new() };
                let row = self.add_series(run, &series)?;
                self.ids.insert(id, row);
            }
            Entry::Sample { t_ns, values } => {
                if let Some(open) = &mut self.open {
                    open.wall_seconds = open.wall_seconds.max(t_ns as f64 / 1e9);
                }
                for (id, value) in values {
                    if let Some(row) = self.ids.get(&id) {
                        self.add_sample(*row, t_ns, value)?;
                    }
                }
            }
            Entry::RunEnd(observation) => {
                match &self.open {
                    Some(open) if open.run == observation.run => self.open = None,
                    _ => self.close_open_run()?,
                }
                self.add_run(*observation, true)?;
            }
            Entry::Account { run, account } => {
                let mut json = fields(&account).into();
                remove_nulls(&mut json);
                self.insert("account", Fields::from_iter([("run".into(), run.into()), ("json".into(), json)]))?;
            }
            Entry::Trial(trial) => self.insert("trial", fields(&trial))?,
            Entry::Budget(budget) => {
                if self.tables.contains_key("budget") {
                    self.database.execute("DELETE FROM budget", [])?;
                }
                self.insert("budget", fields(&budget))?;
            }
            Entry::Pages(round) => self.insert("pages", fields(&round))?,
            Entry::Attribution(attribution) => {
                self.insert("attribution", fields(&attribution))?;
            }
            Entry::Faults(faults) => self.insert("faults", fields(&faults))?,
            Entry::Advice(advice) => self.insert("advice", fields(&advice))?,
            Entry::Note(note) => drop(self.database.execute("INSERT INTO note (note) VALUES (?)", [note])?),
            Entry::End => self.ended = true,
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), FillError> {
        if !self.header {
            return Err(FillError::NoHeader);
        }
        self.close_open_run()?;
        let mut meta = self.database.prepare("INSERT INTO meta (key, value) VALUES (?, ?)")?;
        meta.execute(params!["record_version", VERSION.to_string()])?;
        meta.execute(params!["complete", if self.ended { "1" } else { "0" }])?;
        Ok(())
    }

    fn session(&mut self, session: Session) -> rusqlite::Result<()> {
        self.close_open_run()?;
        if self.session.as_ref().is_none_or(|(_, last)| *last != session) {
            self.insert("session", fields(&session))?;
            self.session = Some((self.database.last_insert_rowid(), session));
        }
        Ok(())
    }

    /// A run that was cut off is made of its samples.
    fn close_open_run(&mut self) -> rusqlite::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.add_run(open, false)
    }

    /// A run that begins again replaces the one that had its number, as after a resumption.
    fn forget(&mut self, run: u32) -> rusqlite::Result<()> {
        self.ids.clear();
        if self.begun.insert(run) {
            return Ok(());
        }
        let of_series = "DELETE FROM sample WHERE series IN (SELECT id FROM series WHERE run = ?)";
        self.database.prepare_cached(of_series)?.execute([run])?;
        let of_run = [
            "run",
            "series",
            "process",
            "file_demand",
            "foreign_file",
            "account",
            "trial",
            "attribution",
            "faults",
            "advice",
        ];
        for table in of_run.into_iter().filter(|table| self.tables.contains_key(table)) {
            self.database.prepare_cached(&format!("DELETE FROM {table} WHERE run = ?"))?.execute([run])?;
        }
        Ok(())
    }

    fn add_run(&mut self, mut observation: Observation, finished: bool) -> rusqlite::Result<()> {
        let run = observation.run;
        for series in &observation.series {
            let row = self.add_series(run, series)?;
            for (t_ns, value) in &series.points {
                self.add_sample(row, *t_ns, *value)?;
            }
        }
        for process in &observation.processes {
            let mut row = fields(process);
            row.remove("key");
            row.extend(fields(&process.key));
            row.insert("run".into(), run.into());
            self.insert("process", row)?;
        }
        if let Some(demand) = &mut observation.file_demand {
            let of_run = |mut row: Fields| {
                row.insert("run".into(), run.into());
                row
            };
            for point in demand.points.drain(..) {
                self.insert("file_demand", of_run(fields(&point)))?;
            }
            for file in demand.foreign.drain(..) {
                self.insert("foreign_file", of_run(fields(&file)))?;
            }
        }
        // What has rows of its own is not made into a row of the run first.
        (observation.series, observation.processes) = (Vec::new(), Vec::new());
        let mut row = fields(&observation);
        row.remove("series");
        row.remove("processes");
        if let Some(kept) = row.get_mut("file_demand").and_then(|kept| kept.as_object_mut()) {
            ["points", "foreign"].iter().for_each(|key| drop(kept.remove(*key)));
        }
        row.values_mut().for_each(remove_nulls);
        let own = || self.session.as_ref().map(|(_, session)| (session.host.clone(), session.boot_id.clone()));
        if let Some((host, boot_id)) = observation.origin.map(|origin| (origin.host, origin.boot_id)).or_else(own) {
            row.insert("host".into(), host.into());
            row.insert("boot_id".into(), boot_id.into());
        }
        row.insert("finished".into(), finished.into());
        row.insert("session".into(), self.session.as_ref().map(|(id, _)| *id).into());
        self.insert("run", row)
    }

    fn add_series(&mut self, run: u32, series: &model::Series) -> rusqlite::Result<i64> {
        self.last_id += 1;
        let mut row = fields(series);
        row.remove("points");
        row.remove("process");
        row.extend(series.process.iter().flat_map(fields));
        row.insert("id".into(), self.last_id.into());
        row.insert("run".into(), run.into());
        self.insert("series", row)?;
        Ok(self.last_id)
    }

    fn add_sample(&self, series: i64, t_ns: u64, value: f64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO sample (series, t_ns, value) VALUES (?, ?, ?)";
        self.database.prepare_cached(sql)?.execute(params![series, t_ns as i64, value]).map(drop)
    }
}
