//! The whole record as one JSON object.

use std::io::{self, Write};

use model::{Advice, Attribution, BudgetReport, Faults, Header, Observation, PagesRound, RunAccount, Trial};
use record::Record;
use serde::Serialize;

/// The names are a contract, as those of the types inside are.
#[derive(Serialize)]
struct Document<'a> {
    record_version: u32,
    complete: bool,
    header: &'a Header,
    notes: &'a [String],
    runs: Runs<'a>,
    trials: &'a [Trial],
    budget: Option<&'a BudgetReport>,
    pages: &'a [PagesRound],
    attributions: &'a [Attribution],
    faults: &'a [Faults],
    advice: &'a [Advice],
}

struct Runs<'a>(&'a Record);

#[derive(Serialize)]
struct Run<'a> {
    #[serde(flatten)]
    observation: &'a Observation,
    account: Option<&'a RunAccount>,
}

impl Serialize for Runs<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let run = |observation| Run { observation, account: self.0.accounts.get(&observation.run) };
        serializer.collect_seq(self.0.runs.iter().map(run))
    }
}

pub(crate) fn write(record: &Record, out: &mut impl Write) -> io::Result<()> {
    let document = Document {
        record_version: record::VERSION,
        complete: record.complete,
        header: &record.header,
        notes: &record.notes,
        runs: Runs(record),
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
