//! The command line of `bursar predict`.

use std::ffi::OsString;
use std::path::PathBuf;

use ::predict::Confidence;
use clap::Args;
use model::Bytes;
use regex::Regex;

use super::ADVANCED;

/// `bursar predict`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar predict -- ./solver larger.dat           from the records of past runs\n  \
    bursar predict --size 40G -- ./solver x.dat     for an input that is not here\n  \
    bursar predict --from trace.txt --kind FASTQC --size 2G\n  \
    bursar predict --from benchmarks/ --kind bwa --json -\n\n\
    Records, trace files of Nextflow, benchmark files of Snakemake, what sacct\n\
    printed, and CSV are read. At least three completed runs of the kind are needed.\n\
    Nothing is run.")]
pub struct Predict {
    /// Read past runs from these files, or from all files in these folders [default: the records that bursar keeps]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Total size of the input [default: that of the files named in the command, and of standard input]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// The value of a feature, such as --threads=8; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = feature, allow_hyphen_values = true, hide_short_help = true, help_heading = ADVANCED)]
    pub feature: Vec<(String, f64)>,
    /// How likely the request must be enough, in percent (50 to 99.9)
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = confidence, hide_short_help = true, help_heading = ADVANCED)]
    pub confidence: Confidence,
    /// Use past runs of which the kind matches this regular expression, whatever the command
    #[arg(long, value_name = "PATTERN", hide_short_help = true, help_heading = ADVANCED)]
    pub kind: Option<Regex>,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "kind")]
    pub command: Vec<OsString>,
}

fn feature(text: &str) -> Result<(String, f64), String> {
    let parsed = text.rsplit_once('=').and_then(|(name, value)| Some((name.to_string(), value.parse().ok()?)));
    parsed.ok_or_else(|| format!("'{text}' is not a feature; write --threads=8"))
}

fn confidence(text: &str) -> Result<Confidence, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok();
    percent
        .and_then(|percent| Confidence::new(percent / 100.0))
        .ok_or_else(|| format!("'{text}' is not a confidence; write 95 (50 to 99.9)"))
}
