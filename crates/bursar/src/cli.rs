//! The command line.

pub mod advise;
pub mod attribute;
pub mod balance;
pub mod budget;
pub mod curve;
pub mod doctor;
pub mod faults;
pub mod node;
pub mod pool;
pub mod provision;
pub mod report;
pub mod run;
pub mod serve;
pub mod slurm;
pub mod tip;
mod values;
pub mod watch;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use advise::Advise;
use attribute::Attribute;
use balance::Balance;
use budget::Budget;
use curve::Curve;
use doctor::Doctor;
use faults::Faults;
use node::Node;
use pool::Pool;
use provision::Provision;
use report::{Export, Merge, Report};
use run::Run;
use serve::Serve;
use slurm::Slurm;
use watch::Watch;

/// How much memory a program needs, what each further byte buys, and what the usual ways of guessing would have cost.
#[derive(Debug, Parser)]
#[command(name = "bursar", version, max_term_width = 110, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    bursar run -- make -j8                  the account of one run\n  \
    bursar budget -- ./solver input.dat     the least memory that will do\n  \
    bursar report RECORD --html page.html   the same again, as a page\n  \
    bursar watch -- ./solver input.dat      what it uses of its memory, live\n  \
    bursar attribute -- mpirun -n 4 ./app   who inside it holds the memory\n  \
    bursar balance --total 8G 4711 4712     memory to whoever gains most from it\n  \
    bursar provision -- ./solver input.dat  memory without page faults\n  \
    bursar pool create 8G                   reserve the memory for that\n  \
    bursar faults -- ./solver input.dat     how long its page faults take\n  \
    bursar advise run -- ./solver           huge pages where they are worth it\n  \
    bursar curve trace TRACE                what each size of a cache would miss\n  \
    bursar serve                            metrics of the machine's cgroups\n  \
    bursar slurm recommend                  what your jobs should ask for\n  \
    bursar doctor                           what this machine allows\n\n\
    Exit status: the command's own; 124 time-out; 125 bursar's own failure;\n\
    126 and 127 as a shell.")]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub action: Action,
}

/// One file per subcommand.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run a command once and give its account; or watch one that runs already
    Run(Run),
    /// Find the least memory at which a command stays within a slow-down
    Budget(Budget),
    /// Tell what a running program does with its memory, while it runs
    Watch(Watch),
    /// Divide memory between running programs where it is worth most, anew every interval
    Balance(Balance),
    /// Tell who inside a command holds its memory: application, MPI, any library
    Attribute(Attribute),
    /// Run a command on memory that is there when it asks for it: from a pool, else the kernel's huge pages
    Provision(Provision),
    /// Tell how long a command's page faults take, by kind, to the slowest
    Faults(Faults),
    /// Memory set apart and populated, for programs run by bursar provision
    #[command(subcommand)]
    Pool(Pool),
    /// Huge pages and eager memory where their benefit exceeds their cost
    #[command(subcommand)]
    Advise(Advise),
    /// Print a record's report again, or write it as one HTML page
    Report(Report),
    /// Write a record as JSON, CSV, Parquet, a Perfetto trace or a recommendation for Kubernetes
    Export(Export),
    /// Make one record of those of the ranks or nodes of one job
    Merge(Merge),
    /// What each further byte of memory buys: demand curves
    #[command(subcommand)]
    Curve(Curve),
    /// Tell Prometheus of the machine's cgroups: memory, peaks, working sets, pressure, budgets
    Serve(Serve),
    /// Past jobs of a Slurm cluster
    #[command(subcommand)]
    Slurm(Slurm),
    /// Say what this machine allows, what is missing and how to enable it
    Doctor(Doctor),
    /// What bursar budget has a launcher start on the other nodes of a job
    #[command(hide = true)]
    Node(Node),
    /// Print the man page
    #[command(hide = true)]
    Man,
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
    /// Keep what the regular expression PATTERN matches (its first group, if it has one) in the command line and in
    /// --prepare out of the record and all reports; may be given more than once
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub redact: Vec<regex::Regex>,
    /// Print no summary and no progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
