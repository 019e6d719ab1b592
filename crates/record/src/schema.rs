//! The tables of a sealed record. `docs/record.md` describes them; a change raises [`crate::VERSION`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::frame::VERSION;
use crate::guard;

/// Marks the SQLite file as a bursar record: "burs".
const APPLICATION: u32 = u32::from_be_bytes(*b"burs");

/// Columns are named as the fields of the types in `model`, which the reading and writing rely upon. The declared types say
/// how a value is kept: JSON as text, BOOLEAN as 0 or 1, UINT as the same 64 bits. The file holds this text as it is, so the
/// statements have no line breaks and no indentation.
const TABLES: &str = "\
    CREATE TABLE meta (key TEXT NOT NULL, value TEXT NOT NULL); \
    CREATE TABLE header ( \
        kind TEXT, bursar_version TEXT, host TEXT, boot_id TEXT, kernel TEXT, cpus INTEGER, memory_bytes UINT, \
        page_bytes UINT, command JSON, directory TEXT, started_unix_ns UINT, placement TEXT, \
        swap TEXT, options JSON, more JSON); \
    CREATE TABLE session ( \
        id INTEGER PRIMARY KEY, host TEXT, boot_id TEXT, pid_namespace TEXT, pid INTEGER, start_ticks UINT); \
    CREATE TABLE run ( \
        run INTEGER PRIMARY KEY, session INTEGER, host TEXT, boot_id TEXT, role TEXT, target JSON, limit_bytes UINT, cache_state TEXT, \
        started_unix_ns UINT, finished BOOLEAN, exit JSON, wall_seconds REAL, rusage JSON, kept JSON, \
        file_demand JSON, sources JSON, notes JSON, evidence JSON, origin JSON, more JSON); \
    CREATE TABLE process ( \
        run INTEGER, pid INTEGER, start_ticks UINT, parent INTEGER, command TEXT, \
        started_seconds REAL, lifetime_seconds REAL, max_rss_bytes UINT, user_seconds REAL, system_seconds REAL, \
        minor_faults UINT, major_faults UINT, io_delay_seconds REAL, thread_seconds REAL, \
        exit_status INTEGER, signal INTEGER, source TEXT, more JSON); \
    CREATE TABLE series ( \
        id INTEGER PRIMARY KEY, run INTEGER, pid INTEGER, start_ticks UINT, name TEXT, \
        unit TEXT, rung TEXT, more JSON); \
    CREATE TABLE sample ( \
        series INTEGER NOT NULL, t_ns INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (series, t_ns)) WITHOUT ROWID; \
    CREATE TABLE file_demand (run INTEGER, limit_bytes UINT, refault_bytes UINT, more JSON); \
    CREATE TABLE foreign_file ( \
        run INTEGER, path TEXT, device UINT, inode UINT, cached_bytes UINT, more JSON); \
    CREATE TABLE account (run INTEGER PRIMARY KEY, json JSON NOT NULL); \
    CREATE TABLE note (note TEXT); \
    CREATE VIEW figure AS \
        SELECT run, replace(substr(fullkey, 3), char(34), '') AS name, CAST(atom AS REAL) AS value \
        FROM account, json_tree(account.json) WHERE type IN ('integer', 'real') AND fullkey NOT LIKE '%[%'; \
    CREATE VIEW timeline AS \
        SELECT series.run AS run, name, unit, pid, start_ticks, t_ns / 1e9 AS t_seconds, value, rung, host \
        FROM sample JOIN series ON id = series LEFT JOIN run ON run.run = series.run; \
";

/// Tables of which most records have no row, each with the views that read it. They are made for their first row.
const OPTIONAL: [(&str, &str); 6] = [
    (
        "trial",
        "\
    CREATE TABLE trial ( \
        run INTEGER, method TEXT, limit_bytes UINT, outcome TEXT, lower_bound BOOLEAN, wall_seconds REAL, \
        cpu_seconds REAL, system_seconds REAL, stall_seconds REAL, runtime_ratio REAL, predicted_ratio REAL, io_wait_share REAL, \
        refaults UINT, peak_charge_bytes UINT, breakdown JSON, exit_status INTEGER, why TEXT, \
        nodes JSON, more JSON); \
    ",
    ),
    (
        "budget",
        "\
    CREATE TABLE budget ( \
        budget_bytes UINT, smallest_passing_bytes UINT, largest_failing_bytes UINT, \
        margin_bytes UINT, confident BOOLEAN, reason TEXT, slowdown_target REAL, reference_seconds REAL, \
        reference_stddev_seconds REAL, run_times_used REAL, compare_run_times REAL, floor_bytes UINT, \
        placement TEXT, swap TEXT, fast_tier TEXT, setting TEXT, cache_state TEXT, methods JSON, trials JSON, nodes JSON, doubts JSON, \
        file_demand JSON, notes JSON, more JSON); \
    CREATE VIEW method AS \
        SELECT json_extract(row.value, '$.name') AS name, \
        CAST(json_extract(row.value, '$.memory_bytes') AS INTEGER) AS memory_bytes, \
        CAST(json_extract(row.value, '$.amplification') AS REAL) AS amplification, \
        CAST(json_extract(row.value, '$.runs') AS INTEGER) AS runs, \
        CAST(json_extract(row.value, '$.runtime_ratio') AS REAL) AS runtime_ratio, \
        CAST(json_extract(row.value, '$.runtime_stddev_seconds') AS REAL) AS runtime_stddev_seconds, \
        CAST(json_extract(row.value, '$.predicted_ratio') AS REAL) AS predicted_ratio, \
        CAST(json_extract(row.value, '$.io_wait_share') AS REAL) AS io_wait_share, \
        CAST(json_extract(row.value, '$.performance') AS REAL) AS performance, \
        CAST(json_extract(row.value, '$.performance_per_gb') AS REAL) AS performance_per_gb, \
        json_extract(row.value, '$.outcome') AS outcome, \
        CAST(json_extract(row.value, '$.enough') AS INTEGER) AS enough, \
        CAST(json_extract(row.value, '$.lower_bound') AS INTEGER) AS lower_bound \
        FROM budget, json_each(budget.methods) AS row; \
    ",
    ),
    (
        "pages",
        "\
    CREATE TABLE pages ( \
        t_ns UINT, seconds REAL, tracking BOOLEAN, new_phase BOOLEAN, tracked_bytes UINT, \
        touched_bytes UINT, file_bytes UINT, file_touched_bytes UINT, \
        lost_events UINT, wss_bytes UINT, first_touches_per_second REAL, \
        blind_below UINT, blind_bytes UINT, misses JSON, heat JSON, ages JSON, signals JSON, \
        overhead JSON, one_in UINT, interval REAL, rung TEXT, more JSON); \
    ",
    ),
    (
        "attribution",
        "\
    CREATE TABLE attribution ( \
        run INTEGER PRIMARY KEY, \"by\" TEXT, rung TEXT, ranks INTEGER, total_peak_bytes UINT, \
        unattributed_peak_bytes UINT, allocator_retained_peak_bytes UINT, \
        not_looked_at_bytes UINT, without_library JSON, components JSON, \
        total JSON, unattributed JSON, allocator_retained JSON, own JSON, per_rank JSON, functions JSON, init JSON, \
        phases JSON, libraries JSON, comm_matrix JSON, other_processes JSON, notes JSON, more JSON); \
    CREATE VIEW component AS \
        SELECT attribution.run AS run, CAST(json_extract(rank.value, '$.world') AS INTEGER) AS world, \
        CAST(json_extract(rank.value, '$.rank') AS INTEGER) AS rank, \
        json_extract(rank.value, '$.host') AS host, CAST(json_extract(rank.value, '$.pid') AS INTEGER) AS pid, \
        row.key AS name, CAST(json_extract(row.value, '$.peak_bytes') AS INTEGER) AS peak_bytes, \
        CAST(json_extract(row.value, '$.peak_pss_bytes') AS INTEGER) AS peak_pss_bytes, \
        CAST(json_extract(row.value, '$.at_end_bytes') AS INTEGER) AS at_end_bytes \
        FROM attribution, json_each(attribution.per_rank) AS rank, json_each(rank.value, '$.components') AS row; \
    CREATE VIEW function AS \
        SELECT attribution.run AS run, json_extract(row.value, '$.name') AS name, \
        json_extract(row.value, '$.component') AS component, \
        CAST(json_extract(row.value, '$.calls') AS INTEGER) AS calls, \
        CAST(json_extract(row.value, '$.grew_bytes') AS INTEGER) AS grew_bytes, \
        CAST(json_extract(row.value, '$.shrank_bytes') AS INTEGER) AS shrank_bytes, \
        CAST(json_extract(row.value, '$.seconds') AS REAL) AS seconds \
        FROM attribution, json_each(attribution.functions) AS row; \
    ",
    ),
    (
        "faults",
        "\
    CREATE TABLE faults ( \
        run INTEGER PRIMARY KEY, beside TEXT, rung TEXT, kinds JSON, overall JSON, unfinished_count UINT, \
        untimed_count UINT, tracer JSON, moment_seconds REAL, moments JSON, slowest JSON, notes JSON, more JSON); \
    CREATE VIEW fault_kind AS \
        SELECT faults.run AS run, row.key AS kind, CAST(json_extract(row.value, '$.count') AS INTEGER) AS count, \
        CAST(json_extract(row.value, '$.p50_us') AS REAL) AS p50_us, \
        CAST(json_extract(row.value, '$.p99_us') AS REAL) AS p99_us, \
        CAST(json_extract(row.value, '$.p999_us') AS REAL) AS p999_us, \
        CAST(json_extract(row.value, '$.p99999_us') AS REAL) AS p99999_us, \
        CAST(json_extract(row.value, '$.max_us') AS REAL) AS max_us, \
        CAST(json_extract(row.value, '$.sum_seconds') AS REAL) AS sum_seconds, \
        CAST(json_extract(row.value, '$.tracer_cost_us') AS REAL) AS tracer_cost_us \
        FROM faults, json_each(faults.kinds) AS row; \
    ",
    ),
    (
        "advice",
        "\
    CREATE TABLE advice ( \
        run INTEGER PRIMARY KEY, huge_share REAL, promoted UINT, demoted UINT, \
        populated_bytes UINT, decisions UINT, cpu_seconds REAL, explained JSON, more JSON); \
    CREATE VIEW decision AS \
        SELECT advice.run AS run, CAST(json_extract(row.value, '$.pid') AS INTEGER) AS pid, \
        CAST(json_extract(row.value, '$.seconds') AS REAL) AS seconds, json_extract(row.value, '$.kind') AS kind, \
        json_extract(row.value, '$.which') AS which, CAST(json_extract(row.value, '$.ordinal') AS INTEGER) AS ordinal, \
        CAST(json_extract(row.value, '$.from') AS INTEGER) AS from_bytes, \
        CAST(json_extract(row.value, '$.bytes') AS INTEGER) AS bytes, json_extract(row.value, '$.action') AS action, \
        json_extract(row.value, '$.why') AS why, CAST(json_extract(row.value, '$.cost_ns') AS REAL) AS cost_ns, \
        CAST(json_extract(row.value, '$.benefit_ns') AS REAL) AS benefit_ns \
        FROM advice, json_each(advice.explained) AS row; \
    ",
    ),
];

/// Columns that older versions have.
const FORMER_COLUMNS: [(&str, &str); 3] = [("series", "host"), ("series", "boot_id"), ("process", "boot_id")];

/// Makes the tables of every record in an empty database.
pub(crate) fn create(database: &Connection) -> rusqlite::Result<()> {
    database.execute_batch(TABLES)?;
    database.pragma_update(None, "application_id", APPLICATION)?;
    database.pragma_update(None, "user_version", VERSION)
}

/// Whether a record without rows of this table lacks the table.
pub(crate) fn is_optional(table: &str) -> bool {
    OPTIONAL.iter().any(|(name, _)| *name == table)
}

/// Makes the table, if it is none of those that [`create`] makes.
pub(crate) fn create_optional(database: &Connection, table: &str) -> rusqlite::Result<()> {
    OPTIONAL.iter().filter(|(name, _)| *name == table).try_for_each(|(_, sql)| database.execute_batch(sql))
}

/// Refuses what is not a record, and records of a later version.
pub(crate) fn check(database: &Connection, path: &Path) -> Result<()> {
    let pragma = |name| database.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let damaged = |error: rusqlite::Error| Error::Damaged { path: path.into(), what: guard::sentence(&error) };
    let (application, found) = (pragma("application_id").map_err(damaged)?, pragma("user_version").map_err(damaged)?);
    match found {
        _ if application != APPLICATION => Err(Error::NotARecord(path.into())),
        0 => Err(Error::NotARecord(path.into())),
        found if found > VERSION => Err(Error::Newer { path: path.into(), found }),
        _ => Ok(()),
    }
}

/// A table of ours.
#[derive(Debug)]
pub(crate) struct OwnTable {
    /// Declared type by name.
    pub(crate) columns: BTreeMap<String, String>,
    pub(crate) without_rowid: bool,
}

/// Our tables by name.
pub(crate) fn tables() -> &'static BTreeMap<String, OwnTable> {
    static OWN: OnceLock<BTreeMap<String, OwnTable>> = OnceLock::new();
    OWN.get_or_init(|| listed().unwrap_or_default())
}

fn listed() -> rusqlite::Result<BTreeMap<String, OwnTable>> {
    let database = Connection::open_in_memory()?;
    create(&database)?;
    OPTIONAL.iter().try_for_each(|(_, sql)| database.execute_batch(sql))?;
    let mut tables = BTreeMap::new();
    database.pragma_query(None, "table_list", |row| {
        let (name, kind): (String, String) = (row.get("name")?, row.get("type")?);
        if kind == "table" && !name.starts_with("sqlite_") {
            tables.insert(name, OwnTable { columns: BTreeMap::new(), without_rowid: row.get("wr")? });
        }
        Ok(())
    })?;
    for (name, table) in &mut tables {
        database.pragma(None, "table_info", name, |row| {
            table.columns.insert(row.get("name")?, row.get("type")?);
            Ok(())
        })?;
    }
    for (name, column) in FORMER_COLUMNS {
        tables.entry(name.into()).and_modify(|table| drop(table.columns.insert(column.into(), "TEXT".into())));
    }
    Ok(tables)
}
