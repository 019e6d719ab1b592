//! The time lines in long form: what CSV and Parquet hold.

use model::{Series, Unit};
use record::Record;

/// One value of one series.
pub(crate) struct Row<'a> {
    pub(crate) run: u32,
    pub(crate) series: &'a Series,
    pub(crate) t_seconds: f64,
    pub(crate) value: f64,
}

/// The names of the columns, in order.
pub(crate) const COLUMNS: [&str; 8] = ["run", "series", "unit", "pid", "start_ticks", "t_seconds", "value", "rung"];

/// Every value, by run, series and time.
pub(crate) fn rows(record: &Record) -> impl Iterator<Item = Row<'_>> {
    let series = record.runs.iter().flat_map(|run| run.series.iter().map(|series| (run.run, series)));
    series.flat_map(|(run, series)| {
        let row = move |(t_ns, value): &(u64, f64)| Row { run, series, t_seconds: *t_ns as f64 / 1e9, value: *value };
        series.points.iter().map(row)
    })
}

/// A unit's name, as the record has it.
pub(crate) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Seconds => "seconds",
        Unit::Events => "events",
        Unit::Count => "count",
    }
}
