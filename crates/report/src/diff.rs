//! Figures of several sets of runs beside each other.

use model::{Bytes, FileDemand, Observation};

use crate::format::{printable, seconds};
use crate::tables::{Table, Tone};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffUnit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A number.
    Count,
}

/// A value of a set of runs, and how it differs from the first set's.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffValue {
    /// Mean. `None`: unknown.
    pub value: Option<f64>,
    /// As a share of the first set's. `None`: either is unknown, or the first's is 0.
    pub change: Option<f64>,
    /// Whether it is beyond the noise of repeated runs. `None`: that is unknown.
    pub significant: Option<bool>,
}

/// A figure of all sets.
#[derive(Clone, Debug)]
pub struct DiffRow {
    /// For people.
    pub name: String,
    /// The counted quantity.
    pub unit: DiffUnit,
    /// Of the sets, in their order.
    pub values: Vec<DiffValue>,
}

/// A set of equal runs.
#[derive(Clone, Debug)]
pub struct DiffSet<'a> {
    /// The record or the folder.
    pub name: String,
    /// The command line.
    pub command: String,
    /// How many runs.
    pub runs: usize,
    /// The run of median length, for the curves.
    pub run: &'a Observation,
    /// The page cache's part of it.
    pub demand: Option<&'a FileDemand>,
}

/// Sets of runs beside each other.
#[derive(Clone, Debug)]
pub struct Diff<'a> {
    /// At least two; the others are compared with the first.
    pub sets: Vec<DiffSet<'a>>,
    /// The figures that any of them knows.
    pub rows: Vec<DiffRow>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
}

impl Diff<'_> {
    /// The answer: how many figures changed beyond noise, or that the noise is unknown.
    pub(crate) fn headline(&self) -> String {
        let changes = || self.rows.iter().flat_map(|row| &row.values[1..]);
        let changed = changes().filter(|value| value.significant == Some(true)).count();
        if changes().all(|value| value.significant.is_none()) {
            return "one run each: the noise is unknown, so no change is known to be more; see: bursar run -n 10"
                .into();
        }
        match changed {
            0 => "no figure changed beyond noise".into(),
            1 => "1 figure changed beyond noise".into(),
            changed => format!("{changed} figures changed beyond noise"),
        }
    }

    /// Each set with its letter.
    pub(crate) fn sets_table(&self) -> Table {
        let mut table = Table::new(&["", "runs", "record", "command"]).with_words_last();
        for (letter, set) in ('a'..='z').zip(&self.sets) {
            let cells = vec![letter.to_string(), set.runs.to_string(), printable(&set.name), printable(&set.command)];
            table.row(Tone::Plain, cells);
        }
        table
    }

    /// The figures of all sets.
    pub(crate) fn table(&self) -> Table {
        let letters = || ('a'..='z').take(self.sets.len());
        let mut header = vec!["figure".to_string(), "a".to_string()];
        header
            .extend(letters().skip(1).flat_map(|letter| [letter.to_string(), "change".into(), "beyond noise".into()]));
        let mut table = Table::new(&header);
        for row in &self.rows {
            let text = |value: &DiffValue| value.value.map_or("-".to_string(), |value| row.unit.text(value));
            let mut cells = vec![printable(&row.name), text(&row.values[0])];
            for value in &row.values[1..] {
                let change = value.change.map_or("-".to_string(), |change| format!("{:+.1} %", 100.0 * change));
                let significant = match value.significant {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "-",
                };
                cells.extend([text(value), change, significant.to_string()]);
            }
            let has_changed = row.values[1..].iter().any(|value| value.significant == Some(true));
            table.row(if has_changed { Tone::Strong } else { Tone::Plain }, cells);
        }
        table
    }
}

impl DiffUnit {
    fn text(self, value: f64) -> String {
        match self {
            DiffUnit::Bytes => Bytes(value.max(0.0).round() as u64).to_string(),
            DiffUnit::Seconds => seconds(value),
            DiffUnit::Count => format!("{value:.0}"),
        }
    }
}
