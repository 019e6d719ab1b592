//! The formats by name.

use std::fmt;
use std::str::FromStr;

/// A format that a record can be exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Everything, as one object.
    Json,
    /// The time lines, one value per line.
    Csv,
    /// The same columns as CSV, for pandas, DuckDB, Spark.
    Parquet,
    /// Counter tracks for ui.perfetto.dev and chrome://tracing.
    Perfetto,
    /// memnesia's text, of what `bursar attribute` found.
    Memnesia,
    /// A VerticalPodAutoscaler's recommendation, of one record or of several.
    Vpa,
}

/// A name that is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a format to export to; choose json, csv, parquet, perfetto, memnesia or vpa")]
pub struct ParseFormatError(String);

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] =
        [Format::Json, Format::Csv, Format::Parquet, Format::Perfetto, Format::Memnesia, Format::Vpa];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::Perfetto => "perfetto",
            Format::Memnesia => "memnesia",
            Format::Vpa => "vpa",
        })
    }
}

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = |format: &Format| format.to_string().eq_ignore_ascii_case(text);
        Format::ALL.into_iter().find(named).ok_or_else(|| ParseFormatError(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name_and_no_other() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert_eq!("CSV".parse(), Ok(Format::Csv));
        let error = "xml".parse::<Format>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'xml' is not a format to export to; choose json, csv, parquet, perfetto, memnesia or vpa"
        );
    }
}
