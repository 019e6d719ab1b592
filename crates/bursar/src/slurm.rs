//! Slurm: trials as job steps, and the account of a step.

mod allocation;
mod step;

use std::io;
use std::process::Command;

use ::slurm::Config;

use crate::cli::slurm::Slurm;
use crate::status::Status;

pub use allocation::{Allocation, BY_SRUN};

pub fn slurm(action: &Slurm) -> anyhow::Result<Status> {
    match action {
        Slurm::Step => Ok(step::step()),
    }
}

pub fn config() -> io::Result<Config> {
    let output = linux::children::output(Command::new("scontrol").args(["show", "config"]))?;
    Ok(Config::of(String::from_utf8_lossy(&output.stdout)))
}
