//! The whole record as one JSON object.

use std::io::{self, Write};

use model::{Advice, Attribution, BudgetReport, Faults, Header, Observation, PagesRound, RunAccount, Trial};
use record::Record;
use schemars::JsonSchema;
use serde::Serialize;

/// The contents of `bursar report --format json`.
#[derive(JsonSchema, Serialize)]
pub struct Document<'a> {
    record_version: u32,
    complete: bool,
    header: &'a Header,
    notes: &'a [String],
    runs: Vec<Run<'a>>,
    trials: &'a [Trial],
    budget: Option<&'a BudgetReport>,
    pages: &'a [PagesRound],
    attributions: &'a [Attribution],
    faults: &'a [Faults],
    advice: &'a [Advice],
}

#[derive(JsonSchema, Serialize)]
struct Run<'a> {
    #[serde(flatten)]
    observation: &'a Observation,
    account: Option<&'a RunAccount>,
}

pub(crate) fn write(record: &Record, out: &mut impl Write) -> io::Result<()> {
    let run = |observation| Run { observation, account: record.accounts.get(&observation.run) };
    let document = Document {
        record_version: record::VERSION,
        complete: record.complete,
        header: &record.header,
        notes: &record.notes,
        runs: record.runs.iter().map(run).collect(),
        trials: &record.trials,
        budget: record.budget.as_ref(),
        pages: &record.pages,
        attributions: &record.attributions,
        faults: &record.faults,
        advice: &record.advice,
    };
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}
