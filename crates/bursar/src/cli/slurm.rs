//! The command line of `bursar slurm`, which Slurm's plugin calls.

use clap::Subcommand;

/// `bursar slurm`
#[derive(Debug, Subcommand)]
pub enum Slurm {
    /// Started by the SPANK plugin beside a step: reads a task's PID, and prints the step's account when standard input ends
    Step,
}
