//! The questions that `docs/record.md` shows, asked as the sqlite3 shell asks them.

mod common;

use common::{observation, others, trial, write};
use model::{DemandPoint, FileDemand, Method, MethodRow, Observation, ProcessKey, ProcessRecord, Trial};
use record::{Entry, Record, Writer};
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::{TempDir, tempdir};

fn ask(database: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = database.prepare(sql).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row| (0..columns).map(|i| row.get(i)).collect();
    statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

fn sealed(entries: &[Entry]) -> (TempDir, Connection) {
    let folder = tempdir().unwrap();
    let path = write(&folder.path().join("job.bursar"), entries).seal().unwrap();
    let database = Connection::open(path).unwrap();
    (folder, database)
}

#[test]
fn the_figures_and_time_lines_are_there_for_sql() {
    let key = ProcessKey { pid: 42, start_ticks: u64::MAX };
    let process = ProcessRecord {
        key,
        parent: Some(1),
        command: "sort".into(),
        started_seconds: Some(0.0),
        lifetime_seconds: None,
        max_rss_bytes: Some(4096),
        user_seconds: None,
        system_seconds: None,
        minor_faults: None,
        major_faults: None,
        io_delay_seconds: None,
        thread_seconds: None,
        exit_status: Some(0),
        signal: None,
        largest_seen: None,
        own: None,
        source: "wait4".into(),
    };
    let points =
        vec![DemandPoint { limit_bytes: 10, refault_bytes: 5 }, DemandPoint { limit_bytes: 20, refault_bytes: 0 }];
    let file_demand = Some(FileDemand { points, ..Default::default() });
    let run = Observation { processes: vec![process], file_demand, ..observation(0) };
    let (_folder, database) = sealed(&[Entry::of_run(&run), others()].concat());

    let peak = ask(&database, "SELECT max(value) FROM timeline WHERE run = 0 AND name = 'charge_bytes'");
    assert_eq!(peak, [[Value::Real(16384.0)]]);
    let moments = ask(&database, "SELECT t_seconds FROM timeline ORDER BY t_seconds DESC LIMIT 1");
    assert_eq!(moments, [[Value::Real(0.4)]]);
    let figure = ask(&database, "SELECT value FROM figure WHERE run = 0 AND name = 'peak_charge_bytes'");
    assert_eq!(figure, [[Value::Real(1048576.0)]]);
    let nested = ask(&database, "SELECT value FROM figure WHERE name = 'peak_breakdown.heap'");
    assert_eq!(nested, [[Value::Real(7.0)]]);
    let processes = ask(&database, "SELECT command, max_rss_bytes, lifetime_seconds FROM process");
    assert_eq!(processes, [[Value::Text("sort".into()), Value::Integer(4096), Value::Null]]);
    let demand = ask(&database, "SELECT limit_bytes, refault_bytes FROM file_demand WHERE run = 0");
    assert_eq!(demand[0], [Value::Integer(10), Value::Integer(5)]);
    let outcome = ask(&database, "SELECT outcome, runtime_ratio, lower_bound FROM trial");
    assert_eq!(outcome, [[Value::Text("too-slow".into()), Value::Real(1.5), Value::Integer(1)]]);
    let heap = ask(&database, "SELECT json_extract(breakdown, '$.heap') FROM trial");
    assert_eq!(heap, [[Value::Integer(1)]]);
    let budget = ask(&database, "SELECT budget_bytes, confident, reason FROM budget");
    assert_eq!(budget, [[Value::Integer(1 << 30), Value::Integer(1), Value::Text("because".into())]]);
    let command = ask(&database, "SELECT value FROM header, json_each(header.command) LIMIT 1");
    assert_eq!(command, [[Value::Text("sort".into())]]);
    let meta = ask(&database, "SELECT value FROM meta ORDER BY key");
    assert_eq!(meta, [[Value::Text("1".into())], [Value::Text(record::VERSION.to_string())]]);
    assert_eq!(ask(&database, "PRAGMA integrity_check"), [[Value::Text("ok".into())]]);
}

#[test]
fn the_methods_of_a_budget_are_a_table() {
    let row = MethodRow {
        name: Method::SysMaxRss,
        memory_bytes: Some(1 << 20),
        breakdown: Default::default(),
        amplification: Some(1.5),
        runs: 2,
        runtime_ratio: None,
        runtime_stddev_seconds: None,
        predicted_ratio: None,
        io_wait_share: None,
        performance: None,
        performance_per_gb: None,
        outcome: None,
        enough: Some(true),
        lower_bound: false,
    };
    let budget = model::BudgetReport { methods: vec![row], ..common::budget() };
    let (_folder, database) = sealed(&[Entry::Budget(Box::new(budget))]);
    let methods =
        ask(&database, "SELECT name, memory_bytes, amplification, runtime_ratio, enough, lower_bound FROM method");
    let text = Value::Text("sys-maxrss".into());
    assert_eq!(
        methods,
        [[text, Value::Integer(1 << 20), Value::Real(1.5), Value::Null, Value::Integer(1), Value::Integer(0)]]
    );
}

#[test]
fn components_and_functions_of_an_attribution_are_tables() {
    let (_folder, database) = sealed(&others());
    let components = ask(&database, "SELECT rank, pid, name, peak_bytes, peak_pss_bytes, at_end_bytes FROM component");
    let mpi = Value::Text("mpi".into());
    let figures = [7, 5, 1].map(Value::Integer);
    assert_eq!(components, [[&[Value::Integer(3), Value::Integer(7), mpi.clone()], &figures[..]].concat()]);
    let functions = ask(&database, "SELECT run, name, component, calls FROM function");
    assert_eq!(functions, [[Value::Integer(0), Value::Text("MPI_Send".into()), mpi, Value::Integer(9)]]);
}

#[test]
fn every_field_has_a_column_of_its_own() {
    let method = Some(Method::Bursar);
    let trial = Entry::Trial(Box::new(Trial { method, ..trial(0) }));
    let (_folder, database) = sealed(&[Entry::of_run(&observation(0)), others(), vec![trial]].concat());
    for table in ["header", "run", "process", "series", "file_demand", "foreign_file", "trial", "budget", "attribution"]
    {
        let more = ask(&database, &format!("SELECT more FROM {table} WHERE more IS NOT NULL"));
        assert!(more.is_empty(), "{table}: {more:?}");
    }
}

#[test]
fn what_another_bursar_put_into_the_column_more_survives_a_resumption() {
    let folder = tempdir().unwrap();
    let path = write(&folder.path().join("job.bursar"), &others()).seal().unwrap();
    Connection::open(&path).unwrap().execute_batch("UPDATE trial SET more = '{\"colour\":\"red\"}'").unwrap();
    assert_eq!(Record::open(&path).unwrap().trials, [trial(1)]);
    Writer::resume(&path).unwrap().seal().unwrap();
    assert_eq!(Record::open(&path).unwrap().trials, [trial(1)]);
}

#[test]
fn sealing_a_long_run_needs_little_memory() {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    let folder = tempdir().unwrap();
    let mut writer = write(&folder.path().join("long.bursar"), &Entry::of_run(&observation(0))[..1]);
    let series = |id| Entry::Series {
        id,
        run: 0,
        process: None,
        name: "charge_bytes".into(),
        unit: model::Unit::Bytes,
        rung: "cgroup".into(),
    };
    (0..40).for_each(|id| writer.append(&series(id)).unwrap());
    for t_ns in 0..10_000 {
        let values = (0..40).map(|id| (id, (t_ns * 4096) as f64)).collect();
        writer.append(&Entry::Sample { t_ns: t_ns * 100_000_000, values }).unwrap();
    }
    let before = resident();
    writer.seal().unwrap();
    let after = resident();
    assert!(after < before + 16, "400000 samples: {before} MiB before, {after} MiB after");
}

#[test]
fn every_question_in_the_documentation_has_an_answer() {
    let (_folder, database) = sealed(&[Entry::of_run(&observation(0)), others()].concat());
    let text = include_str!("../../../docs/record.md");
    let blocks: Vec<&str> = text.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let questions: Vec<&str> = blocks.iter().flat_map(|block| block.split(';')).map(str::trim).collect();
    let questions = questions.into_iter().filter(|question| !question.is_empty());
    assert!(questions.clone().count() >= 7);
    questions.for_each(|question| drop(ask(&database, question)));
}

#[test]
fn every_table_view_and_column_is_in_the_documentation() {
    let (_folder, database) = sealed(&others());
    let text = include_str!("../../../docs/record.md");
    let sql =
        "SELECT m.name, c.name, m.type = 'view' OR m.name = 'budget' FROM sqlite_schema m, pragma_table_info(m.name) c";
    for row in ask(&database, sql) {
        let [Value::Text(table), Value::Text(column), Value::Integer(as_elsewhere)] = &row[..] else {
            panic!("{row:?}")
        };
        let line = text.lines().find(|line| line.starts_with(&format!("| `{table}` |")));
        let line = line.unwrap_or_else(|| panic!("table {table} is not documented"));
        let known = line.contains(&format!("`{column}`")) || *as_elsewhere == 1 || column == "more";
        assert!(known, "column {column} of table {table} is not documented");
    }
}
