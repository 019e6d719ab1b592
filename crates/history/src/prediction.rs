//! What the next run of a command needs, from past runs of its kind.

mod past;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, bail};
use model::{Bytes, Header, Program};
use predict::{
    AskError, Beyond, Confidence, Evidence, Forecast, History, INPUT_BYTES, MIN_RUNS, Need, Past, Plan, Run, features,
    not_given, unknown,
};
use regex::Regex;
use report::predict::Answer;

use crate::inputs;
use crate::kind::Kind;
use crate::state::state_path;
use past::Here;

const NO_PROGRAM: &str = "the command has no program";
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
    /// Whether records of other machines are used, too.
    pub other_machine: bool,
}

/// The cheapest runs that make an answer possible.
///
/// # Errors
/// A sentence if the command or the size of its input is unknown, or if past runs cannot be read.
pub fn plan(options: &Options, machine: &Header) -> anyhow::Result<Plan> {
    let wanted = Wanted::of(options, machine)?;
    if wanted.kind.is_none() {
        bail!(NO_PROGRAM);
    }
    let size = wanted.features().get(INPUT_BYTES).copied();
    let runs = match options.from.is_empty() && !state_path()?.is_dir() {
        true => Vec::new(),
        false => wanted.read()?.runs,
    };
    let complete = runs.iter().filter(|past| wanted.is_its_kind(past) && matches!(past.floor, Some(Need::Exactly(_))));
    let sizes: Vec<f64> = complete.filter_map(|past| past.features.get(INPUT_BYTES).copied()).collect();
    Ok(Plan::of(&wanted.name, size.context(NO_SIZE)?, &sizes))
}

/// Predicts what the next run of the command needs on this machine.
///
/// # Errors
/// A sentence if there are too few past runs of the kind, or if the size of the input or a feature is unknown.
pub fn predict(options: &Options, machine: &Header) -> anyhow::Result<Answer> {
    let wanted = Wanted::of(options, machine)?;
    let mut asked = wanted.features();
    let mut evidence = wanted.read()?;
    let runs = wanted.usable_runs(&mut evidence, &mut asked)?;
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
        (Err(error), None) => bail!("{}", too_few(&error, &wanted.name, asked.get(INPUT_BYTES).copied(), &evidence)),
    };
    // What must fit must fit, though budgets, which are fewer, say less.
    let larger = knee.iter().chain(&floor).max_by(|a, b| a.ask_bytes.total_cmp(&b.ask_bytes));
    let from = larger.cloned().context("nothing was predicted")?;
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
    Ok(Answer {
        kind: wanted.name,
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
    })
}

/// Which past runs show what a command needs here.
struct Wanted<'a> {
    options: &'a Options,
    /// What the kind is called.
    name: String,
    kind: Option<Kind>,
    program: Option<String>,
    here: Here<'a>,
}

impl<'a> Wanted<'a> {
    fn of(options: &'a Options, machine: &'a Header) -> anyhow::Result<Wanted<'a>> {
        let words: Vec<String> = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let folder = std::env::current_dir().context("the current folder is unknown")?;
        let kind = Kind::of(&words, &folder);
        let name = match (&options.kind, &kind) {
            (Some(pattern), _) => pattern.to_string(),
            (None, Some(kind)) => kind.name.clone(),
            (None, None) => bail!(NO_PROGRAM),
        };
        let program = Program::of(&words).map(|program| program.name);
        let its_build = || program.clone().zip(inputs::build(kind.as_ref()?, &folder));
        let here = Here {
            machine: Some(machine).filter(|_| !options.other_machine),
            build: if options.kind.is_none() { its_build() } else { None },
        };
        Ok(Wanted { options, name, kind, program, here })
    }

    /// Past runs of every kind, and what could not be read.
    fn read(&self) -> anyhow::Result<Evidence> {
        past::read(&paths(self.options)?, &self.here)
    }

    fn is_its_kind(&self, past: &Past) -> bool {
        match &self.options.kind {
            Some(pattern) => pattern.is_match(&past.kind) || pattern.is_match(&past.program),
            None => past.kind == self.name || Some(&past.kind) == self.program.as_ref(),
        }
    }

    /// What is known of the run that is asked for.
    fn features(&self) -> BTreeMap<String, f64> {
        let mut features = self.kind.as_ref().map(|kind| kind.numbers.clone()).unwrap_or_default();
        let sizes = self.kind.as_ref().map(|kind| inputs::sizes(kind, true)).unwrap_or_default();
        features.extend(sizes.into_iter().map(|(name, value)| (name.to_string(), value as f64)));
        features.extend(inputs::environment());
        features.extend(self.options.size.map(|Bytes(size)| (INPUT_BYTES.to_string(), size as f64)));
        features.extend(self.options.features.iter().cloned());
        features
    }

    /// Takes the runs of the kind out of `evidence`. If some show the size of their input, so must all, and the command; if none does,
    /// the size is taken out of `asked`.
    fn usable_runs(&self, evidence: &mut Evidence, asked: &mut BTreeMap<String, f64>) -> anyhow::Result<Vec<Past>> {
        let (mut runs, others): (Vec<Past>, Vec<Past>) =
            evidence.runs.drain(..).partition(|past| self.is_its_kind(past));
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
            if self.options.size.is_some() {
                bail!(
                    "no past run of '{}' has the size of its input on record, so --size has no effect; leave it out",
                    self.name
                );
            }
            asked.remove(INPUT_BYTES);
        }
        for (name, _) in &self.options.features {
            if !runs.is_empty() && !runs.iter().any(|run| run.features.contains_key(name)) {
                let known: BTreeSet<&String> = runs.iter().flat_map(|run| run.features.keys()).collect();
                let known = known.into_iter().cloned().collect::<Vec<_>>().join(", ");
                bail!("no past run has the feature {name}; they have: {known}");
            }
        }
        Ok(runs)
    }
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
