//! `bursar predict`: what the next run of a command needs, from past runs of its kind.

use std::path::Path;

use anyhow::bail;
use history::input::is_dash;
use history::prediction::{self, Options};
use model::RecordKind;
use serde::Serialize;
use session::bench::header;
use session::learn::{Inputs, learn};
use session::say;
use session::status::Status;

use crate::cli::predict::Predict;
use crate::results::{check_json, write_json};

pub fn predict(options: Predict) -> anyhow::Result<Status> {
    check_json(options.json.as_deref())?;
    let asked = Options {
        command: options.command,
        from: options.from,
        size: options.size,
        features: options.feature,
        confidence: options.confidence,
        kind: options.kind,
        other_machine: options.other_machine,
    };
    let json = options.json.as_deref();
    let machine = header(RecordKind::Run, &asked.command);
    if options.plan {
        let plan = prediction::plan(&asked, &machine)?;
        return print(json, &plan.text(), &plan);
    }
    match (&options.learn, &options.scale_with) {
        (None, _) => {}
        (Some(_), Some(with)) => {
            let bytes = &prediction::plan(&asked, &machine)?.planned_bytes;
            learn(&asked.command, &Inputs::Made { with, bytes })?;
        }
        (Some(paths), None) if !paths.is_empty() => learn(&asked.command, &Inputs::Named(paths))?,
        (Some(_), None) => bail!("--learn takes inputs, or --scale-with 'head -c {{}} INPUT'"),
    }
    let answer = prediction::predict(&asked, &machine)?;
    print(json, &(answer.text() + &answer.left_out(options.verbose)), &answer.json())
}

/// What people read, and what tools read.
fn print(path: Option<&Path>, text: &str, json: &impl Serialize) -> anyhow::Result<Status> {
    if !path.is_some_and(is_dash) {
        say::result(format_args!("{text}"))?;
    }
    if let Some(path) = path {
        write_json(path, json)?;
    }
    Ok(Status::of(0))
}
