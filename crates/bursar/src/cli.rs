//! The command line.

pub mod advise;
pub mod attribute;
pub mod balance;
pub mod budget;
pub mod check;
pub mod curve;
pub mod diff;
pub mod doctor;
pub mod faults;
mod groups;
pub mod node;
pub mod pool;
pub mod predict;
pub mod provision;
pub mod recommend;
mod renamed;
pub mod report;
pub mod run;
pub mod serve;
pub mod slurm;
pub mod target;
pub mod tip;
mod values;
pub mod watch;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use advise::Advise;
use attribute::Attribute;
use balance::Balance;
use budget::Budget;
use check::Check;
use curve::Curve;
use diff::Diff;
use doctor::Doctor;
use faults::Faults;
use node::Node;
use pool::Pool;
use predict::Predict;
use provision::Provision;
use recommend::Recommend;
use report::Report;
use run::Run;
use serve::Serve;
use slurm::Slurm;
use watch::Watch;

/// Heading in `--help` of the options that few need, which `-h` leaves out.
const ADVANCED: &str = "Advanced options";

/// Measures how much memory a program needs, and provides it
#[derive(Debug, Parser)]
#[command(name = "bursar", version, max_term_width = 110, arg_required_else_help = true)]
#[command(help_template = groups::template())]
#[command(after_help = "Examples:\n  \
    bursar run -- make -j8                  measure one run\n  \
    bursar budget -- ./solver input.dat     find the memory it needs\n  \
    bursar predict -- ./solver larger.dat   predict the memory of the next run\n  \
    bursar report RECORD --html page.html   turn a record into a page\n\n\
    bursar COMMAND -h lists the usual options, --help all of them.\n\n\
    Exit status: that of the program that bursar runs; 124 after a time-out;\n\
    125 if bursar fails; 126 or 127 if the program cannot be started.")]
pub struct Cli {
    /// The command to run
    #[command(subcommand)]
    pub action: Action,
}

/// One file per subcommand.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run a program once and print the memory it used
    Run(Run),
    /// Find the least memory that a program needs to run at speed
    Budget(Budget),
    /// Predict the memory that the next run of a program needs
    Predict(Predict),
    /// Check that a program needs no more than a maximum, or than before
    Check(Box<Check>),
    /// Compute the memory that Slurm jobs should request
    Recommend(Recommend),
    /// Show the working set of a running program
    Watch(Watch),
    /// Divide memory between running programs
    Balance(Balance),
    /// Show which part of a program holds its memory
    Attribute(Attribute),
    /// Run a program on pre-populated memory
    Provision(Provision),
    /// Measure how long a program's page faults take
    Faults(Faults),
    /// Create, list and remove pools of memory for provision
    #[command(subcommand)]
    Pool(Pool),
    /// Use huge pages where they save more time than they cost
    #[command(subcommand)]
    Advise(Advise),
    /// Print, convert or merge records of earlier runs
    Report(Box<Report>),
    /// Compare the figures of two or more records
    Diff(Diff),
    /// Compute miss ratio curves of recorded references
    #[command(subcommand)]
    Curve(Curve),
    /// Export the memory figures of all cgroups to Prometheus
    Serve(Serve),
    /// Report what this machine supports, and how to enable more
    Doctor(Doctor),
    /// Called by Slurm's plugin
    #[command(subcommand, hide = true)]
    Slurm(Slurm),
    /// Started by a launcher of bursar budget on the other nodes of a job
    #[command(hide = true)]
    Node(Node),
    /// Write the man pages, one for each command
    #[command(hide = true)]
    Man {
        /// The folder to write them into
        folder: PathBuf,
    },
    /// Print shell completions
    #[command(hide = true)]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

/// Where results go.
#[derive(Debug, Args)]
pub struct Results {
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Keep the record in FILE [default: a new file under ~/.local/state/bursar]
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Leave text that the regular expression PATTERN matches (its first group, if it has one) in the command line and in
    /// --prepare out of the record and all reports; may be given more than once
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true, hide_short_help = true, help_heading = ADVANCED)]
    pub redact: Vec<regex::Regex>,
    /// Print no report and no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the full report instead of the short one
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
}

#[cfg(test)]
#[path = "../../../tests/support/shown.rs"]
mod shown;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_in_the_docs_can_be_parsed() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        for shown in shown::shown(root) {
            for call in shown.calls() {
                let parsed = tip::parse(&call.into_iter().map(Into::into).collect::<Vec<_>>());
                assert!(
                    parsed.is_ok(),
                    "{}:{}: {}: {}",
                    shown.page.display(),
                    shown.line,
                    shown.text,
                    parsed.unwrap_err()
                );
            }
        }
    }

    /// Options that `-h` lists, of all commands together.
    fn listed(command: &clap::Command) -> usize {
        let is_listed = |option: &&clap::Arg| !option.is_hide_set() && !option.is_hide_short_help_set();
        let own = command.get_opts().chain(command.get_arguments().filter(|argument| is_flag(argument)));
        let own: std::collections::BTreeSet<_> = own.filter(is_listed).map(|option| option.get_id().clone()).collect();
        let beneath = command.get_subcommands().filter(|command| !command.is_hide_set());
        own.len() + beneath.map(listed).sum::<usize>()
    }

    fn is_flag(argument: &clap::Arg) -> bool {
        !argument.is_positional() && !argument.get_action().takes_values()
    }

    #[test]
    fn short_help_lists_the_usual_options_alone() {
        let count = listed(&Cli::command());
        assert!((50..115).contains(&count), "{count} options: hide those that few need (ADVANCED)");
    }
}
