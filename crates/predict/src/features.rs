//! Which numbers of a command a prediction is from, and which of them past runs do not explain.

use std::collections::{BTreeMap, BTreeSet};

use model::INPUT_BYTES;
use schemars::JsonSchema;
use serde::Serialize;

use crate::evidence::Past;

/// Runs for each feature beyond the first: with fewer, a plane fits anything.
const RUNS_PER_FEATURE: usize = 4;

/// A feature larger than in any run.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Beyond {
    /// Its name.
    pub feature: String,
    /// To the largest that was seen.
    pub ratio: f64,
}

/// A number of the command whose effect the past runs do not show, as it lies outside of what they had.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Unknown {
    /// Its name.
    pub feature: String,
    /// Of the run that is asked for.
    pub value: f64,
    /// The least and the largest of past runs.
    pub seen: (f64, f64),
}

/// A number in which the past runs differ, and which is not known of the run that is asked for.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct NotGiven {
    /// Its name.
    pub feature: String,
    /// The least and the largest of past runs.
    pub seen: (f64, f64),
}

/// Features that all runs have, and in which they differ among themselves or from the run that is asked for, the size of the input first. At least one, which may be of no run: then all are alike.
pub fn features(runs: &[Past], asked: &BTreeMap<String, f64>) -> Vec<String> {
    let shared = asked.keys().filter(|name| runs.iter().all(|run| run.features.contains_key(*name)));
    let differs = |name: &&String| {
        let values = runs.iter().map(|run| run.features[*name]).chain([asked[*name]]);
        values.map(f64::to_bits).collect::<BTreeSet<u64>>().len() > 1
    };
    let mut features: Vec<String> = shared.filter(differs).cloned().collect();
    features.sort_by_key(|name| name != INPUT_BYTES);
    features.truncate((runs.len() / RUNS_PER_FEATURE).max(1));
    if features.is_empty() {
        features.push(INPUT_BYTES.to_string());
    }
    features
}

/// The numbers of the command outside of what past runs had, where those cannot show what they change: they all had one, or were too
/// few to learn from it.
pub fn unknown(runs: &[Past], asked: &BTreeMap<String, f64>, features: &[String]) -> Vec<Unknown> {
    let outside = |(name, value): (&String, &f64)| {
        let seen = seen(runs, name)?;
        let is_learnt = features.contains(name) && seen.0 < seen.1;
        let is_outside = *value < seen.0 || *value > seen.1;
        (is_outside && !is_learnt).then(|| Unknown { feature: name.clone(), value: *value, seen })
    };
    asked.iter().filter(|(name, _)| *name != INPUT_BYTES).filter_map(outside).collect()
}

/// The numbers that all past runs have, in which they differ, and which are not known of the run that is asked for.
pub fn not_given(runs: &[Past], asked: &BTreeMap<String, f64>) -> Vec<NotGiven> {
    let shared = |name: &&String| runs.iter().all(|run| run.features.contains_key(*name));
    let names = runs.iter().take(1).flat_map(|run| run.features.keys()).filter(shared);
    let missing = names.filter(|name| !asked.contains_key(*name));
    missing
        .filter_map(|name| Some(NotGiven { feature: name.clone(), seen: seen(runs, name)? }))
        .filter(|missing| missing.seen.0 < missing.seen.1)
        .collect()
}

/// The least and the largest value of a feature.
fn seen(runs: &[Past], feature: &str) -> Option<(f64, f64)> {
    let values = || runs.iter().filter_map(|run| run.features.get(feature).copied());
    Some((values().reduce(f64::min)?, values().reduce(f64::max)?))
}
