//! `bursar predict`: what the next run of a command needs, from past runs of its kind.

mod answer;
pub mod inputs;
pub mod kind;
mod past;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ::predict::{AskError, Evidence, Forecast, History, INPUT_BYTES, MIN_RUNS, Need, Past, Run};
use anyhow::{Context, bail};
use model::{Bytes, Program};

use crate::cli::predict::Predict;
use crate::input::is_dash;
use crate::results::{state_path, write_json};
use crate::say;
use crate::status::Status;
use answer::Answer;
use kind::Kind;

/// Runs for each feature beyond the first: with fewer, a plane fits anything.
const RUNS_PER_FEATURE: usize = 4;

pub fn predict(options: &Predict) -> anyhow::Result<Status> {
    let words: Vec<String> = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let folder = std::env::current_dir().context("the current folder is unknown")?;
    let kind = Kind::of(&words, &folder);
    let name = match (&options.kind, &kind) {
        (Some(pattern), _) => pattern.to_string(),
        (None, Some(kind)) => kind.name.clone(),
        (None, None) => bail!("the command has no program"),
    };
    let mut evidence = past::read(&paths(options)?)?;
    let program = Program::of(&words).map(|program| program.name);
    let is_of_kind = |past: &Past| match &options.kind {
        Some(pattern) => pattern.is_match(&past.kind) || pattern.is_match(&past.program),
        None => past.kind == name || Some(&past.kind) == program.as_ref(),
    };
    let (mut runs, others): (Vec<Past>, Vec<Past>) = evidence.runs.drain(..).partition(is_of_kind);
    for other in others {
        evidence.leave_out(&other.source, format!("another kind: {}", other.kind));
    }
    let asked = asked(options, kind.as_ref());
    if runs.iter().any(|run| run.features.contains_key(INPUT_BYTES)) {
        if !asked.contains_key(INPUT_BYTES) {
            bail!("the size of the input is unknown: the command names no file that is here. Give it: --size 10G");
        }
        runs.retain(|run| {
            let is_known = run.features.contains_key(INPUT_BYTES);
            if !is_known {
                evidence.leave_out(&run.source, "the size of its input is unknown");
            }
            is_known
        });
    }
    for (name, _) in &options.feature {
        if !runs.is_empty() && !runs.iter().any(|run| run.features.contains_key(name)) {
            let known: BTreeSet<&String> = runs.iter().flat_map(|run| run.features.keys()).collect();
            bail!(
                "no past run has the feature {name}; they have: {}",
                known.into_iter().cloned().collect::<Vec<_>>().join(", ")
            );
        }
    }
    let features = features(&runs, &asked);
    let values: Vec<f64> = features.iter().map(|name| asked.get(name).copied().unwrap_or(1.0)).collect();
    let forecast = |need: fn(&Past) -> Option<Need>| -> Result<Forecast, AskError> {
        let mut history = History::new(options.confidence);
        for run in &runs {
            let of = |name: &String| run.features.get(name).copied().unwrap_or(1.0);
            if let Some(need) = need(run) {
                history.learn(Run { features: features.iter().map(of).collect(), need, seconds: run.seconds });
            }
        }
        history.ask(&values, None)
    };
    let floor = forecast(|run| run.floor);
    let knee = forecast(|run| run.knee).ok();
    let floor = match (floor, &knee) {
        (Ok(floor), _) => Some(floor),
        (Err(_), Some(_)) => None,
        (Err(error), None) => bail!("{}", too_few(&error, &name, asked.get(INPUT_BYTES).copied(), &evidence)),
    };
    let asked = asked.into_iter().filter(|(name, _)| features.contains(name)).collect();
    let from = knee.clone().or_else(|| floor.clone()).context("nothing was predicted")?;
    let answer = Answer {
        kind: name,
        runs,
        left_out: evidence.left_out,
        features: asked,
        confidence: options.confidence,
        floor,
        knee,
        asked: from,
    };
    if !options.json.as_deref().is_some_and(is_dash) {
        say::result(format_args!("{}", answer.text()))?;
    }
    if let Some(path) = &options.json {
        write_json(path, &answer.json())?;
    }
    Ok(Status::of(0))
}

fn paths(options: &Predict) -> anyhow::Result<Vec<PathBuf>> {
    if !options.from.is_empty() {
        return Ok(options.from.clone());
    }
    let folder = state_path()?;
    if !folder.is_dir() {
        bail!("no past run is recorded in {}. Record some: bursar run -- COMMAND", folder.display());
    }
    Ok(vec![folder])
}

/// What is known of the run that is asked for.
fn asked(options: &Predict, kind: Option<&Kind>) -> BTreeMap<String, f64> {
    let mut asked = kind.map(|kind| kind.numbers.clone()).unwrap_or_default();
    let sizes = kind.map(|kind| inputs::sizes(kind, true)).unwrap_or_default();
    asked.extend(sizes.into_iter().map(|(name, value)| (name.to_string(), value as f64)));
    asked.extend(options.size.map(|Bytes(size)| (INPUT_BYTES.to_string(), size as f64)));
    asked.extend(options.feature.iter().cloned());
    asked
}

/// Features that all runs have, the size of the input first, and of the others those in which they differ among themselves or from the
/// run that is asked for. At least one, which may be of no run: then all are alike.
fn features(runs: &[Past], asked: &BTreeMap<String, f64>) -> Vec<String> {
    let shared = asked.keys().filter(|name| runs.iter().all(|run| run.features.contains_key(*name)));
    let differs = |name: &&String| {
        let values = runs.iter().map(|run| run.features[*name]).chain([asked[*name]]);
        values.map(f64::to_bits).collect::<BTreeSet<u64>>().len() > 1
    };
    let mut features: Vec<String> = shared.filter(|name| *name == INPUT_BYTES || differs(name)).cloned().collect();
    features.sort_by_key(|name| name != INPUT_BYTES);
    features.truncate((runs.len() / RUNS_PER_FEATURE).max(1));
    if features.is_empty() {
        features.push(INPUT_BYTES.to_string());
    }
    features
}

fn too_few(error: &AskError, kind: &str, size: Option<f64>, evidence: &Evidence) -> String {
    let left_out = match evidence.left_out.len() {
        0 => String::new(),
        count => format!(
            " ({count} others are left out, such as {}: {})",
            evidence.left_out[0].record, evidence.left_out[0].reason
        ),
    };
    let inputs = match size {
        Some(size) => {
            let share = |part: f64| Bytes((size / part) as u64);
            format!("inputs of about {}, {} and {}", share(16.0), share(8.0), share(4.0))
        }
        None => "three small inputs of different sizes".to_string(),
    };
    format!(
        "{error} of '{kind}'{left_out}. The cheapest way to get {MIN_RUNS}: `bursar run -- COMMAND` with {inputs}; or name a history: --from"
    )
}
