//! A record, or a trace's curve, in formats that other tools read. `docs/record.md` describes them.

mod csv;
mod format;
mod json;
mod memnesia;
mod parquet;
mod perfetto;
mod rows;
mod trace;

use std::io::{self, BufWriter, Write};

use record::Record;

pub use format::{Format, ParseFormatError};
pub use trace::trace_csv;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output could not be written.
    #[error("the export could not be written: {0}")]
    Write(#[from] io::Error),
    /// The Parquet writer refused.
    #[error("the Parquet file could not be written: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// memnesia's format has room for nothing else.
    #[error("memnesia's format is of records of `bursar attribute`; this record has no attribution")]
    NoAttribution,
}

/// Writes a record in a format, piece by piece.
///
/// # Errors
/// [`Error::NoAttribution`]; else if `out` cannot be written: what was written until then is no valid file.
pub fn export(record: &Record, format: Format, out: &mut (dyn Write + Send)) -> Result<(), Error> {
    let mut out = BufWriter::new(out);
    match format {
        Format::Json => json::write(record, &mut out)?,
        Format::Csv => csv::write(record, &mut out)?,
        Format::Parquet => parquet::write(record, &mut out)?,
        Format::Perfetto => perfetto::write(record, &mut out)?,
        Format::Memnesia => {
            memnesia::write(record, record.attributions.last().ok_or(Error::NoAttribution)?, &mut out)?;
        }
    }
    Ok(out.flush()?)
}
