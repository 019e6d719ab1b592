//! What the runs until now show, and how many more are needed.

use crate::{Finding, Look, Verdict, below_limit};
use model::{Bytes, Observation, RunAccount};

use super::figures::Figure;

/// A figure compared with a bound.
#[derive(Clone, Copy)]
pub struct Checked {
    /// Which.
    pub figure: Figure,
    /// Mean of the baseline; `None`: the bound is `--max`.
    pub baseline: Option<f64>,
    /// Growth that is allowed, as a share of the baseline.
    pub tolerance: f64,
    /// What the comparison shows.
    pub finding: Finding,
}

/// What is compared with what.
pub struct Judge {
    max: Option<(Vec<Figure>, Bytes)>,
    /// For each figure the baseline's values and the tolerance.
    growth: Vec<(Figure, Vec<f64>, f64)>,
    check: crate::Check,
    most_runs: u32,
    last_look: Option<(u32, Look)>,
}

/// A deciding figure that cannot be compared.
pub struct Unknown(pub Figure);

type Runs<'a> = [(Observation, RunAccount)];

/// A figure of the runs that know it; `None` where that is less than half of them.
pub fn values(figure: Figure, runs: &Runs) -> Option<Vec<f64>> {
    let known: Vec<f64> = runs.iter().filter_map(|(run, account)| figure.of(run, account)).collect();
    (!known.is_empty() && 2 * known.len() >= runs.len()).then_some(known)
}

/// A figure as far as a limit needs it, of the runs that know it; `None` where they are too few, or where one may have been above it.
fn beside_limit(figure: Figure, limit: Bytes, runs: &Runs) -> Option<Vec<f64>> {
    let is_open = |(run, account): &(Observation, RunAccount)| {
        figure == Figure::AppMaxRss
            && figure.of(run, account).is_some()
            && figure.beside_limit(limit.0 as f64, run, account).is_none()
    };
    if runs.iter().any(is_open) {
        return None;
    }
    let known = runs.iter().filter_map(|(run, account)| figure.beside_limit(limit.0 as f64, run, account));
    enough(known.collect(), runs.len())
}

/// Values that are known of so many runs: of all, or of two at least and of half of them.
fn enough(known: Vec<f64>, runs: usize) -> Option<Vec<f64>> {
    let is_enough = !known.is_empty() && (known.len() == runs || (known.len() >= 2 && 2 * known.len() >= runs));
    is_enough.then_some(known)
}

impl Judge {
    /// `runs`: at most so many, or, if `all_are_there`, exactly.
    pub fn new(
        max: Option<(Vec<Figure>, Bytes)>,
        growth: Vec<(Figure, Vec<f64>, f64)>,
        runs: u32,
        all_are_there: bool,
    ) -> Judge {
        let check = if all_are_there { crate::Check::of_all(runs) } else { crate::Check::of(runs) };
        Judge { max, growth, check, most_runs: runs, last_look: None }
    }

    /// Whether nothing is compared.
    pub fn is_empty(&self) -> bool {
        self.growth.is_empty() && self.max.as_ref().is_none_or(|(figures, _)| figures.is_empty())
    }

    /// Leaves out figures that are unknown in these runs. The first of them is returned where they must be known: where they `are_named`.
    /// Else the maximum is one of the first figure that is known.
    pub fn forget_unknown(&mut self, runs: &Runs, are_named: bool) -> Option<Figure> {
        let is_known = |figure: Figure| values(figure, runs).is_some();
        let mut all: Vec<(Figure, bool)> =
            self.growth.iter().map(|(figure, ..)| (*figure, is_known(*figure))).collect();
        self.growth.retain(|(figure, ..)| is_known(*figure));
        if let Some((figures, max)) = &mut self.max {
            let is_known = |figure: Figure| beside_limit(figure, *max, runs).is_some();
            all.extend(figures.iter().map(|figure| (*figure, is_known(*figure))));
            figures.retain(|figure| is_known(*figure));
            figures.truncate(if are_named { usize::MAX } else { 1 });
        }
        all.into_iter().find(|(_, is_known)| are_named && !is_known).map(|(figure, _)| figure)
    }

    /// How many runs to make before anything can be said.
    pub fn first(&self) -> u32 {
        if self.growth.is_empty() { 1 } else { self.check.first() }
    }

    /// What all runs show, and the number of runs to make until the next time; `None`: it is decided.
    ///
    /// # Errors
    /// Where a figure that decides is unknown in too many runs.
    pub fn look(&mut self, runs: &Runs) -> Result<(Vec<Checked>, Option<u32>), Unknown> {
        let count = runs.len() as u32;
        let mut checked = Vec::new();
        let mut is_short = false;
        if let Some((figures, max)) = &self.max {
            for figure in figures {
                let Some(values) = beside_limit(*figure, *max, runs) else {
                    // A sample may see the peak of the next one.
                    is_short = count < self.most_runs;
                    if is_short {
                        continue;
                    }
                    return Err(Unknown(*figure));
                };
                let finding = below_limit(&values, max.0 as f64, count >= self.most_runs).ok_or(Unknown(*figure))?;
                checked.push(Checked { figure: *figure, baseline: None, tolerance: 0.0, finding });
            }
        }
        let is_decided = self.last_look.as_ref().is_some_and(|(_, look)| look.next.is_none());
        if !self.growth.is_empty() && !is_decided {
            let figures = self.growth.iter().map(|(figure, baseline, tolerance)| {
                let mean = baseline.iter().sum::<f64>() / baseline.len() as f64;
                Ok(crate::Figure {
                    baseline: baseline.clone(),
                    runs: values(*figure, runs).ok_or(Unknown(*figure))?,
                    tolerance: *tolerance,
                    least: figure.least(mean),
                })
            });
            let figures = figures.collect::<Result<Vec<_>, Unknown>>()?;
            self.last_look = Some((count, self.check.look(count, &figures)));
        }
        let mut next =
            (is_short || checked.iter().any(|checked| checked.finding.verdict.is_none())).then_some(count + 1);
        if let Some((_, look)) = &self.last_look {
            next = look.next.or(next);
            checked.extend(self.growth.iter().zip(&look.findings).map(|((figure, baseline, tolerance), finding)| {
                let mean = baseline.iter().sum::<f64>() / baseline.len() as f64;
                Checked { figure: *figure, baseline: Some(mean), tolerance: *tolerance, finding: *finding }
            }));
        }
        let has_failed = checked.iter().any(|checked| checked.finding.verdict == Some(Verdict::Failed));
        Ok((checked, next.filter(|next| !has_failed && *next <= self.most_runs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_whose_peak_was_missed_are_left_out_where_enough_others_are_known() {
        assert_eq!(enough(vec![1.0], 1), Some(vec![1.0]));
        assert_eq!(enough(vec![1.0], 2), None);
        assert_eq!(enough(vec![1.0, 2.0], 3), Some(vec![1.0, 2.0]));
        assert_eq!(enough(vec![1.0, 2.0], 5), None);
        assert_eq!(enough(Vec::new(), 0), None);
    }

    #[test]
    fn a_run_that_may_have_been_above_the_maximum_is_not_left_out() {
        let of = |held_at_most: u64| {
            let run = Observation::begun(0, model::RunRole::Plain, model::Target::Command, String::new(), 0);
            let known = RunAccount {
                app_max_rss_bytes: Some(80),
                tree_held_at_least_bytes: Some(80),
                tree_held_at_most_bytes: Some(held_at_most),
                ..RunAccount::default()
            };
            (run, known)
        };
        let known = |runs: &Runs| beside_limit(Figure::AppMaxRss, Bytes(90), runs);
        assert_eq!(known(&[of(81), of(82), of(83)]), Some(vec![80.0; 3]));
        assert_eq!(known(&[of(81), of(100), of(83)]), None);
    }

    #[test]
    fn the_largest_process_decides_nothing_where_samples_missed_several() {
        let mut run = Observation::begun(0, model::RunRole::Plain, model::Target::Command, String::new(), 0);
        run.series.push(model::Series {
            name: model::names::TREE_RSS.into(),
            process: None,
            unit: model::Unit::Bytes,
            rung: "sampled".into(),
            points: vec![(0, 85e6)],
        });
        let of = |charge: u64| RunAccount {
            app_max_rss_bytes: Some(80_000_000),
            tree_held_at_most_bytes: Some(160_000_000),
            peak_charge_bytes: Some(charge),
            ..RunAccount::default()
        };
        let known = |charge| Figure::AppMaxRss.beside_limit(130e6, &run, &of(charge));
        assert_eq!((known(143_000_000), known(120_000_000)), (None, Some(80e6)));
    }

    #[test]
    fn a_floor_that_is_known_beside_files_in_memory_decides() {
        let mut run = Observation::begun(0, model::RunRole::Plain, model::Target::Command, String::new(), 0);
        let known = RunAccount { floor_bytes: Some(60), ..RunAccount::default() };
        let floor = |run: &Observation, limit| Figure::Floor.beside_limit(limit, run, &known);
        assert_eq!(floor(&run, 100.0), None);
        run.evidence.with_files_in_memory_bytes = Some(120);
        assert_eq!((floor(&run, 100.0), floor(&run, 130.0)), (Some(120.0), None));
        let before = model::Named { name: "/dev/shm/before".into(), bytes: Some(50) };
        run.evidence.shared_before.push(before);
        assert_eq!(floor(&run, 100.0), None, "it was there before the run");
    }
}
