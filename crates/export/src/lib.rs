//! A record, or a trace's curve, in formats that other tools read. `docs/record.md` describes them.

mod csv;
mod format;
mod json;
mod memnesia;
mod parquet;
mod perfetto;
mod rows;
mod trace;
mod vpa;
mod watch;

use std::io::{self, BufWriter, Write};

use record::Record;

pub use format::{Format, ParseFormatError};
pub use json::Document;
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
    /// Only one format has room for several records.
    #[error("{0} holds one record; only vpa is made from several")]
    Several(Format),
    /// There is nothing to write but a header.
    #[error(
        "{0} holds time lines, and this record has none; `bursar report` prints what it has, and --format json exports it"
    )]
    NoTimeLines(Format),
    /// A recommendation needs a figure.
    #[error(
        "a recommendation is made from records of `bursar budget`, `bursar run` or `bursar attribute`; this one says no memory"
    )]
    NoNeeds,
    /// A recommendation needs all of a run, and all of its memory.
    #[error(
        "no recommendation: {0}. Record a run that comes to its end without a limit, where a cgroup counts its memory \
         (`bursar doctor`)"
    )]
    NoWholeRun(String),
}

/// Writes a record, or several where the format has room for them, piece by piece.
///
/// # Errors
/// [`Error::NoAttribution`], [`Error::Several`], [`Error::NoTimeLines`], [`Error::NoNeeds`], [`Error::NoWholeRun`]; else if `out` cannot be written: what was written until then is no valid file.
pub fn export(records: &[Record], format: Format, out: &mut (dyn Write + Send)) -> Result<(), Error> {
    let mut out = BufWriter::new(out);
    if let (Format::Csv | Format::Parquet | Format::Perfetto, [record]) = (format, records) {
        return time_lines(&watch::with_rounds(record), format, out);
    }
    match (format, records) {
        (Format::Vpa, records) => vpa::write(records, &mut out)?,
        (Format::Json, [record]) => json::write(record, &mut out)?,
        (Format::Memnesia, [record]) => {
            memnesia::write(record, record.attributions.last().ok_or(Error::NoAttribution)?, &mut out)?;
        }
        _ => return Err(Error::Several(format)),
    }
    Ok(out.flush()?)
}

/// Writes a record in one of the formats that hold time lines.
fn time_lines(record: &Record, format: Format, mut out: impl Write + Send) -> Result<(), Error> {
    let has_points = record.runs.iter().flat_map(|run| &run.series).any(|series| !series.points.is_empty());
    // Perfetto's format also holds the runs and their processes.
    let has_slices = format == Format::Perfetto && !record.runs.is_empty();
    if !has_points && !has_slices {
        return Err(Error::NoTimeLines(format));
    }
    match format {
        Format::Parquet => parquet::write(record, &mut out)?,
        Format::Perfetto => perfetto::write(record, &mut out)?,
        _ => csv::write(record, &mut out)?,
    }
    Ok(out.flush()?)
}
