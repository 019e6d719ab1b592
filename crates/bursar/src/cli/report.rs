//! The command line of `bursar report`.

use std::path::PathBuf;

use clap::Args;
use curve::intermittent::Checkpoint;

use super::values::{checkpoint, rate};
use super::{ADVANCED, Results};

/// `bursar report`
#[derive(Debug, Args)]
#[command(mut_arg("json", |arg| arg.help("Write the figures as JSON to FILE, or to standard output with -, instead of printing the report")))]
#[command(mut_arg("html", |arg| arg.help("Write the report as one HTML page that opens without a network, instead of printing it")))]
#[command(mut_arg("record", |arg| arg.help("Keep the record that is made of several, or of a folder of logs, in FILE")))]
#[command(mut_arg("redact", |arg| arg.help("Replace what the regular expression PATTERN matches (its first group, if it has one) in the command line and in --prepare; may be given more than once")))]
#[command(mut_arg("verbose", |arg| arg.hide(true)))]
#[command(mut_arg("quiet", |arg| arg.help("Do not print the report")))]
#[command(after_help = "Examples:\n  \
    bursar report job.bursar\n  \
    bursar report job.bursar --html page.html\n  \
    bursar report job.bursar --format csv -o job.csv\n  \
    bursar report job.bursar --format perfetto -o job.json      for ui.perfetto.dev\n  \
    bursar report mon.bursar tue.bursar --format vpa            for Kubernetes\n  \
    bursar report node1/*.bursar node2/*.bursar --record job.bursar\n  \
    bursar report --replay solver.bursar                        of bursar watch\n  \
    bursar report memory/                                       the tasks of a workflow, by rule\n\n\
    Several records must be of the ranks or nodes of one job of Slurm or mpirun,\n\
    made by bursar run: the report is of the whole job. A record may still be\n\
    growing, or have been cut short. It is an SQLite file: sqlite3 job.bursar .schema")]
pub struct Report {
    /// A record, or several of one job; or a folder of records of a workflow's tasks, which are summed by rule; or the
    /// folders of logs that bursar attribute left; or a file that bursar advise --stats wrote, - for standard input.
    /// Without one, the newest records are listed
    #[arg(value_name = "RECORD")]
    pub records: Vec<PathBuf>,
    /// Write the record as json, csv, parquet, perfetto, memnesia or vpa instead of printing the report
    #[arg(long, short, value_name = "FORMAT", conflicts_with_all = ["json", "html", "replay", "phases"])]
    pub format: Option<export::Format>,
    /// The file for --format, - for standard output [default: standard output]
    #[arg(long, short, value_name = "FILE", requires = "format")]
    pub output: Option<PathBuf>,
    /// Print each interval of a record of bursar watch; on a terminal, show them at their original pace
    #[arg(long, conflicts_with_all = ["html", "phases"])]
    pub replay: bool,
    /// Break every component of a record of bursar attribute down by shared object
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub by_library: bool,
    #[command(flatten)]
    pub results: Results,
    #[command(flatten)]
    pub phases: Phases,
}

/// What intermittent tracking would have measured in records that were tracked all the time.
#[derive(Debug, Args)]
#[command(next_help_heading = ADVANCED)]
pub struct Phases {
    /// Compute what intermittent tracking would have measured in records that were tracked all the time (watch --always): with
    /// fixed thresholds from 0.05 to 0.3, and with the adaptive one, beside always on
    #[arg(long, hide_short_help = true)]
    pub phases: bool,
    /// Samples in the moving averages (k)
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=100), hide_short_help = true)]
    pub width: u32,
    /// Change of the working set that is allowed within a phase
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = rate, hide_short_help = true)]
    pub wss_threshold: f64,
    /// Initial value of the adaptive threshold
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = rate, hide_short_help = true)]
    pub threshold: f64,
    /// Intervals without tracking until a check: at first, added after a check that found no change, and at most
    #[arg(long, value_name = "FIRST,STEP,MOST", default_value = "10,5,20", value_parser = checkpoint, hide_short_help = true)]
    pub checkpoint: Checkpoint,
}
