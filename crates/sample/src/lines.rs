//! The time lines as they grow.

use std::collections::HashMap;

use model::{ProcessKey, Series, Unit, names};

/// Rows kept in memory; the record keeps them all. 4096 rows of 45 figures are 3 MiB.
const KEPT_ROWS: usize = 4096;

/// A series that appears for the first time.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSeries {
    /// Its number within the run.
    pub id: u32,
    /// One of [`model::names`].
    pub name: &'static str,
    /// The process it belongs to.
    pub process: Option<ProcessKey>,
    /// The counted quantity.
    pub unit: Unit,
    /// Where it comes from.
    pub rung: String,
}

/// What one look at the job gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Nanoseconds since the run began.
    pub t_ns: u64,
    /// Series number and value.
    pub values: Vec<(u32, f64)>,
    /// The series that this row is the first of.
    pub new: Vec<NewSeries>,
}

/// All series of a run, thinned out when there are many rows, but never at a peak of the charge, the floor or the RSS.
#[derive(Default)]
pub struct Lines {
    ids: HashMap<(&'static str, Option<ProcessKey>), u32>,
    series: Vec<NewSeries>,
    rows: Vec<Row>,
}

impl Lines {
    /// Starts a row.
    pub fn row(&mut self, t_ns: u64) -> RowBuilder<'_> {
        RowBuilder { lines: self, row: Row { t_ns, ..Row::default() } }
    }

    /// Whether there is no row yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Nanoseconds since the run began, of the last row.
    pub fn last_at(&self) -> u64 {
        self.rows.last().map_or(0, |row| row.t_ns)
    }

    /// The value a series had last.
    pub fn last(&self, name: &'static str) -> Option<f64> {
        let id = *self.ids.get(&(name, None))?;
        self.rows.iter().rev().find_map(|row| row.value(id))
    }

    /// Everything as series.
    pub fn into_series(self) -> Vec<Series> {
        let mut series: Vec<Series> = self
            .series
            .into_iter()
            .map(|new| Series {
                name: new.name.into(),
                process: new.process,
                unit: new.unit,
                rung: new.rung,
                points: Vec::new(),
            })
            .collect();
        for row in self.rows {
            for (id, value) in row.values {
                series[id as usize].points.push((row.t_ns, value));
            }
        }
        series
    }

    fn keep(&mut self, row: Row) {
        self.rows.push(row);
        if self.rows.len() <= KEPT_ROWS {
            return;
        }
        let peaks = self.peak_rows();
        let last = self.rows.len() - 1;
        let mut index = 0;
        self.rows.retain(|_| {
            let keep = index % 2 == 0 || index == last || peaks.contains(&index);
            index += 1;
            keep
        });
    }

    fn peak_rows(&self) -> Vec<usize> {
        let levels = self.series.iter().filter(|s| s.process.is_none() && s.unit == Unit::Bytes);
        let peak = |id: u32| {
            let of_row = |(index, row): (usize, &Row)| row.value(id).map(|value| (value, index));
            self.rows.iter().enumerate().filter_map(of_row).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, index)| index)
        };
        let important = [names::CHARGE, names::HEAP, names::TREE_RSS, names::TREE_PSS, names::SYSTEM_USED];
        levels.filter(|s| important.contains(&s.name)).filter_map(|s| peak(s.id)).collect()
    }
}

impl Row {
    fn value(&self, id: u32) -> Option<f64> {
        self.values.iter().find(|(of, _)| *of == id).map(|(_, value)| *value)
    }
}

/// A row being filled. [`RowBuilder::finish`] keeps it.
pub struct RowBuilder<'a> {
    lines: &'a mut Lines,
    row: Row,
}

impl RowBuilder<'_> {
    /// Puts a figure of the whole job, if there is one.
    pub fn put(&mut self, name: &'static str, unit: Unit, rung: &str, value: Option<f64>) {
        self.put_of(None, name, unit, rung, value);
    }

    /// Puts a number of bytes of the whole job, if there is one.
    pub fn bytes(&mut self, name: &'static str, rung: &str, value: Option<u64>) {
        self.put(name, Unit::Bytes, rung, value.map(|v| v as f64));
    }

    /// Puts a figure of one process, or of the job.
    pub fn put_of(
        &mut self,
        process: Option<ProcessKey>,
        name: &'static str,
        unit: Unit,
        rung: &str,
        value: Option<f64>,
    ) {
        let Some(value) = value else { return };
        let lines = &mut *self.lines;
        let id = *lines.ids.entry((name, process)).or_insert_with(|| {
            let id = lines.series.len() as u32;
            let new = NewSeries { id, name, process, unit, rung: rung.to_string() };
            self.row.new.push(new.clone());
            lines.series.push(new);
            id
        });
        self.row.values.push((id, value));
    }

    /// Keeps the row, and gives it for the record.
    pub fn finish(self) -> Row {
        self.lines.keep(self.row.clone());
        self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_announced_once_and_absent_figures_make_none() {
        let mut lines = Lines::default();
        let mut row = lines.row(0);
        row.bytes(names::CHARGE, "test", Some(7));
        row.bytes(names::SWAP, "test", None);
        assert_eq!(row.finish().new.len(), 1);
        let mut row = lines.row(1);
        row.bytes(names::CHARGE, "test", Some(8));
        assert_eq!(row.finish().new, []);
        assert_eq!(lines.last(names::CHARGE), Some(8.0));
        let series = lines.into_series();
        assert_eq!((series.len(), series[0].points.as_slice()), (1, [(0, 7.0), (1, 8.0)].as_slice()));
    }

    #[test]
    fn a_long_run_is_thinned_out_but_keeps_its_peak_and_its_ends() {
        let mut lines = Lines::default();
        let rows = 5 * KEPT_ROWS as u64;
        let peak_at = 4321;
        for t in 0..rows {
            let mut row = lines.row(t);
            row.bytes(names::CHARGE, "test", Some(if t == peak_at { 1 << 40 } else { t }));
            row.finish();
        }
        let series = lines.into_series().remove(0);
        assert!(series.points.len() <= KEPT_ROWS + 1);
        assert!(series.points.contains(&(peak_at, (1u64 << 40) as f64)));
        assert_eq!(series.points.first(), Some(&(0, 0.0)));
        assert_eq!(series.points.last(), Some(&(rows - 1, (rows - 1) as f64)));
    }
}
