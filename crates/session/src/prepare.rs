//! `--prepare`: what is done before each run, outside of it.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use job::Forwarding;

use crate::status::Interrupted;

/// Runs a shell command to its end.
///
/// # Errors
/// If it fails, or somebody asked bursar to end meanwhile.
pub fn prepare(command: &str, signals: &Forwarding) -> anyhow::Result<()> {
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null());
    let done = linux::children::status(shell).context("sh could not be run for --prepare")?;
    if let Some(signal) = signals.stopped_by() {
        return Err(Interrupted { signal, what: "--prepare ran" }.into());
    }
    ensure!(done.success(), "--prepare '{command}' failed ({done}); it must succeed before each run");
    Ok(())
}
