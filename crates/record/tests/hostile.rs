//! Sealed records that somebody made to harm whoever opens them.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{header, observation, others, write};
use record::{Entry, Error, Record, Writer};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

/// A sealed record after `sql`.
fn record_after(sql: &str) -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("x.bursar");
    write(&path, &[Entry::of_run(&observation(0)), others()].concat()).seal().unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (folder, path)
}

fn is_refused(sql: &str, because: &str) {
    let (folder, path) = record_after(sql);
    let before = fs::read(&path).unwrap();
    for error in [Record::open(&path).unwrap_err(), Writer::resume(&path).unwrap_err()] {
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(because), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left beside it");
}

fn is_read(sql: &str) {
    let (_folder, path) = record_after(sql);
    let record = Record::open(&path).unwrap();
    assert_eq!((&record.header, &record.runs), (&header(), &vec![observation(0)]));
}

#[test]
fn refuses_views_in_place_of_tables() {
    for table in ["header", "run", "note", "sample", "meta", "trial", "pages", "account"] {
        let bomb = format!("DROP TABLE {table}; CREATE VIEW {table} AS SELECT zeroblob(300000000) AS run, 1 AS t_ns");
        is_refused(&bomb, "no table as bursar makes it");
        let endless = format!(
            "DROP TABLE {table}; CREATE VIEW {table} AS
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS run FROM n"
        );
        is_refused(&endless, "no table as bursar makes it");
    }
    is_refused("DROP TABLE note; CREATE VIEW Note AS SELECT 'x' AS note", "no table as bursar makes it");
}

#[test]
fn refuses_columns_that_bursar_does_not_make() {
    let computed = "ALTER TABLE note ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(100000000))) VIRTUAL";
    is_refused(computed, "a column 'more' that bursar does not make");
    let in_place = "DROP TABLE note; CREATE TABLE note (x TEXT, note TEXT AS (hex(zeroblob(100000000))))";
    is_refused(in_place, "that bursar does not make");
    is_refused("ALTER TABLE trial ADD COLUMN rowid TEXT", "a column 'rowid' that bursar does not make");
    is_refused(
        "DROP TABLE note; CREATE TABLE note (note TEXT PRIMARY KEY) WITHOUT ROWID",
        "no table as bursar makes it",
    );
}

#[test]
fn refuses_triggers_and_virtual_tables() {
    is_refused("CREATE TRIGGER t AFTER INSERT ON note BEGIN SELECT 1; END", "it has a trigger");
    is_refused("DROP TABLE note; CREATE VIRTUAL TABLE note USING fts5(words)", "it has a virtual table");
    is_refused("CREATE VIRTUAL TABLE other USING rtree(a, b, c)", "it has a virtual table");
}

#[test]
fn refuses_values_that_the_file_cannot_hold() {
    // each row of a few bytes has a value of 60 KB, by the default of its column
    let long = "x".repeat(60_000);
    let by_default = format!(
        "DROP TABLE foreign_file; CREATE TABLE foreign_file (run INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) INSERT INTO foreign_file SELECT 0 FROM n;
         ALTER TABLE foreign_file ADD COLUMN path TEXT DEFAULT '{long}'"
    );
    is_refused(&by_default, "more rows than the file can hold");
}

#[test]
fn refuses_rows_that_share_their_pages() {
    // each table of the schema is the largest one once more
    let shared = "CREATE TABLE big (x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) INSERT INTO note SELECT hex(zeroblob(500)) FROM n;
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'note')
             WHERE name IN ('foreign_file', 'file_demand', 'process');";
    let (_folder, path) = record_after(shared);
    let error = Record::open(&path).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn refuses_a_schema_that_fills_memory() {
    let many: String = (0..4_000).map(|i| format!("CREATE TABLE t{i} (a);")).collect();
    is_refused(&format!("BEGIN; {many} COMMIT"), "more steps than a record of its size needs");
    let columns: Vec<String> = (0..1500).map(|i| format!("c{i}")).collect();
    let (_folder, path) = record_after(&format!("CREATE TABLE wide ({})", columns.join(",")));
    assert!(matches!(Record::open(&path), Err(Error::Damaged { .. })));
}

#[test]
fn refuses_text_in_another_encoding() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("x.bursar");
    let database = Connection::open(&path).unwrap();
    database.execute_batch("PRAGMA encoding = 'UTF-16'; CREATE TABLE note (note TEXT)").unwrap();
    database.execute_batch("PRAGMA application_id = 0x62757273; PRAGMA user_version = 7").unwrap();
    drop(database);
    let error = Record::open(&path).unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

#[test]
fn reads_records_with_views_indexes_and_tables_of_their_owner() {
    is_read("CREATE VIEW mine AS SELECT count(*) AS n FROM sample");
    is_read("CREATE INDEX mine ON process (pid); CREATE INDEX other ON sample (value); ANALYZE");
    is_read("CREATE INDEX mine ON run (abs(run))");
    is_read("CREATE TABLE mine (x BLOB); INSERT INTO mine VALUES (zeroblob(100000))");
}

#[test]
fn writes_nothing_beside_a_record_in_wal_mode() {
    let (folder, path) = record_after("PRAGMA journal_mode = WAL");
    let _ = Record::open(&path);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}

#[test]
fn reads_records_with_any_name() {
    let (folder, path) = record_after("");
    for name in ["a b%41?mode=memory#x.bursar", "ä\u{1b}\n.bursar", "file:x.bursar"] {
        let named = folder.path().join(name);
        fs::copy(&path, &named).unwrap();
        assert_eq!(Record::open(&named).unwrap().header, header(), "{name}");
    }
    let doubled = PathBuf::from(format!("/{}", path.display()));
    assert_eq!(Record::open(&doubled).unwrap().header, header());
}

#[test]
fn a_pipe_is_no_record_and_is_not_waited_for() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(matches!(Record::open(&path), Err(Error::NotARecord(_))));
    assert!(matches!(Record::open(Path::new("/dev/null")), Err(Error::NotARecord(_))));
}

#[test]
fn refuses_a_framed_record_that_forgets_its_rows_without_end() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("x.bursar");
    let mut writer = write(&path, &Entry::of_run(&observation(7)));
    let mut rows = observation(7);
    rows.file_demand = Some(model::FileDemand {
        points: (0..20_000).map(|i| model::DemandPoint { limit_bytes: i, refault_bytes: 0 }).collect(),
        ..Default::default()
    });
    for entry in Entry::of_run(&rows) {
        writer.append(&entry).unwrap();
    }
    for _ in 0..600 {
        writer.append(&Entry::begin(&observation(0))).unwrap();
    }
    let error = Record::open(&path).unwrap_err();
    assert!(error.to_string().contains("more steps than a record of its size needs"), "{error}");
}
