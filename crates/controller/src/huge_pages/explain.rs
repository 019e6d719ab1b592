//! What was decided in a run of `bursar advise`, as it wrote it by `--stats`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use history::input::{is_dash, name, read};
use model::Explained;
use serde::Deserialize;

/// What is asked of the figures of a run.
#[derive(Deserialize)]
struct Stats {
    explained: Vec<Explained>,
}

/// The decisions in what `--stats` wrote; `None`: it is something else, such as a record.
///
/// # Errors
/// Standard input that is something else, for nothing else is read from there.
pub fn of_stats(path: &Path) -> anyhow::Result<Option<Vec<Explained>>> {
    if !is_dash(path) && !begins_as_json(path) {
        return Ok(None);
    }
    let stats: Stats = serde_json::from_str(&read(path)?)
        .with_context(|| format!("{} is not what bursar advise run --stats writes", name(path)))?;
    Ok(Some(stats.explained))
}

/// A record, and anything else of any size, is told from it by one byte. A pipe would be waited for.
fn begins_as_json(path: &Path) -> bool {
    let mut first = [0];
    path.is_file() && File::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok()) && first == *b"{"
}
