//! The command lines of `bursar report` and `bursar export`.

use std::path::PathBuf;

use clap::Args;

/// `bursar report`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar report job.bursar\n  \
    bursar report job.bursar --html page.html\n\n\
    The record may still be being written, or have been cut short.")]
pub struct Report {
    /// A record
    pub record: PathBuf,
    /// Write the report as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `bursar export`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar export job.bursar --format csv > job.csv\n  \
    bursar export job.bursar --format perfetto -o job.json   for ui.perfetto.dev\n\n\
    A record is an SQLite file: sqlite3 job.bursar .schema")]
pub struct Export {
    /// A record
    pub record: PathBuf,
    /// json, csv, parquet or perfetto
    #[arg(long, short)]
    pub format: export::Format,
    /// Where to [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
