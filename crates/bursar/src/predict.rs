//! `bursar predict`: what the next run of a command needs, from past runs of its kind.

use std::path::Path;

use serde::Serialize;
use session::input::is_dash;
use session::prediction::{self, Options, Predicted};
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
        plan: options.plan,
        learn: options.learn,
        scale_with: options.scale_with,
        other_machine: options.other_machine,
    };
    let json = options.json.as_deref();
    match prediction::predict(&asked)? {
        Predicted::Plan(plan) => print(json, &plan.text(), &plan),
        Predicted::Answer(answer) => print(json, &(answer.text() + &answer.left_out(options.verbose)), &answer.json()),
    }
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
