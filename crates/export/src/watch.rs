//! The rounds of `bursar watch` as a run with time lines, for the formats that hold nothing else.

use std::borrow::Cow;

use model::{Observation, PagesRound, RunRole, Series, Target, Unit};
use record::Record;

/// The record with its rounds as a run; the record itself where it has runs.
pub(crate) fn with_rounds(record: &Record) -> Cow<'_, Record> {
    if !record.runs.is_empty() || record.pages.is_empty() {
        return Cow::Borrowed(record);
    }
    let begun = Observation::begun(0, RunRole::Plain, Target::Command, String::new(), record.header.started_unix_ns);
    let wall_seconds = record.pages.last().map_or(0.0, |round| round.t_ns as f64 / 1e9);
    let run = Observation { series: series(&record.pages), wall_seconds, ..begun };
    let mut record = record.clone();
    record.runs.push(run);
    Cow::Owned(record)
}

/// Nothing was measured while tracking was off, so those rounds have no value.
fn series(rounds: &[PagesRound]) -> Vec<Series> {
    let line = |name: &str, value: fn(&PagesRound) -> Option<u64>| {
        let points: Vec<_> = rounds.iter().filter_map(|round| Some((round.t_ns, value(round)? as f64))).collect();
        let rung = rounds.first().map(|round| round.rung.clone()).unwrap_or_default();
        (!points.is_empty()).then(|| Series { name: name.into(), process: None, unit: Unit::Bytes, rung, points })
    };
    [
        line("working_set_bytes", |round| round.wss_bytes),
        line("tracked_bytes", |round| round.tracking.then_some(round.tracked_bytes)),
        line("touched_bytes", |round| round.tracking.then_some(round.touched_bytes)),
        line("file_bytes", |round| round.file_bytes),
        line("file_touched_bytes", |round| round.file_touched_bytes),
    ]
    .into_iter()
    .flatten()
    .collect()
}
