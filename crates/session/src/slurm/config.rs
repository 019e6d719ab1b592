//! What the site has set.

use std::io;
use std::process::Command;

use ::slurm::Config;

/// As `scontrol` shows it.
///
/// # Errors
/// It could not be run.
pub fn config() -> io::Result<Config> {
    let output = linux::children::output(Command::new("scontrol").args(["show", "config"]))?;
    Ok(Config::of(String::from_utf8_lossy(&output.stdout)))
}
