//! The command line of `bursar slurm`, which Slurm's plugin calls.

use clap::Subcommand;

/// `bursar slurm`
#[derive(Debug, Subcommand)]
pub enum Slurm {
    /// What the SPANK plugin runs beside a step: reads a task's PID, and gives the step's account when standard input ends
    Step,
}
