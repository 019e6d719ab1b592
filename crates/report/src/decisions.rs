//! What was decided in a run of `bursar advise`, each decision with its numbers.

use std::fmt::Write;

use model::{Bytes, Explained};
use schemars::JsonSchema;
use serde::Serialize;

/// What `bursar report --json` writes of a record of `bursar advise`.
#[derive(JsonSchema, Serialize)]
pub struct DecisionsJson<'a> {
    /// The decisions, in their order.
    pub explained: &'a [Explained],
}

/// A line for each decision.
pub fn decisions<'a>(explained: impl IntoIterator<Item = &'a Explained>) -> String {
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
