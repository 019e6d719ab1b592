//! The command lines of `bursar report`, `bursar export` and `bursar merge`.

use std::path::PathBuf;

use clap::Args;

use super::Results;

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
    bursar export job.bursar --format perfetto -o job.json   for ui.perfetto.dev\n  \
    bursar export mon.bursar tue.bursar --format vpa         for Kubernetes\n\n\
    A record is an SQLite file: sqlite3 job.bursar .schema")]
pub struct Export {
    /// A record; for vpa one or more
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// json, csv, parquet, perfetto, memnesia or vpa
    #[arg(long, short)]
    pub format: export::Format,
    /// Where to [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `bursar merge`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    mpirun -n 4 bursar run -- ./app\n  \
    bursar merge --record job.bursar node1/*.bursar node2/*.bursar\n\n\
    The records are of `bursar run` by every rank, or on every node, of one job\n\
    of Slurm or mpirun. What each showed is kept beside the sum, with its host.")]
pub struct Merge {
    /// The records of the ranks or nodes
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    #[command(flatten)]
    pub results: Results,
}
