//! Time lines of some processes: by line, and by line and kind.

use model::{MemoryKind, ProcessKey, Series, Share, Unit, line_name};

use crate::memory::{Lines, Measure, Row};
use crate::replay::Moment;

/// The kinds, and their sum.
const PARTS: usize = MemoryKind::ALL.len() + 1;
/// Thousands of ranks have no end of moments. Of each of so many equal stretches of the time of all, two are kept.
const STRETCHES: u64 = 5000;

/// Time lines as they come about. All have their points at the same moments, so that they always add up.
pub struct TimeLines {
    measures: &'static [(Share, Measure)],
    /// By line, measure and part.
    points: Vec<Vec<(u64, f64)>>,
    stretch_ns: u64,
    /// Of the stretch that is on: where most was held, and the last.
    kept: Option<(Kept, Kept)>,
}

/// A moment.
#[derive(Clone)]
struct Kept {
    t_ns: u64,
    rows: Vec<Row>,
}

impl TimeLines {
    /// Of a rank.
    pub fn of_rank(lines: &Lines) -> TimeLines {
        TimeLines::new(&[(Share::Whole, Measure::Rss), (Share::Proportional, Measure::Pss)], 1, lines)
    }

    /// Of all ranks together until `end_ns`; what is shared counts once.
    pub fn of_all(end_ns: u64, lines: &Lines) -> TimeLines {
        TimeLines::new(&[(Share::Whole, Measure::Pss)], (end_ns / STRETCHES).max(1), lines)
    }

    fn new(measures: &'static [(Share, Measure)], stretch_ns: u64, lines: &Lines) -> TimeLines {
        let points = vec![Vec::new(); (lines.total() + 1) * measures.len() * PARTS];
        TimeLines { measures, points, stretch_ns, kept: None }
    }

    pub fn see(&mut self, moment: &Moment) {
        let now = Kept { t_ns: moment.t_ns, rows: moment.rows.to_vec() };
        let most = match self.kept.take() {
            None => now.clone(),
            Some((most, last)) if last.t_ns / self.stretch_ns != now.t_ns / self.stretch_ns => {
                self.keep(&most);
                self.keep(&last);
                now.clone()
            }
            Some((most, _)) if self.total(&most) > self.total(&now) => most,
            Some(_) => now.clone(),
        };
        self.kept = Some((most, now));
    }

    /// Those that were ever above 0. Each has its last point at the last moment.
    pub fn series(mut self, lines: &Lines, process: Option<ProcessKey>, rung: &str) -> Vec<Series> {
        let Some((most, last)) = self.kept.take() else { return Vec::new() };
        self.keep(&most);
        self.keep(&last);
        let mut series = Vec::new();
        let mut points = self.points.drain(..);
        let parts = || MemoryKind::ALL.into_iter().map(Some).chain([None]);
        for line in lines.names() {
            for (share, _) in self.measures {
                for (kind, mut points) in parts().zip(points.by_ref()) {
                    if points.iter().all(|(_, value)| *value == 0.0) {
                        continue;
                    }
                    let (t_ns, value) = points.last().copied().unwrap_or_default();
                    if t_ns < last.t_ns {
                        points.push((last.t_ns, value));
                    }
                    let name = line_name(line, kind, *share);
                    series.push(Series {
                        name,
                        process,
                        unit: Unit::Bytes,
                        rung: format!("in-process runtime: {rung}"),
                        points,
                    });
                }
            }
        }
        series
    }

    /// Points where anything is another than before.
    fn keep(&mut self, moment: &Kept) {
        let mut points = self.points.iter_mut();
        for row in &moment.rows {
            for (_, measure) in self.measures {
                let kinds = measure.by_kind(row);
                for (value, points) in kinds.into_iter().chain([kinds.iter().sum()]).zip(points.by_ref()) {
                    if points.last().is_none_or(|(_, last)| *last != value as f64) {
                        points.push((moment.t_ns, value as f64));
                    }
                }
            }
        }
    }

    /// By the first measure; the total's row is the last.
    fn total(&self, moment: &Kept) -> u64 {
        moment.rows.last().map_or(0, |row| self.measures[0].1.sum(row))
    }
}
