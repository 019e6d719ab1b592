//! Slurm: trials as job steps, the account of a step, and what jobs should ask for.

mod allocation;
mod recommend;
mod step;

use std::io;
use std::process::Command;

use crate::cli::slurm::Slurm;
use crate::status::Status;

pub use allocation::{Allocation, BY_SRUN};
pub use recommend::Version;

pub fn slurm(action: &Slurm) -> anyhow::Result<Status> {
    match action {
        Slurm::Recommend(options) => recommend::recommend(options),
        Slurm::Step => Ok(step::step()),
    }
}

/// The site's configuration.
struct Config(String);

impl Config {
    fn ask() -> io::Result<Config> {
        let output = linux::children::output(Command::new("scontrol").args(["show", "config"]))?;
        Ok(Config(String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// The value of a setting, such as `TaskPlugin`.
    fn value(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
    }
}
