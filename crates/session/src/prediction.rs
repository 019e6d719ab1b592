//! What the next run of a command needs, from past runs of its kind.

mod learn;
mod past;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, bail};
use model::{Bytes, Program, RecordKind};
use predict::{
    AskError, Beyond, Confidence, Evidence, Forecast, History, INPUT_BYTES, MIN_RUNS, Need, Past, Plan, Run, features,
    not_given, unknown,
};
use regex::Regex;
use report::predict::Answer;

use crate::bench::header;
use crate::inputs;
use crate::kind::Kind;
use crate::state::state_path;
use learn::Inputs;
use past::Here;

const NO_SIZE: &str = "the size of the input is unknown: the command names no file that is here. Give it: --size 10G";

/// What a prediction is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments; it may be empty where the kind is named.
    pub command: Vec<OsString>,
    /// Files and folders that past runs are read from; empty: the records that bursar keeps.
    pub from: Vec<PathBuf>,
    /// Total size of the input; `None`: that of the files named in the command, and of standard input.
    pub size: Option<Bytes>,
    /// Values of further features, by name.
    pub features: Vec<(String, f64)>,
    /// How likely the request must be enough.
    pub confidence: Confidence,
    /// Past runs whose kind matches are used, whatever the command.
    pub kind: Option<Regex>,
    /// Whether only the runs are planned that make an answer possible.
    pub plan: bool,
    /// Inputs that the command is run with first; `Some` without any: those that `scale_with` prints.
    pub learn: Option<Vec<PathBuf>>,
    /// A shell command that prints an input of about so many bytes as `{}` says.
    pub scale_with: Option<String>,
    /// Whether records of other machines are used, too.
    pub other_machine: bool,
}

/// What came of it.
pub enum Predicted {
    /// The cheapest runs that make an answer possible.
    Plan(Plan),
    /// What the next run needs.
    Answer(Box<Answer>),
}

/// Predicts from past runs, after those that are to be made first.
///
/// # Errors
/// A sentence if there are too few past runs of the kind, if what is asked for cannot be known, or if a run to learn from fails.
pub fn predict(options: &Options) -> anyhow::Result<Predicted> {
    let words: Vec<String> = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let folder = std::env::current_dir().context("the current folder is unknown")?;
    let kind = Kind::of(&words, &folder);
    let name = match (&options.kind, &kind) {
        (Some(pattern), _) => pattern.to_string(),
        (None, Some(kind)) => kind.name.clone(),
        (None, None) => bail!("the command has no program"),
    };
    let program = Program::of(&words).map(|program| program.name);
    let is_of_kind = |past: &Past| match &options.kind {
        Some(pattern) => pattern.is_match(&past.kind) || pattern.is_match(&past.program),
        None => past.kind == name || Some(&past.kind) == program.as_ref(),
    };
    let machine = header(RecordKind::Run, &options.command);
    let here = Here {
        machine: Some(&machine).filter(|_| !options.other_machine),
        build: kind
            .as_ref()
            .filter(|_| options.kind.is_none())
            .and_then(|kind| program.clone().zip(inputs::build(kind, &folder))),
    };
    let mut asked = asked(options, kind.as_ref());
    if options.plan || options.learn.is_some() {
        let Some(kind) = &kind else { bail!("the command has no program") };
        let size = asked.get(INPUT_BYTES).copied();
        let known = match options.from.is_empty() && !state_path()?.is_dir() {
            true => Vec::new(),
            false => past::read(&paths(options)?, &here)?.runs,
        };
        let known = known.iter().filter(|past| is_of_kind(past) && matches!(past.floor, Some(Need::Exactly(_))));
        let known: Vec<f64> = known.filter_map(|past| past.features.get(INPUT_BYTES).copied()).collect();
        let planned = || Ok::<Plan, anyhow::Error>(Plan::of(&name, size.context(NO_SIZE)?, &known));
        if options.plan {
            return Ok(Predicted::Plan(planned()?));
        }
        match (&options.learn, &options.scale_with) {
            (_, Some(with)) => {
                let bytes = &planned()?.planned_bytes;
                learn::learn(&options.command, kind, &folder, &Inputs::Made { with, bytes })?;
            }
            (Some(paths), None) if !paths.is_empty() => {
                learn::learn(&options.command, kind, &folder, &Inputs::Named(paths))?;
            }
            _ => bail!("--learn takes inputs, or --scale-with 'head -c {{}} INPUT'"),
        }
    }
    let mut evidence = past::read(&paths(options)?, &here)?;
    let (mut runs, others): (Vec<Past>, Vec<Past>) = evidence.runs.drain(..).partition(is_of_kind);
    for other in others {
        evidence.leave_out(&other.source, format!("another kind: {}", other.kind));
    }
    if runs.iter().any(|run| run.features.contains_key(INPUT_BYTES)) {
        if !asked.contains_key(INPUT_BYTES) {
            bail!(NO_SIZE);
        }
        runs.retain(|run| {
            let is_known = run.features.contains_key(INPUT_BYTES);
            if !is_known {
                evidence.leave_out(&run.source, "the size of its input is unknown");
            }
            is_known
        });
    } else if !runs.is_empty() {
        if options.size.is_some() {
            bail!("no past run of '{name}' tells the size of its input, so --size says nothing; leave it out");
        }
        asked.remove(INPUT_BYTES);
    }
    for (name, _) in &options.features {
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
    // What must fit must fit, though budgets, which are fewer, say less.
    let both = knee.iter().chain(&floor).max_by(|a, b| a.ask_bytes.total_cmp(&b.ask_bytes));
    let from = both.cloned().context("nothing was predicted")?;
    let ratios = features
        .iter()
        .zip(&values)
        .zip(&from.seen)
        .map(|((name, value), (_, most))| Beyond { feature: name.clone(), ratio: value.max(1.0) / most.max(1.0) });
    let beyond = ratios.filter(|beyond| beyond.ratio > 1.0).max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    // A size that is that of all runs is no feature.
    let is_size_known = !runs.is_empty() && runs.iter().all(|run| run.features.contains_key(INPUT_BYTES));
    let is_feature = asked.contains_key(INPUT_BYTES) && features[0] == INPUT_BYTES;
    let extrapolation = is_size_known.then_some(if is_feature { from.extrapolation } else { 1.0 });
    let unknown = unknown(&runs, &asked, &features);
    let not_given = not_given(&runs, &asked);
    let asked = asked.into_iter().filter(|(name, _)| features.contains(name)).collect();
    Ok(Predicted::Answer(Box::new(Answer {
        kind: name,
        runs,
        left_out: evidence.left_out,
        features: asked,
        confidence: options.confidence,
        floor,
        knee,
        asked: from,
        extrapolation,
        beyond,
        unknown,
        not_given,
    })))
}

fn paths(options: &Options) -> anyhow::Result<Vec<PathBuf>> {
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
fn asked(options: &Options, kind: Option<&Kind>) -> BTreeMap<String, f64> {
    let mut asked = kind.map(|kind| kind.numbers.clone()).unwrap_or_default();
    let sizes = kind.map(|kind| inputs::sizes(kind, true)).unwrap_or_default();
    asked.extend(sizes.into_iter().map(|(name, value)| (name.to_string(), value as f64)));
    asked.extend(inputs::environment());
    asked.extend(options.size.map(|Bytes(size)| (INPUT_BYTES.to_string(), size as f64)));
    asked.extend(options.features.iter().cloned());
    asked
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
        "{error} of '{kind}'{left_out}. The cheapest way to get {MIN_RUNS}: `bursar run -- COMMAND` with {inputs} (see --plan and --learn); or name a history: --from"
    )
}
