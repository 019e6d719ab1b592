//! `bursar advise`: huge pages and eager memory where their benefit exceeds their cost.

mod attach;
mod build_id;
mod check;
mod convert;
pub mod costs;
mod explain;
mod profile;
mod run;
mod told;

use std::io::Read;
use std::path::Path;

use anyhow::Context;

use crate::cli::advise::Advise;
use crate::status::Status;

/// What looking at another process's memory takes.
const NEEDS: &str = "root, or CAP_SYS_NICE, CAP_SYS_PTRACE, CAP_BPF and CAP_PERFMON";

pub fn advise(action: &Advise) -> anyhow::Result<Status> {
    match action {
        Advise::Run(options) => run::run(options),
        Advise::Profile(options) => profile::profile(options),
        Advise::Attach(options) => attach::attach(options),
        Advise::Check { profile } => check::check(profile),
        Advise::Explain { file } => explain::explain(file),
        Advise::Costs(options) => costs::print(options),
        Advise::Convert(options) => convert::convert(options),
    }
}

/// A text file, or standard input for `-`.
fn read(path: &Path) -> anyhow::Result<String> {
    if path != Path::new("-") {
        return std::fs::read_to_string(path).with_context(|| format!("{} could not be read", path.display()));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input could not be read")?;
    Ok(text)
}

/// How a file is called in messages.
fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}
