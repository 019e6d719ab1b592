//! Opens a sealed record, whoever wrote it, so that reading it costs no more than a file of its size can hold.
//!
//! A record comes by mail or lies in a folder that others write. SQLite would run what its schema says: a view in place of a
//! table may compute rows without end. So only ordinary tables with the columns of [`crate::schema`] are read, the number
//! of steps grows with the size of the file, and values are counted against its bytes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Error, Result};
use crate::schema;

/// Enough for the schema of any version, far too little for one that is meant to fill memory.
const SCHEMA_STEPS: u64 = 20_000;
/// A scan takes about two steps for each byte of a row; every table is scanned once or twice.
const STEPS_PER_BYTE: u64 = 16;
const LEAST_STEPS: u64 = 10_000_000;
/// The progress handler is called after this many steps.
const STRIDE: i32 = 1000;
/// The longest statement of a schema: our longest view has 1,200 bytes.
const STATEMENT_BYTES: i32 = 64 << 10;
/// The shortest row: two bytes of the cell's place, its length, its key, the length of its header.
const ROW_BYTES: u64 = 5;

/// Bytes that may still be read from a file. No value is stored in fewer bytes than it has.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: Cell<u64>,
}

impl Allowance {
    /// For a file of this size.
    pub(crate) fn of(file_bytes: u64) -> Allowance {
        Allowance { left: Cell::new(file_bytes) }
    }

    /// Takes a row with values of `bytes` in all; false when the file cannot hold it beside what was read before.
    pub(crate) fn take_row(&self, bytes: u64) -> bool {
        let left = self.left.get().checked_sub(bytes.saturating_add(ROW_BYTES));
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// Opens the tables of a sealed record, to read them; with the size of its file.
pub(crate) fn open(path: &Path) -> Result<(Connection, u64)> {
    open_as(path, path)
}

/// The same of a copy at `path`; errors name the `original`.
pub(crate) fn open_as(path: &Path, original: &Path) -> Result<(Connection, u64)> {
    let io = |cause| Error::Io { path: original.into(), doing: "opened", cause };
    let file_bytes = File::open(path).and_then(|file| file.metadata()).map_err(io)?.len();
    let damaged = |error: rusqlite::Error| Error::Damaged { path: original.into(), what: sentence(&error) };
    let database = confined(path, file_bytes).map_err(damaged)?;
    schema::check(&database, original)?;
    if let Some(what) = foreign_schema(&database).map_err(damaged)? {
        return Err(Error::Damaged { path: original.into(), what });
    }
    allow_steps(&database, steps_for(file_bytes));
    database.authorizer(Some(reads_our_tables));
    Ok((database, file_bytes))
}

/// How many steps reading or filling tables of this many bytes may take.
pub(crate) fn steps_for(bytes: u64) -> u64 {
    LEAST_STEPS.saturating_add(bytes.saturating_mul(STEPS_PER_BYTE))
}

/// From here on, a statement that takes the connection beyond `steps` is interrupted.
pub(crate) fn allow_steps(database: &Connection, steps: u64) {
    let mut calls = steps / STRIDE.unsigned_abs() as u64;
    let ends = move || match calls.checked_sub(1) {
        Some(left) => {
            calls = left;
            false
        }
        None => true,
    };
    database.progress_handler(STRIDE, Some(ends));
}

/// What SQLite said, for people.
pub(crate) fn sentence(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => "reading it takes more steps than a record of its size needs".into(),
        Some(ErrorCode::TooBig) => "it holds a value that is larger than the file".into(),
        _ => error.to_string(),
    }
}

/// Opened without locks, journals and shared memory: a sealed record never changes, and nothing is written beside it.
fn confined(path: &Path, file_bytes: u64) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags_and_vfs(immutable_uri(path), flags, "unix-none")?;
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
    ] {
        database.set_db_config(config, on)?;
    }
    let length = i32::try_from(file_bytes).unwrap_or(i32::MAX).max(STATEMENT_BYTES);
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, length),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, STATEMENT_BYTES),
        (Limit::SQLITE_LIMIT_COLUMN, 100),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 50),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 4),
        (Limit::SQLITE_LIMIT_VDBE_OP, 10_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 20),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 10),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        database.set_limit(limit, most)?;
    }
    allow_steps(&database, SCHEMA_STEPS);
    database.pragma_update(None, "cell_size_check", true)?;
    Ok(database)
}

/// `file:PATH?immutable=1`, every byte of the path that is not plain written as `%XX`.
fn immutable_uri(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let escape = |byte: &u8| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    // Behind `file://` stands the name of a host, which is none.
    let start = if path.is_absolute() { "//" } else { "./" };
    let path: String = path.as_os_str().as_bytes().iter().map(escape).collect();
    format!("file:{start}{path}?immutable=1")
}

/// What the file has in place of our tables, as a sentence; `None`: nothing.
fn foreign_schema(database: &Connection) -> rusqlite::Result<Option<String>> {
    let encoding: String = database.pragma_query_value(None, "encoding", |row| row.get(0))?;
    if encoding != "UTF-8" {
        return Ok(Some("its text is not UTF-8, which no record's is".into()));
    }
    for (what, condition) in
        [("trigger", "type = 'trigger' OR sql LIKE 'create%trigger%'"), ("virtual table", "sql LIKE 'create virtual%'")]
    {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE {condition})");
        if database.query_row(&sql, [], |row| row.get(0))? {
            return Ok(Some(format!("it has a {what}, which no record has")));
        }
    }
    let mut listed = Vec::new();
    database.pragma_query(None, "table_list", |row| {
        let main = row.get::<_, String>("schema")? == "main";
        let name: String = row.get("name")?;
        listed.extend(main.then_some((name, row.get::<_, String>("type")?, row.get::<_, bool>("wr")?)));
        Ok(())
    })?;
    for (name, kind, without_rowid) in listed {
        if kind == "virtual" || kind == "shadow" {
            return Ok(Some(format!("it has a virtual table '{name}', which no record has")));
        }
        let Some((own_name, own)) = schema::tables().get_key_value(name.to_ascii_lowercase().as_str()) else {
            continue;
        };
        if kind != "table" || without_rowid != own.without_rowid {
            return Ok(Some(format!("its '{own_name}' is no table as bursar makes it")));
        }
        if let Some(column) = foreign_column(database, own_name, &own.columns)? {
            return Ok(Some(format!("its table '{own_name}' has a column '{column}' that bursar does not make")));
        }
    }
    Ok(None)
}

/// A column that is computed, or that our table does not have.
fn foreign_column(
    database: &Connection,
    table: &str,
    own: &BTreeMap<String, String>,
) -> rusqlite::Result<Option<String>> {
    let mut foreign = None;
    database.pragma(None, "table_xinfo", table, |row| {
        let (name, hidden): (String, i64) = (row.get("name")?, row.get("hidden")?);
        if hidden != 0 || !own.contains_key(&name) {
            foreign = Some(name);
        }
        Ok(())
    })?;
    Ok(foreign)
}

/// Statements may read our tables, and the columns of our tables may be looked up. No function, no view, no other table.
fn reads_our_tables(context: AuthContext) -> Authorization {
    let ours = |name: &str| name == "sqlite_master" || schema::tables().contains_key(name);
    match context.action {
        AuthAction::Select => Authorization::Allow,
        AuthAction::Read { table_name, .. } if ours(table_name) && context.accessor.is_none() => Authorization::Allow,
        AuthAction::Pragma { pragma_name: "table_info" | "page_count" | "page_size", .. } => Authorization::Allow,
        _ => Authorization::Deny,
    }
}
