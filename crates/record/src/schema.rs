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
/// how a value is kept: JSON as text, BOOLEAN as 0 or 1, UNSIGNED INTEGER as the same 64 bits.
const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE header (
    kind TEXT, bursar_version TEXT, host TEXT, boot_id TEXT, kernel TEXT, cpus INTEGER, memory_bytes UNSIGNED INTEGER,
    page_bytes UNSIGNED INTEGER, command JSON, directory TEXT, started_unix_ns UNSIGNED INTEGER, placement TEXT,
    swap TEXT, options JSON, more JSON);
CREATE TABLE session (
    id INTEGER PRIMARY KEY, host TEXT, boot_id TEXT, pid_namespace TEXT, pid INTEGER, start_ticks UNSIGNED INTEGER);
CREATE TABLE run (
    run INTEGER PRIMARY KEY, session INTEGER, role TEXT, target JSON, limit_bytes UNSIGNED INTEGER, cache_state TEXT,
    started_unix_ns UNSIGNED INTEGER, finished BOOLEAN, exit JSON, wall_seconds REAL, rusage JSON, kept JSON,
    file_demand JSON, sources JSON, notes JSON, evidence JSON, origin JSON, more JSON);
CREATE TABLE process (
    run INTEGER, boot_id TEXT, pid INTEGER, start_ticks UNSIGNED INTEGER, parent INTEGER, command TEXT,
    started_seconds REAL, lifetime_seconds REAL, max_rss_bytes UNSIGNED INTEGER, user_seconds REAL, system_seconds REAL,
    minor_faults UNSIGNED INTEGER, major_faults UNSIGNED INTEGER, io_delay_seconds REAL, thread_seconds REAL,
    exit_status INTEGER, signal INTEGER, source TEXT, more JSON);
CREATE TABLE series (
    id INTEGER PRIMARY KEY, run INTEGER, host TEXT, boot_id TEXT, pid INTEGER, start_ticks UNSIGNED INTEGER, name TEXT,
    unit TEXT, rung TEXT, more JSON);
CREATE TABLE sample (
    series INTEGER NOT NULL, t_ns INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (series, t_ns)) WITHOUT ROWID;
CREATE TABLE file_demand (run INTEGER, limit_bytes UNSIGNED INTEGER, refault_bytes UNSIGNED INTEGER, more JSON);
CREATE TABLE foreign_file (
    run INTEGER, path TEXT, device UNSIGNED INTEGER, inode UNSIGNED INTEGER, cached_bytes UNSIGNED INTEGER, more JSON);
CREATE TABLE trial (
    run INTEGER, method TEXT, limit_bytes UNSIGNED INTEGER, outcome TEXT, lower_bound BOOLEAN, wall_seconds REAL,
    cpu_seconds REAL, system_seconds REAL, stall_seconds REAL, runtime_ratio REAL, predicted_ratio REAL, io_wait_share REAL,
    refaults UNSIGNED INTEGER, peak_charge_bytes UNSIGNED INTEGER, breakdown JSON, exit_status INTEGER, why TEXT,
    nodes JSON, more JSON);
CREATE TABLE budget (
    budget_bytes UNSIGNED INTEGER, smallest_passing_bytes UNSIGNED INTEGER, largest_failing_bytes UNSIGNED INTEGER,
    margin_bytes UNSIGNED INTEGER, confident BOOLEAN, reason TEXT, slowdown_target REAL, reference_seconds REAL,
    reference_stddev_seconds REAL, run_times_used REAL, compare_run_times REAL, floor_bytes UNSIGNED INTEGER,
    placement TEXT, swap TEXT, fast_tier TEXT, cache_state TEXT, methods JSON, trials JSON, nodes JSON, doubts JSON,
    file_demand JSON, notes JSON, more JSON);
CREATE TABLE pages (
    t_ns UNSIGNED INTEGER, seconds REAL, tracking BOOLEAN, new_phase BOOLEAN, tracked_bytes UNSIGNED INTEGER,
    touched_bytes UNSIGNED INTEGER, file_bytes UNSIGNED INTEGER, file_touched_bytes UNSIGNED INTEGER,
    lost_events UNSIGNED INTEGER, wss_bytes UNSIGNED INTEGER, first_touches_per_second REAL,
    blind_below UNSIGNED INTEGER, blind_bytes UNSIGNED INTEGER, misses JSON, heat JSON, ages JSON, signals JSON,
    overhead JSON, one_in UNSIGNED INTEGER, interval REAL, rung TEXT, more JSON);
CREATE TABLE attribution (
    run INTEGER PRIMARY KEY, \"by\" TEXT, rung TEXT, ranks INTEGER, total_peak_bytes UNSIGNED INTEGER,
    unattributed_peak_bytes UNSIGNED INTEGER, allocator_retained_peak_bytes UNSIGNED INTEGER,
    not_looked_at_bytes UNSIGNED INTEGER, without_library JSON, components JSON,
    total JSON, unattributed JSON, allocator_retained JSON, own JSON, per_rank JSON, functions JSON, init JSON,
    phases JSON, libraries JSON, comm_matrix JSON, other_processes JSON, notes JSON, more JSON);
CREATE TABLE faults (
    run INTEGER PRIMARY KEY, beside TEXT, rung TEXT, kinds JSON, overall JSON, unfinished_count UNSIGNED INTEGER,
    untimed_count UNSIGNED INTEGER, tracer JSON, moment_seconds REAL, moments JSON, slowest JSON, notes JSON, more JSON);
CREATE TABLE advice (
    run INTEGER PRIMARY KEY, huge_share REAL, promoted UNSIGNED INTEGER, demoted UNSIGNED INTEGER,
    populated_bytes UNSIGNED INTEGER, decisions UNSIGNED INTEGER, cpu_seconds REAL, explained JSON, more JSON);
CREATE TABLE account (run INTEGER PRIMARY KEY, json JSON NOT NULL);
CREATE TABLE note (note TEXT);
CREATE VIEW figure AS
    SELECT account.run AS run, replace(substr(tree.fullkey, 3), char(34), '') AS name, CAST(tree.atom AS REAL) AS value
    FROM account, json_tree(account.json) AS tree
    WHERE tree.type IN ('integer', 'real') AND tree.fullkey NOT LIKE '%[%';
CREATE VIEW timeline AS
    SELECT series.run AS run, series.name AS name, series.unit AS unit, series.pid AS pid,
        series.start_ticks AS start_ticks, sample.t_ns / 1e9 AS t_seconds, sample.value AS value, series.rung AS rung,
        series.host AS host
    FROM sample JOIN series ON series.id = sample.series;
CREATE VIEW method AS
    SELECT json_extract(row.value, '$.name') AS name,
        CAST(json_extract(row.value, '$.memory_bytes') AS INTEGER) AS memory_bytes,
        CAST(json_extract(row.value, '$.amplification') AS REAL) AS amplification,
        CAST(json_extract(row.value, '$.runs') AS INTEGER) AS runs,
        CAST(json_extract(row.value, '$.runtime_ratio') AS REAL) AS runtime_ratio,
        CAST(json_extract(row.value, '$.runtime_stddev_seconds') AS REAL) AS runtime_stddev_seconds,
        CAST(json_extract(row.value, '$.predicted_ratio') AS REAL) AS predicted_ratio,
        CAST(json_extract(row.value, '$.io_wait_share') AS REAL) AS io_wait_share,
        CAST(json_extract(row.value, '$.performance') AS REAL) AS performance,
        CAST(json_extract(row.value, '$.performance_per_gb') AS REAL) AS performance_per_gb,
        json_extract(row.value, '$.outcome') AS outcome,
        CAST(json_extract(row.value, '$.lower_bound') AS INTEGER) AS lower_bound
    FROM budget, json_each(budget.methods) AS row;
CREATE VIEW component AS
    SELECT attribution.run AS run, CAST(json_extract(rank.value, '$.world') AS INTEGER) AS world,
        CAST(json_extract(rank.value, '$.rank') AS INTEGER) AS rank,
        json_extract(rank.value, '$.host') AS host, CAST(json_extract(rank.value, '$.pid') AS INTEGER) AS pid,
        row.key AS name, CAST(json_extract(row.value, '$.peak_bytes') AS INTEGER) AS peak_bytes,
        CAST(json_extract(row.value, '$.peak_pss_bytes') AS INTEGER) AS peak_pss_bytes,
        CAST(json_extract(row.value, '$.at_end_bytes') AS INTEGER) AS at_end_bytes
    FROM attribution, json_each(attribution.per_rank) AS rank, json_each(rank.value, '$.components') AS row;
CREATE VIEW function AS
    SELECT attribution.run AS run, json_extract(row.value, '$.name') AS name,
        json_extract(row.value, '$.component') AS component,
        CAST(json_extract(row.value, '$.calls') AS INTEGER) AS calls,
        CAST(json_extract(row.value, '$.grew_bytes') AS INTEGER) AS grew_bytes,
        CAST(json_extract(row.value, '$.shrank_bytes') AS INTEGER) AS shrank_bytes,
        CAST(json_extract(row.value, '$.seconds') AS REAL) AS seconds
    FROM attribution, json_each(attribution.functions) AS row;
CREATE VIEW fault_kind AS
    SELECT faults.run AS run, row.key AS kind, CAST(json_extract(row.value, '$.count') AS INTEGER) AS count,
        CAST(json_extract(row.value, '$.p50_us') AS REAL) AS p50_us,
        CAST(json_extract(row.value, '$.p99_us') AS REAL) AS p99_us,
        CAST(json_extract(row.value, '$.p999_us') AS REAL) AS p999_us,
        CAST(json_extract(row.value, '$.p99999_us') AS REAL) AS p99999_us,
        CAST(json_extract(row.value, '$.max_us') AS REAL) AS max_us,
        CAST(json_extract(row.value, '$.sum_seconds') AS REAL) AS sum_seconds,
        CAST(json_extract(row.value, '$.tracer_cost_us') AS REAL) AS tracer_cost_us
    FROM faults, json_each(faults.kinds) AS row;
CREATE VIEW decision AS
    SELECT advice.run AS run, CAST(json_extract(row.value, '$.pid') AS INTEGER) AS pid,
        CAST(json_extract(row.value, '$.seconds') AS REAL) AS seconds, json_extract(row.value, '$.kind') AS kind,
        json_extract(row.value, '$.which') AS which, CAST(json_extract(row.value, '$.ordinal') AS INTEGER) AS ordinal,
        CAST(json_extract(row.value, '$.from') AS INTEGER) AS from_bytes,
        CAST(json_extract(row.value, '$.bytes') AS INTEGER) AS bytes, json_extract(row.value, '$.action') AS action,
        json_extract(row.value, '$.why') AS why, CAST(json_extract(row.value, '$.cost_ns') AS REAL) AS cost_ns,
        CAST(json_extract(row.value, '$.benefit_ns') AS REAL) AS benefit_ns
    FROM advice, json_each(advice.explained) AS row;
";

/// Makes the tables in an empty database.
pub(crate) fn create(database: &Connection) -> rusqlite::Result<()> {
    database.execute_batch(TABLES)?;
    database.pragma_update(None, "application_id", APPLICATION)?;
    database.pragma_update(None, "user_version", VERSION)
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
    Ok(tables)
}
