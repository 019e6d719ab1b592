//! What a balancer did in an interval, as a table.

use std::fmt::Write;

use model::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

/// Columns of the name.
const NAME: usize = 28;

/// One interval.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Interval {
    /// Since the beginning.
    #[serde(skip)]
    pub seconds: f64,
    /// What all may have together.
    pub total_bytes: u64,
    /// In their order on the command line.
    pub targets: Vec<Row>,
}

/// One target in it.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Row {
    /// As the target was named.
    pub name: String,
    /// From now on.
    pub limit_bytes: u64,
    /// None: not known yet.
    pub wss_bytes: Option<u64>,
    /// It needs up to `files_in_memory_bytes` more.
    pub wss_is_lower_bound: bool,
    /// Files in memory that its processes have open and have not mapped: their reads and writes are not seen.
    pub files_in_memory_bytes: u64,
    /// With what it had.
    pub misses_per_second: Option<f64>,
    /// More than before; less where it is negative.
    pub moved_bytes: i64,
    /// Why, as a clause.
    pub why: String,
}

/// The first line says whether anything changes.
pub fn table(interval: &Interval, dry_run: bool) -> String {
    let given: u64 = interval.targets.iter().map(|row| row.limit_bytes).sum();
    let changes = match (interval.targets.iter().filter(|row| row.moved_bytes != 0).count(), dry_run) {
        (0, true) => "no limit would change".to_string(),
        (0, false) => "no limit changed".to_string(),
        (1, true) => "1 limit would change".to_string(),
        (1, false) => "1 limit changed".to_string(),
        (more, true) => format!("{more} limits would change"),
        (more, false) => format!("{more} limits changed"),
    };
    let (given, total) = (Bytes(given), Bytes(interval.total_bytes));
    let mut text = format!("{:.0} s: {changes}; together {given} of {total}\n", interval.seconds);
    let mut line = |cells: [&str; 6]| {
        let [name, limit, needs, misses, moved, why] = cells;
        let _ = writeln!(text, "  {name:<NAME$} {limit:>9} {needs:>9} {misses:>9} {moved:>10}  {why}");
    };
    line(["", "limit", "needs", "misses/s", "moved", "why"]);
    for row in &interval.targets {
        let unknown = || "?".to_string();
        let moved = match row.moved_bytes {
            0 => "-".to_string(),
            bytes => format!("{}{}", if bytes > 0 { '+' } else { '-' }, Bytes(bytes.unsigned_abs())),
        };
        line([
            &shortened(&row.name),
            &Bytes(row.limit_bytes).to_string(),
            &row.wss_bytes.map_or_else(unknown, |bytes| {
                format!("{}{}", if row.wss_is_lower_bound { "≥ " } else { "" }, Bytes(bytes))
            }),
            &row.misses_per_second.map_or_else(unknown, |misses| format!("{misses:.0}")),
            &moved,
            &row.why,
        ]);
    }
    text
}

/// The end of a path tells more than its beginning.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME {
        name.into()
    } else {
        format!("…{}", name.chars().skip(length + 1 - NAME).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_tells_each_target_in_a_line() {
        let row = |name: &str, moved_bytes, wss_bytes| Row {
            name: name.into(),
            limit_bytes: 512 << 20,
            wss_bytes,
            wss_is_lower_bound: false,
            files_in_memory_bytes: 0,
            misses_per_second: wss_bytes.map(|_| 7.4),
            moved_bytes,
            why: "because".into(),
        };
        let long = "/sys/fs/cgroup/machine.slice/some-very-long.scope";
        let least = Row { wss_is_lower_bound: true, ..row("4712", 0, Some(700 << 20)) };
        let targets = vec![row("4711", -(3 << 20), Some(600 << 20)), row(long, 0, None), least];
        let text = table(&Interval { seconds: 3.0, total_bytes: 1 << 30, targets }, false);
        assert!(text.starts_with("3 s: 1 limit changed; together 1.50 GiB of 1.00 GiB\n"), "{text}");
        for part in
            ["512 MiB", "600 MiB", " ≥ 700 MiB ", " 7 ", "-3.00 MiB", "because", "….slice/some-very-long.scope", " ? "]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn the_first_line_says_whether_anything_would_change() {
        let row = |moved_bytes| Row {
            name: "4711".into(),
            limit_bytes: 512 << 20,
            wss_bytes: None,
            wss_is_lower_bound: false,
            files_in_memory_bytes: 0,
            misses_per_second: None,
            moved_bytes,
            why: "stays".into(),
        };
        for (moved, answer) in [([0, 0], "no limit would change"), ([1 << 20, -(1 << 20)], "2 limits would change")] {
            let targets = moved.map(row).into();
            let text = table(&Interval { seconds: 3.0, total_bytes: 1 << 30, targets }, true);
            assert!(text.starts_with(&format!("3 s: {answer}; together 1.00 GiB of 1.00 GiB\n")), "{text}");
        }
    }
}
