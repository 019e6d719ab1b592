//! The decisions of a run of `bursar advise`, read from its `--stats`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use history::input::{is_dash, name, read};
use model::Explained;
use serde::Deserialize;

/// The part of the statistics that is needed.
#[derive(Deserialize)]
struct Stats {
    explained: Vec<Explained>,
}

/// The decisions in a `--stats` file; `None`: the file is something else, such as a record.
///
/// # Errors
/// Standard input that is not a `--stats` file, since nothing else is read from there.
pub fn of_stats(path: &Path) -> anyhow::Result<Option<Vec<Explained>>> {
    if !is_dash(path) && !begins_as_json(path) {
        return Ok(None);
    }
    let stats: Stats = serde_json::from_str(&read(path)?)
        .with_context(|| format!("{} is not what bursar advise run --stats writes", name(path)))?;
    Ok(Some(stats.explained))
}

/// One byte distinguishes it from a record or any other file. Pipes are not opened, since a read would block.
fn begins_as_json(path: &Path) -> bool {
    let mut first = [0];
    path.is_file() && File::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok()) && first == *b"{"
}
