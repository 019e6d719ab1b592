//! What was decided in a run of `bursar advise`, each decision with its numbers.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use model::{Bytes, Explained};
use serde::Deserialize;

use session::input::{is_dash, name, read};

/// What is asked of the figures of a run.
#[derive(Deserialize)]
struct Stats {
    explained: Vec<Explained>,
}

/// The decisions in what `--stats` wrote; `None`: it is something else, such as a record.
///
/// # Errors
/// Standard input that is something else, for nothing else is read from there.
pub fn of_stats(path: &Path) -> anyhow::Result<Option<Vec<Explained>>> {
    if !is_dash(path) && !begins_as_json(path) {
        return Ok(None);
    }
    let stats: Stats = serde_json::from_str(&read(path)?)
        .with_context(|| format!("{} is not what bursar advise run --stats writes", name(path)))?;
    Ok(Some(stats.explained))
}

/// A record, and anything else of any size, is told from it by one byte. A pipe would be waited for.
fn begins_as_json(path: &Path) -> bool {
    let mut first = [0];
    path.is_file() && File::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok()) && first == *b"{"
}

/// A line for each decision.
pub fn table<'a>(explained: impl IntoIterator<Item = &'a Explained>) -> String {
    let mut explained = explained.into_iter().peekable();
    if explained.peek().is_none() {
        return "nothing was decided\n".into();
    }
    let mut lines = format!(
        "{:>10} {:>7}  {:<28} {:>10}  {:<8} {:>10} {:>10}  why\n",
        "seconds", "process", "range", "size", "action", "cost", "benefit"
    );
    for told in explained {
        let ordinal = told.ordinal.map_or("-".to_string(), |ordinal| ordinal.to_string());
        let _ = writeln!(
            lines,
            "{:>10.6} {:>7}  {:<28} {:>10}  {:<8} {:>10} {:>10}  {}",
            told.seconds,
            told.pid,
            format!("{} {} {ordinal} {}+", told.kind, short(&told.which), Bytes(told.from)),
            Bytes(told.bytes).to_string(),
            told.action,
            time(told.cost_ns),
            time(told.benefit_ns),
            told.why,
        );
    }
    lines
}

/// An object by a few digits of its build-id.
fn short(which: &str) -> String {
    match which.rsplit_once(':') {
        Some((name, id)) => format!("{name}:{}", id.chars().take(8).collect::<String>()),
        None => which.to_string(),
    }
}

/// In the unit that suits it.
fn time(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let unit = units.iter().find(|(unit, _)| ns.abs() >= *unit);
    unit.map_or(format!("{ns:.0} ns"), |(unit, name)| format!("{:.1} {name}", ns / unit))
}

#[cfg(test)]
mod tests {
    use super::{short, time};

    #[test]
    fn an_object_is_told_by_a_few_digits_of_its_build_id() {
        assert_eq!(
            ["27", "-", "libc.so.6:0123456789abcdef", "a:b:-"].map(short),
            ["27", "-", "libc.so.6:01234567", "a:b:-"]
        );
    }

    #[test]
    fn times_are_in_the_unit_that_suits_them() {
        assert_eq!(
            [0.0, 999.0, 89_000.0, 2_100_000.0, 1e9].map(time),
            ["0 ns", "999 ns", "89.0 µs", "2.1 ms", "1.0 s"]
        );
    }
}
