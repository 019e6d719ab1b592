//! `bursar export`: records in other formats.

use std::io::{BufWriter, IsTerminal, Write};

use anyhow::Context;

use crate::cli::report::Export;
use crate::opened;
use crate::replace::replace;
use crate::say;
use crate::status::Status;

pub fn export(options: &Export) -> anyhow::Result<Status> {
    let records = options.records.iter().map(|path| opened::open(path)).collect::<Result<Vec<_>, _>>()?;
    let write = |out: &mut (dyn Write + Send)| ::export::export(&records, options.format, out);
    match &options.output {
        Some(path) => replace(path, write).with_context(|| format!("{} was not written", path.display()))?,
        None if std::io::stdout().is_terminal() => {
            let mut text = Vec::new();
            write(&mut text)?;
            say::result(format_args!("{}", String::from_utf8_lossy(&text)))?;
        }
        None => {
            let mut out = BufWriter::new(linux::standard_output::open().context("standard output cannot be written")?);
            write(&mut out)?;
            out.flush().context("the export could not be written to its end")?;
        }
    }
    Ok(Status::of(0))
}
