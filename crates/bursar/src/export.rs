//! Records in formats that other tools read.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;

use ::export::Format;
use anyhow::Context;
use record::Record;
use session::say;

use history::input::is_dash;
use session::replace::replace;

/// Writes records to a file, else, or for `-`, to standard output.
pub fn export(records: &[Record], format: Format, output: Option<&Path>) -> anyhow::Result<()> {
    let write = |out: &mut (dyn Write + Send)| ::export::export(records, format, out);
    match output.filter(|path| !is_dash(path)) {
        Some(path) => replace(path, write).with_context(|| format!("{} was not written", path.display())),
        None if std::io::stdout().is_terminal() => {
            let mut text = Vec::new();
            write(&mut text)?;
            say::result(format_args!("{}", String::from_utf8_lossy(&text)))
        }
        None => {
            let mut out = BufWriter::new(linux::standard_output::open().context("standard output cannot be written")?);
            write(&mut out)?;
            out.flush().context("the export could not be written to its end")
        }
    }
}
