//! Slurm: trials as job steps, the account of a step, and what jobs should ask for.

mod allocation;
mod recommend;
mod step;

use std::io;
use std::process::Command;

use ::slurm::Config;

use crate::cli::slurm::Slurm;
use crate::status::Status;

pub use allocation::{Allocation, BY_SRUN};

pub fn slurm(action: &Slurm) -> anyhow::Result<Status> {
    match action {
        Slurm::Recommend(options) => recommend::recommend(options),
        Slurm::Step => Ok(step::step()),
    }
}

fn config() -> io::Result<Config> {
    let output = linux::children::output(Command::new("scontrol").args(["show", "config"]))?;
    Ok(Config::of(String::from_utf8_lossy(&output.stdout)))
}
