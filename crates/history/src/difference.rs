//! Records side by side.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use compare::differ;
use compare::runs::Figure;
use model::{Attribution, Observation, RunAccount};
use report::{Diff, DiffRow, DiffSet, DiffUnit, DiffValue, shell_word};
use schemars::JsonSchema;
use serde::Serialize;

use crate::measured::Set;

/// Letters for the sets.
const MOST_SETS: usize = 26;

type OfRun = fn(&Observation, &RunAccount) -> Option<f64>;

/// Figures of a run, by their names in `bursar run --json`.
const FIGURES: [(&str, &str, DiffUnit, OfRun); 19] = [
    ("peak_charge_bytes", "peak charge", DiffUnit::Bytes, |run, account| Figure::PeakCharge.of(run, account)),
    ("heap_bytes", "heap", DiffUnit::Bytes, |run, account| Figure::Heap.of(run, account)),
    ("file_bytes", "file, within the peak", DiffUnit::Bytes, |_, account| bytes(account.peak_breakdown.file)),
    ("shared_bytes", "shared, within the peak", DiffUnit::Bytes, |_, account| bytes(account.peak_breakdown.shared)),
    ("kernel_bytes", "kernel, within the peak", DiffUnit::Bytes, |_, account| bytes(account.peak_breakdown.kernel)),
    ("floor_bytes", "floor", DiffUnit::Bytes, |run, account| Figure::Floor.of(run, account)),
    ("app_max_rss_bytes", "App-MaxRSS", DiffUnit::Bytes, |run, account| Figure::AppMaxRss.of(run, account)),
    ("tree_max_rss_bytes", "RSS of the tree", DiffUnit::Bytes, |_, account| bytes(account.tree_max_rss_bytes)),
    ("tree_max_pss_bytes", "PSS of the tree", DiffUnit::Bytes, |_, account| bytes(account.tree_max_pss_bytes)),
    ("sys_max_rss_bytes", "Sys-MaxRSS", DiffUnit::Bytes, |_, account| bytes(account.sys_max_rss_bytes)),
    ("swap_bytes", "swap", DiffUnit::Bytes, |_, account| bytes(account.swap_bytes)),
    ("minor_faults", "minor page faults", DiffUnit::Count, |_, account| bytes(account.faults.minor)),
    ("major_faults", "major page faults", DiffUnit::Count, |_, account| bytes(account.faults.major)),
    ("refaults_file", "refaults of files", DiffUnit::Count, |_, account| bytes(account.flow.refaults_file)),
    ("processes", "processes", DiffUnit::Count, |_, account| bytes(account.processes)),
    ("wall_seconds", "run time", DiffUnit::Seconds, |_, account| Some(account.wall_seconds)),
    ("user_seconds", "user time", DiffUnit::Seconds, |_, account| account.user_seconds),
    ("system_seconds", "system time", DiffUnit::Seconds, |_, account| account.system_seconds),
    ("read_bytes", "read by calls", DiffUnit::Bytes, |_, account| bytes(account.moved.map(|moved| moved.read))),
];

fn bytes(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

/// The figures of all sets.
#[derive(JsonSchema, Serialize)]
pub struct Figures<'a> {
    a: SetJson<'a>,
    b: SetJson<'a>,
    figures: Vec<FigureJson>,
    others: Vec<OtherJson<'a>>,
    notes: &'a [String],
}

#[derive(JsonSchema, Serialize)]
struct SetJson<'a> {
    name: &'a str,
    command: &'a [String],
    runs: usize,
}

#[derive(JsonSchema, Serialize)]
struct OtherJson<'a> {
    #[serde(flatten)]
    set: SetJson<'a>,
    figures: Vec<FigureJson>,
}

#[derive(JsonSchema, Serialize)]
struct FigureJson {
    name: String,
    a: Option<f64>,
    b: Option<f64>,
    change: Option<f64>,
    significant: Option<bool>,
}

/// A figure with its values in each set.
struct Row {
    key: String,
    name: String,
    unit: DiffUnit,
    values: Vec<Vec<f64>>,
}

/// Sets of runs side by side.
pub struct Difference {
    sets: Vec<Set>,
    rows: Vec<Row>,
    shown: Vec<DiffRow>,
    notes: Vec<String>,
}

/// Reads records and folders of records, each of which is a set of equal runs, and compares each with the first.
///
/// # Errors
/// A sentence if they are too many, or if one cannot be read.
pub fn diff(records: &[PathBuf]) -> anyhow::Result<Difference> {
    ensure!(records.len() <= MOST_SETS, "at most {MOST_SETS} records or folders can be compared");
    let sets: Vec<Set> = records.iter().map(|path| Set::read(path, &|_| Ok(()))).collect::<anyhow::Result<_>>()?;
    let rows = rows(&sets);
    let mut shown: Vec<DiffRow> = rows
        .iter()
        .map(|row| DiffRow { name: row.name.clone(), unit: row.unit, values: vec![DiffValue::default()] })
        .collect();
    for other in 1..sets.len() {
        let pairs: Vec<(Vec<f64>, Vec<f64>)> =
            rows.iter().map(|row| (row.values[0].clone(), row.values[other].clone())).collect();
        for (row, difference) in shown.iter_mut().zip(differ(&pairs)) {
            row.values[0].value = difference.a;
            let change = difference.a.filter(|a| *a != 0.0).zip(difference.b).map(|(a, b)| b / a - 1.0);
            row.values.push(DiffValue { value: difference.b, change, significant: difference.significant });
        }
    }
    let notes = notes(&sets);
    Ok(Difference { sets, rows, shown, notes })
}

impl Difference {
    /// As reports show it.
    ///
    /// # Errors
    /// If a record holds no run.
    pub fn shown(&self) -> anyhow::Result<Diff<'_>> {
        Ok(Diff {
            sets: self.sets.iter().map(shown_set).collect::<anyhow::Result<_>>()?,
            rows: self.shown.clone(),
            notes: self.notes.clone(),
        })
    }

    /// In figures.
    pub fn figures(&self) -> Figures<'_> {
        let Difference { sets, rows, shown, notes } = self;
        let figures = |other: usize| {
            let figure = |(row, shown): (&'_ Row, &DiffRow)| FigureJson {
                name: row.key.clone(),
                a: shown.values[0].value,
                b: shown.values[other].value,
                change: shown.values[other].change,
                significant: shown.values[other].significant,
            };
            rows.iter().zip(shown).map(figure).collect::<Vec<FigureJson>>()
        };
        let others = (2..sets.len()).map(|other| OtherJson { set: set_json(&sets[other]), figures: figures(other) });
        Figures { a: set_json(&sets[0]), b: set_json(&sets[1]), figures: figures(1), others: others.collect(), notes }
    }
}

fn set_json(set: &Set) -> SetJson<'_> {
    SetJson { name: &set.name, command: &set.header().command, runs: set.runs().count() }
}

/// A set as reports see it: its run of median length stands for the curves.
fn shown_set(set: &Set) -> anyhow::Result<DiffSet<'_>> {
    let mut by_length: Vec<&(Observation, RunAccount)> = set.runs().collect();
    by_length.sort_by(|(a, _), (b, _)| a.wall_seconds.total_cmp(&b.wall_seconds));
    let (run, account) = by_length.get(by_length.len() / 2).context("a record holds no run")?;
    Ok(DiffSet {
        name: set.name.clone(),
        command: set.header().command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
        runs: by_length.len(),
        run,
        demand: account.file_demand.as_ref(),
    })
}

/// The figures that any set knows.
fn rows(sets: &[Set]) -> Vec<Row> {
    let mut rows: Vec<Row> = FIGURES
        .iter()
        .map(|(key, name, unit, of)| {
            let values = |set: &Set| set.runs().filter_map(|(run, account)| of(run, account)).collect();
            let values = sets.iter().map(values).collect();
            Row { key: (*key).to_string(), name: (*name).to_string(), unit: *unit, values }
        })
        .collect();
    let budgets = |set: &Set| set.records.iter().filter_map(|record| bytes(record.budget_bytes)).collect();
    rows.push(Row {
        key: "budget_bytes".into(),
        name: "budget".into(),
        unit: DiffUnit::Bytes,
        values: sets.iter().map(budgets).collect(),
    });
    let mut held: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    for (number, set) in sets.iter().enumerate() {
        for attribution in set.records.iter().flat_map(|record| &record.attributions) {
            for (name, bytes) in holders(attribution) {
                held.entry(name).or_insert_with(|| vec![Vec::new(); sets.len()])[number].push(bytes as f64);
            }
        }
    }
    let held = held.into_iter().map(|(name, values)| Row { key: name.clone(), name, unit: DiffUnit::Bytes, values });
    rows.extend(held);
    rows.retain(|row| row.values.iter().any(|values| !values.is_empty()));
    rows
}

/// Who held memory at the peak, bytes: components, then libraries.
fn holders(attribution: &Attribution) -> BTreeMap<String, u64> {
    let mut holders: BTreeMap<String, u64> = BTreeMap::new();
    for (name, holding) in &attribution.components {
        holders.insert(format!("component {name}"), holding.peak_bytes);
    }
    holders.insert("component unattributed".into(), attribution.unattributed_peak_bytes);
    for library in attribution.libraries.iter().filter(|library| !library.library.is_empty()) {
        let file = library.library.rsplit('/').next().unwrap_or(&library.library);
        *holders.entry(format!("library {file} ({})", library.component)).or_default() += library.bytes;
    }
    holders
}

/// What else differs between the sets, and what is left out of them.
fn notes(sets: &[Set]) -> Vec<String> {
    let mut notes = Vec::new();
    let first = sets[0].header();
    for set in sets {
        let header = set.header();
        if header.host != first.host {
            notes.push(format!("{} is of another machine ({}, not {}).", set.name, header.host, first.host));
        }
        if header.command != first.command {
            notes.push(format!("{} is of another command line than {}.", set.name, sets[0].name));
        }
        let limit = |set: &Set| set.runs().next().and_then(|(run, _)| run.limit_bytes);
        if limit(set) != limit(&sets[0]) {
            notes.push(format!("{} was made under another limit than {}.", set.name, sets[0].name));
        }
        if header.kind != first.kind {
            notes.push(format!(
                "{} is of another bursar command than {}, which may take memory itself.",
                set.name, sets[0].name
            ));
        }
        if header.placement != first.placement {
            notes.push(format!(
                "{} was measured by '{}', {} by '{}'.",
                set.name, header.placement, sets[0].name, first.placement
            ));
        }
        let doubts = set.runs().flat_map(|(_, account)| &account.doubts);
        if let Some(doubt) =
            doubts.max_by_key(|doubt| doubt.missing_bytes()).filter(|doubt| doubt.missing_bytes().is_some())
        {
            notes.push(format!("Memory is missing from figures of {}: {}.", set.name, doubt.sentence));
        }
        notes.extend(set.left_out.iter().map(|(file, why)| format!("{} is left out: {why}.", file.display())));
    }
    notes
}
