//! The command line of `bursar predict`.

use std::ffi::OsString;
use std::path::PathBuf;

use ::predict::Confidence;
use clap::Args;
use model::Bytes;
use regex::Regex;

use super::ADVANCED;
use super::values::feature;

/// `bursar predict`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar predict -- ./solver larger.dat           from the records of past runs\n  \
    bursar predict --size 40G -- ./solver x.dat     for an input that is not here\n  \
    bursar predict --learn a.dat b.dat c.dat -- ./solver large.dat\n  \
    bursar predict --learn --scale-with 'head -c {} x.dat' -- ./solver x.dat\n  \
    bursar predict --from trace.txt --kind FASTQC --size 2G\n  \
    bursar predict --from benchmarks/ --kind bwa --json -\n\n\
    Records, trace files of Nextflow, benchmark files of Snakemake, what sacct\n\
    printed, and CSV are read. At least three completed runs of the kind are needed.\n\
    Nothing is run without --learn; what the command prints is dropped then.")]
pub struct Predict {
    /// Read past runs from these files, or from all files in these folders [default: the records that bursar keeps]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Total size of the input [default: that of the files named in the command, and of standard input]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// The value of a feature, such as --threads=8, or the name of a variable of the environment; may be given more than once
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = feature, allow_hyphen_values = true, hide_short_help = true, help_heading = ADVANCED)]
    pub feature: Vec<(String, f64)>,
    /// Probability in percent that the request is enough (50 to 99.9)
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = confidence, hide_short_help = true, help_heading = ADVANCED)]
    pub confidence: Confidence,
    /// Use past runs whose kind matches this regular expression, whatever the command
    #[arg(long, value_name = "PATTERN", hide_short_help = true, help_heading = ADVANCED)]
    pub kind: Option<Regex>,
    /// Only print the cheapest runs that make a prediction possible
    #[arg(long, conflicts_with = "learn", requires = "command", hide_short_help = true, help_heading = ADVANCED)]
    pub plan: bool,
    /// First run the command with these inputs instead of its own
    #[arg(long, value_name = "INPUT", num_args = 0.., conflicts_with = "from", requires = "command", hide_short_help = true, help_heading = ADVANCED)]
    pub learn: Option<Vec<PathBuf>>,
    /// With --learn: a shell command that prints an input, whose size is proportional to the number that replaces {}
    #[arg(long, value_name = "CMD", requires = "learn", hide_short_help = true, help_heading = ADVANCED)]
    pub scale_with: Option<String>,
    /// Also use records of other machines: their figures hold only for equal programs and processors
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub other_machine: bool,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// List each past run that is left out, and why
    #[arg(short, long, hide_short_help = true, help_heading = ADVANCED)]
    pub verbose: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "kind")]
    pub command: Vec<OsString>,
}

fn confidence(text: &str) -> Result<Confidence, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok();
    percent
        // 99.9 / 100 is a little more than 0.999.
        .and_then(|percent| Confidence::new((percent * 10.0).round() / 1000.0))
        .ok_or_else(|| format!("'{text}' is not a confidence: write percent from 50 to 99.9, such as 95"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_is_from_50_to_99_9_percent() {
        for (text, expected) in [("50", 0.5), ("95%", 0.95), ("97.5", 0.975), ("99.9", 0.999)] {
            assert_eq!(confidence(text).map(Confidence::probability), Ok(expected), "{text}");
        }
        for text in ["49.9", "100", "99.99", "0.95", "x"] {
            assert!(confidence(text).unwrap_err().contains("from 50 to 99.9"), "{text}");
        }
    }
}
