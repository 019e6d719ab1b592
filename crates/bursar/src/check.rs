//! `bursar check`: whether a command needs more than a maximum, or more than it did before.

use std::path::Path;

use ::check::{Ended, Options};
use ::compare::Verdict;
use anyhow::{Context, ensure};
use history::input::is_dash;
use report::check::Answer;
use session::say::{self, tell};
use session::status::Status;

use crate::cli::check::Check;
use crate::results::{check_file, check_json, write_json};
use session::replace::replace;

/// Exit statuses, beside 0 and those of bursar itself.
const FAILED: i32 = 1;
const UNDECIDED: i32 = 2;

pub fn check(options: &Check) -> anyhow::Result<Status> {
    let to_standard_output = [&options.json, &options.markdown].map(|path| path.as_deref().is_some_and(is_dash));
    ensure!(
        to_standard_output != [true; 2],
        "--json and --markdown cannot both be standard output: name a file for one"
    );
    check_json(options.json.as_deref())?;
    let markdown = options.markdown.as_deref().filter(|path| !is_dash(path));
    for (what, path) in [("JUnit XML", options.junit.as_deref()), ("Markdown", markdown)] {
        path.map_or(Ok(()), |path| check_file(what, path))?;
    }
    let answer = match ::check::check(&asked(options))? {
        Ended::Checked(answer) => answer,
        Ended::By(status) => return Ok(status),
    };
    deliver(options, &answer, to_standard_output.contains(&true))?;
    Ok(Status::of(match answer.verdict() {
        Verdict::Passed => 0,
        Verdict::Failed => FAILED,
        Verdict::Undecided => UNDECIDED,
    }))
}

fn asked(options: &Check) -> Options {
    Options {
        command: options.command.clone(),
        max: options.max,
        baseline: options.baseline.clone(),
        tolerance: options.tolerance,
        figures: options.figures.clone(),
        runs: options.runs,
        from: options.from.clone(),
        other_machine: options.other_machine,
        timeout: options.timeout,
        input: options.input.clone(),
        prepare: options.prepare.clone(),
        record: options.record.clone(),
    }
}

fn deliver(options: &Check, answer: &Answer, standard_output_is_taken: bool) -> anyhow::Result<()> {
    match standard_output_is_taken {
        true => tell!("{}", answer.sentence()),
        false => say::result(format_args!("{}\n", answer.sentence()))?,
    }
    answer.notes.iter().for_each(|note| tell!("bursar: {note}"));
    if let Some(path) = &options.json {
        write_json(path, &answer.json())?;
    }
    if let Some(path) = &options.junit {
        write_text("JUnit XML", path, &answer.junit())?;
    }
    match &options.markdown {
        Some(path) if is_dash(path) => say::result(format_args!("{}", answer.markdown())),
        Some(path) => write_text("Markdown", path, &answer.markdown()),
        None => Ok(()),
    }
}

fn write_text(what: &str, path: &Path, text: &str) -> anyhow::Result<()> {
    replace(path, |out| out.write_all(text.as_bytes()))
        .with_context(|| format!("the {what} could not be written to {}", path.display()))
}
