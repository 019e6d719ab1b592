//! What a record says of one run, or of several equal ones, in figures.

use model::{Header, Observation, RunAccount, Spread};
use schemars::JsonSchema;
use serde::Serialize;

use crate::repeated::{Unfinished, is_complete};

/// The account of the run of median length, and with `-n` all of them, the spread of those that came to their end,
/// and what is missing.
#[derive(JsonSchema, Serialize)]
pub struct RunFigures<'a> {
    #[serde(flatten)]
    account: &'a RunAccount,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    runs: &'a [RunAccount],
    #[serde(skip_serializing_if = "Option::is_none")]
    variability: Option<Variability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<Unfinished>,
}

/// Figures over several equal runs.
#[derive(JsonSchema, Serialize)]
struct Variability {
    wall_seconds: Option<Spread>,
    app_max_rss_bytes: Option<Spread>,
    peak_charge_bytes: Option<Spread>,
}

/// The account that stands for all is of the run of median length.
pub fn run_figures<'a>(header: &Header, runs: &[Observation], accounts: &'a [RunAccount]) -> Option<RunFigures<'a>> {
    let unfinished = Unfinished::of(header, &runs.iter().collect::<Vec<_>>());
    let complete = runs.iter().zip(accounts).filter(|(run, _)| unfinished.is_none() || is_complete(run));
    let mut by_length: Vec<&RunAccount> = complete.map(|(_, account)| account).collect();
    if by_length.is_empty() {
        by_length.extend(accounts);
    }
    by_length.sort_by(|a, b| a.wall_seconds.total_cmp(&b.wall_seconds));
    let account = *by_length.get(by_length.len().checked_sub(1)? / 2)?;
    let spread = |of: fn(&RunAccount) -> Option<f64>| {
        Spread::of(&by_length.iter().filter_map(|account| of(account)).collect::<Vec<_>>())
    };
    let variability = (by_length.len() > 1).then(|| Variability {
        wall_seconds: spread(|a| Some(a.wall_seconds)),
        app_max_rss_bytes: spread(|a| a.app_max_rss_bytes.map(|v| v as f64)),
        peak_charge_bytes: spread(|a| a.peak_charge_bytes.map(|v| v as f64)),
    });
    Some(RunFigures { account, runs: if accounts.len() > 1 { accounts } else { &[] }, variability, unfinished })
}
