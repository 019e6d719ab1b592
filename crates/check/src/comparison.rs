//! What the runs of a check are compared with, and what comes of it.

use compare::runs::{Checked, Figure, Judge, Unknown, missing_at_most, undecided, values};
use history::comparable::differences;
use history::measured::Set;
use model::{Bytes, DoubtKind, Header, Observation, RunAccount};
use report::check::{Answer, Shown};

use crate::options::Options;

pub(crate) type Runs = Vec<(Observation, RunAccount)>;

/// What is compared, and what came of it.
pub(crate) struct Comparison<'a> {
    baseline: Option<&'a Set>,
    baseline_runs: Runs,
    pub(crate) judge: Judge,
    /// Whether the figures were named.
    is_named: bool,
    max: Option<Bytes>,
    checked: Vec<Checked>,
    unknown: Option<String>,
    notes: Vec<String>,
    has_looked: bool,
}

/// Why a run does not decide whether more than a maximum was held: without a cgroup, what processes hold together is known between bounds.
fn held_around(max: Bytes, account: &RunAccount) -> Option<String> {
    let held = account.tree_held_at_least_bytes.zip(account.tree_held_at_most_bytes)?;
    let floor = account.floor_bytes.zip(account.floor_at_most_bytes);
    let is_open = |(least, most): &(u64, u64)| *least <= max.0 && max.0 < *most;
    let told = |(least, most), what: &str| {
        format!(
            "its processes held between {} and {} together{what}, and the maximum is {max}; where a cgroup counts its memory, the peak is \
             known: see `bursar doctor`",
            Bytes(least),
            Bytes(most)
        )
    };
    let bounds = Some(held).filter(is_open).map(|held| told(held, ""));
    let of_floor = || floor.filter(is_open).map(|floor| told(floor, " that cannot be reclaimed"));
    bounds.or_else(of_floor).filter(|_| account.peak_charge_bytes.is_none_or(|peak| peak > max.0))
}

/// What several processes held together at most, bytes, with memory that is missing from their figures, where that is clearly more than
/// what the largest had and no cgroup counted it.
fn held_by_several(run: &Observation, account: &RunAccount) -> Option<u64> {
    let largest = account.app_max_rss_bytes.filter(|_| account.peak_charge_bytes.is_none())?;
    let most = account.tree_held_at_most_bytes?.saturating_add(missing_at_most(run, account));
    Some(most).filter(|most| *most > largest / 20 * 21)
}

impl<'a> Comparison<'a> {
    /// `runs`: how many there are, if no more are made.
    pub(crate) fn new(
        options: &Options,
        header: &Header,
        baseline: Option<&'a Set>,
        runs: Option<usize>,
    ) -> Comparison<'a> {
        let is_named = !options.figures.is_empty();
        let or = |default: &[Figure]| if is_named { options.figures.clone() } else { default.to_vec() };
        let baseline_runs: Runs = baseline.into_iter().flat_map(Set::runs).cloned().collect();
        let mut unknown = None;
        let mut growth = Vec::new();
        for figure in baseline.map(|_| or(&Figure::OF_GROWTH)).unwrap_or_default() {
            match values(figure, &baseline_runs) {
                Some(values) => growth.push((figure, values, options.tolerance.unwrap_or(figure.tolerance()))),
                None if is_named => unknown = Some(format!("{} of the baseline is unknown", figure.name())),
                None => {}
            }
        }
        let of_max = or(&[Figure::Floor, Figure::AppMaxRss]).into_iter().filter(|figure| figure.is_bytes());
        let max = options.max.map(|max| (of_max.collect::<Vec<Figure>>(), max));
        let most = runs.map_or(options.runs, |runs| runs as u32);
        let mut notes = baseline.map(|baseline| differences(baseline.header(), header)).unwrap_or_default();
        if let Some((set, (file, why))) = baseline.and_then(|set| Some((set, set.left_out.first()?))) {
            let count = set.left_out.len();
            notes.push(format!("{count} records of the baseline are left out, such as {}: {why}", file.display()));
        }
        let judge = Judge::new(max, growth, most, runs.is_some());
        let (checked, has_looked, max) = (Vec::new(), false, options.max);
        Comparison { baseline, baseline_runs, judge, is_named, max, checked, unknown, notes, has_looked }
    }

    /// Looks at all runs; the number of runs until the next look, `None` if it is decided.
    pub(crate) fn look(&mut self, runs: &Runs) -> anyhow::Result<Option<u32>> {
        if !std::mem::replace(&mut self.has_looked, true) {
            let forgotten = self.judge.forget_unknown(runs, self.is_named);
            let doubt = runs.iter().flat_map(|(_, account)| &account.doubts).find(|doubt| doubt.voids);
            let why = doubt.map_or(String::new(), |doubt| format!(": {}", doubt.sentence));
            if let Some(figure) = forgotten {
                self.unknown = Some(format!("{} is unknown here{why}", figure.name()));
            }
            if self.judge.is_empty() {
                let between = self.max.and_then(|max| runs.iter().find_map(|(_, account)| held_around(max, account)));
                self.unknown.get_or_insert_with(|| between.unwrap_or(format!("no figure is known of the runs{why}")));
            }
        }
        if self.unknown.is_some() {
            return Ok(None);
        }
        match self.judge.look(runs) {
            Ok((checked, next)) => {
                self.unknown = undecided(&checked, self.is_named, runs, &self.baseline_runs);
                if self.unknown.is_some() {
                    return Ok(None);
                }
                self.checked = checked;
                Ok(next)
            }
            Err(Unknown(figure)) => {
                let around = self.max.and_then(|max| runs.iter().find_map(|(_, account)| held_around(max, account)));
                let unknown = || format!("{} is unknown in more than half of the runs", figure.name());
                self.unknown = Some(around.unwrap_or_else(unknown));
                Ok(None)
            }
        }
    }

    pub(crate) fn answer(self, header: &Header, runs: &Runs) -> Answer {
        let decides = |figure: Figure| self.checked.iter().any(|checked| checked.figure == figure);
        let mean = |figure: Figure, runs: &Runs| {
            let values = values(figure, runs)?;
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let shown = Figure::ALL.into_iter().filter(|figure| !decides(*figure)).filter_map(|figure| {
            Some(Shown { figure, value: mean(figure, runs)?, baseline: mean(figure, &self.baseline_runs) })
        });
        let shown = shown.collect();
        let mut notes = self.notes;
        // Cached files are missing from the peak charge alone.
        let matters = |doubt: &&model::Doubt| {
            let is_reason = self.unknown.as_ref().is_some_and(|why| why.contains(&doubt.sentence));
            !is_reason && !doubt.voids && (doubt.kind != DoubtKind::CachedBefore || decides(Figure::PeakCharge))
        };
        for doubt in runs.iter().flat_map(|(_, account)| &account.doubts).filter(matters) {
            let note = format!("Doubt: {}.", doubt.sentence);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let together =
            self.max.and_then(|_| runs.iter().filter_map(|(run, account)| held_by_several(run, account)).max());
        Answer {
            command: header.command.clone(),
            checked: self.checked,
            shown,
            runs: runs.len(),
            baseline_runs: self.baseline.map_or(0, |set| set.runs().count()),
            seconds: runs.iter().map(|(run, _)| run.wall_seconds).sum(),
            together_bytes: together,
            notes,
            unknown: self.unknown,
        }
    }
}
