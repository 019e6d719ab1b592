//! Tasks of a workflow, summed by their rule.

use model::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::format::{count, opt_seconds, or_unknown, printable, seconds};
use crate::tables::{Table, Tone};

/// The tasks of a workflow that left a record each.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Tasks {
    /// By name.
    pub rules: Vec<RuleTasks>,
    /// Of all rules together.
    pub total: RuleTasks,
    /// Records that could not be used.
    pub left_out: Vec<LeftOut>,
}

/// The tasks of one rule (Snakemake) or process (Nextflow). Figures of memory are of the tasks that came to their end: those
/// of others are lower bounds.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct RuleTasks {
    /// Its name; of `total` empty.
    pub rule: String,
    /// How many tasks.
    pub tasks: usize,
    /// How many of them did not come to their end.
    pub failed: usize,
    /// Memory that was charged at the peak, page cache included; without a cgroup, RSS of the process tree.
    pub peak_bytes: Option<Spread<u64>>,
    /// What cannot be reclaimed of it.
    pub floor_bytes: Option<Spread<u64>>,
    /// Run time.
    pub wall_seconds: Option<Spread<f64>>,
    /// Run time of all tasks, failed ones included.
    pub total_seconds: f64,
}

/// A figure over tasks.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Spread<T> {
    /// The lower one of two.
    pub median: T,
    /// The largest.
    pub max: T,
}

/// A record that could not be used.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct LeftOut {
    /// The file.
    pub path: String,
    /// A sentence without a period.
    pub why: String,
}

impl<T: Copy + PartialOrd> Spread<T> {
    /// Of all values; `None` of none.
    pub fn of(mut values: Vec<T>) -> Option<Spread<T>> {
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        Some(Spread { median: *values.get(values.len().checked_sub(1)? / 2)?, max: *values.last()? })
    }
}

impl Tasks {
    /// The answer: how many tasks, and what the largest needed.
    pub(crate) fn headline(&self) -> String {
        let Tasks { rules, total, .. } = self;
        let tasks = format!("{} of {}", number(total.tasks, "task"), number(rules.len(), "rule"));
        let failed = if total.failed > 0 { format!(", {} failed", total.failed) } else { String::new() };
        let largest = rules.iter().filter(|rule| rule.peak_bytes.is_some());
        let largest = largest.max_by_key(|rule| rule.peak_bytes.map(|peak| peak.max));
        let peak = largest.zip(total.peak_bytes).map_or(String::new(), |(rule, peak)| {
            format!("; the largest peak is {}, of {}", Bytes(peak.max), printable(&rule.rule))
        });
        format!("{tasks}{failed}{peak}")
    }

    /// A row for each rule, and the total.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(&[
            "rule",
            "tasks",
            "failed",
            "median peak",
            "largest peak",
            "must fit",
            "median time",
            "total time",
        ]);
        for rule in &self.rules {
            table.row(if rule.failed > 0 { Tone::Warning } else { Tone::Plain }, rule.cells(&printable(&rule.rule)));
        }
        table.row(Tone::Strong, self.total.cells("total"));
        table
    }
}

impl RuleTasks {
    fn cells(&self, name: &str) -> Vec<String> {
        vec![
            name.to_string(),
            count(Some(self.tasks as u64)),
            count(Some(self.failed as u64)),
            or_unknown(self.peak_bytes, |peak| Bytes(peak.median).to_string()),
            or_unknown(self.peak_bytes, |peak| Bytes(peak.max).to_string()),
            or_unknown(self.floor_bytes, |floor| Bytes(floor.max).to_string()),
            opt_seconds(self.wall_seconds.map(|wall| wall.median)),
            seconds(self.total_seconds),
        ]
    }
}

fn number(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_values() {
        assert_eq!(Spread::of(Vec::<u64>::new()), None);
        assert_eq!(Spread::of(vec![4_u64]), Some(Spread { median: 4, max: 4 }));
        assert_eq!(Spread::of(vec![9_u64, 1, 5, 2]), Some(Spread { median: 2, max: 9 }));
    }

    #[test]
    fn the_answer_names_the_rule_with_the_largest_peak() {
        let peak = |max| Some(Spread { median: 1_u64 << 20, max });
        let of = |rule: &str, failed, max: Option<u64>| RuleTasks {
            rule: rule.into(),
            tasks: 2,
            failed,
            peak_bytes: max.and_then(peak),
            ..RuleTasks::default()
        };
        let total = RuleTasks { tasks: 6, failed: 1, peak_bytes: peak(8 << 20), ..RuleTasks::default() };
        let rules = vec![of("align", 0, Some(8 << 20)), of("call", 1, None), of("sort", 0, Some(2 << 20))];
        let tasks = Tasks { rules, total, left_out: Vec::new() };
        assert_eq!(tasks.headline(), "6 tasks of 3 rules, 1 failed; the largest peak is 8.00 MiB, of align");
        assert_eq!(tasks.table().rows[1].1[3..6], ["-", "-", "-"]);
        assert_eq!(tasks.table().rows[3].1[..3], ["total", "6", "1"]);
    }
}
