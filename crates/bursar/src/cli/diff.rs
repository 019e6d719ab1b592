//! The command line of `bursar diff`.

use std::path::PathBuf;

use clap::Args;

/// `bursar diff`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar diff before.bursar after.bursar\n  \
    bursar diff before/ after/ --html page.html\n  \
    bursar diff v1.bursar v2.bursar v3.bursar --json -\n\n\
    Each argument is a record, or a folder of records: its runs are taken to be\n\
    equal. Every other one is compared with the first. Whether a change is beyond\n\
    the noise of repeated runs is known if one of the two has several runs:\n\
    bursar run -n 10.")]
pub struct Diff {
    /// Records of bursar run, budget or attribute, or folders of them
    #[arg(value_name = "RECORD|FOLDER", num_args = 2.., required = true)]
    pub records: Vec<PathBuf>,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the figures, and the curves drawn over each other, as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
