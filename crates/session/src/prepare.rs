//! `--prepare`: what is done before each run, outside of it.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// Runs a shell command to its end.
///
/// # Errors
/// If it fails.
pub fn prepare(command: &str) -> anyhow::Result<()> {
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null());
    let done = linux::children::status(shell).context("sh could not be run for --prepare")?;
    ensure!(done.success(), "--prepare '{command}' failed ({done}); it must succeed before each run");
    Ok(())
}
