//! `bursar recommend`: what jobs should ask for, by what the accounting tells of past ones.

use history::input::is_dash;
use session::say;
use session::slurm::accounting::{self, Options};
use session::status::Status;

use crate::cli::recommend::Recommend;
use crate::results::{style, write_json};

pub fn recommend(options: Recommend) -> anyhow::Result<Status> {
    let found = accounting::recommend(&Options {
        by: options.by,
        from: options.from,
        user: options.user,
        days: options.days,
        percentile: options.percentile,
        gatherer: options.gatherer,
        slurm_version: options.slurm_version,
    })?;
    if !options.json.as_deref().is_some_and(is_dash) {
        say::page_result(&report::terminal::jobs(&found, style()))?;
    }
    if let Some(path) = &options.json {
        write_json(path, &found)?;
    }
    Ok(Status::of(0))
}
