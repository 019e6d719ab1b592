//! `bursar export`: records in other formats.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::Context;
use record::Record;

use crate::cli::report::Export;
use crate::status::Status;

pub fn export(options: &Export) -> anyhow::Result<Status> {
    let records = options.records.iter().map(|path| Record::open(path)).collect::<Result<Vec<_>, _>>()?;
    let mut out: Box<dyn Write + Send> = match &options.output {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("{} could not be made", path.display()))?;
            Box::new(BufWriter::new(file))
        }
        None => Box::new(BufWriter::new(std::io::stdout())),
    };
    ::export::export(&records, options.format, &mut out)?;
    out.flush().context("the export could not be written to its end")?;
    Ok(Status::of(0))
}
