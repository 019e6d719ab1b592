//! The figures of the ranks or nodes of one job as JSON.

use std::path::Path;

use anyhow::Context;
use model::RunAccount;
use record::Record;
use report::{RunFigures, run_figures};
use serde::Serialize;

use crate::results::write_json;

pub use session::merge::{is_merged, merged};

/// What `--json` prints: the account of all together, and that of each.
#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    whole: RunFigures<'a>,
    parts: Vec<PartJson<'a>>,
}

#[derive(Serialize)]
struct PartJson<'a> {
    host: &'a str,
    rank: Option<u32>,
    #[serde(flatten)]
    account: &'a RunAccount,
}

/// Writes the figures of a merged record as JSON.
pub fn write_figures(path: &Path, record: &Record, accounts: &[RunAccount]) -> anyhow::Result<()> {
    let parts = record.runs.iter().zip(accounts).filter_map(|(run, account)| {
        let origin = run.origin.as_ref()?;
        Some(PartJson { host: &origin.host, rank: origin.rank, account })
    });
    let whole = accounts
        .get(..1)
        .and_then(|whole| run_figures(&record.header, &record.runs, whole))
        .context("there is nothing to merge")?;
    write_json(path, &Json { whole, parts: parts.collect() })
}
