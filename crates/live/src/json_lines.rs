//! JSON lines: one object per line, written as they arise.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use linux::secure_file::Output;
use serde::Serialize;

use history::input::is_dash;

/// The file that they go to.
pub struct JsonLines {
    name: PathBuf,
    out: Box<dyn Write>,
}

impl JsonLines {
    /// Opens a file, or standard output for `-`.
    ///
    /// # Errors
    /// A sentence if it cannot be written.
    pub fn to(path: &Path) -> anyhow::Result<JsonLines> {
        if is_dash(path) {
            let out = linux::standard_output::open().context("standard output cannot be written")?;
            return Ok(JsonLines { name: "standard output".into(), out: Box::new(out) });
        }
        let file = Output::stream(path).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(JsonLines { name: path.into(), out: Box::new(file) })
    }

    /// Writes one line.
    ///
    /// # Errors
    /// A sentence if it cannot be written.
    pub fn write(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let line = model::printable_json(&serde_json::to_string(value)?) + "\n";
        let written = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush());
        written.with_context(|| format!("{} cannot be written", self.name.display()))
    }
}
